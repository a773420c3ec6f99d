//! The thread of the kernel's programs: loads them, tells them the groups, drains the ring, watches
//! what they cost.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use tidegate_abi::kernel::group::SLOTS_MAX;

use super::report::{PauseTable, ProgramReport, ReportCell};
use super::view::View;
use super::watch::Watched;
use super::worker::Worker;
use crate::background::{Background, END_WITHIN, Stop};
use crate::procfs::Lack;
use crate::procfs::Roots;

/// Changes of watched groups that wait at most; the tick tells each again until it is taken.
const QUEUE: usize = 1024;

/// What the operator sets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EbpfSettings {
    /// Whether programs are loaded at all.
    pub enabled: bool,
    /// Share of one CPU that they may take.
    pub max_overhead: f64,
    /// Groups that are kept apart; the host's other groups are one.
    pub slots: u32,
}

impl Default for EbpfSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            max_overhead: 0.02,
            slots: 64,
        }
    }
}

/// The maps of the programs that run, or why none do.
pub(crate) type Sight = Result<View, Lack>;

/// The tick's end: what it reads, and how it says which groups are watched.
#[derive(Debug)]
pub struct TickEnd {
    sights: Receiver<Sight>,
    sight: Sight,
    watched: SyncSender<Watched>,
    pauses: Arc<PauseTable>,
    slots: u32,
}

impl TickEnd {
    /// The maps now; `true` with it if they are others than at the last call. It never waits.
    pub(crate) fn look(&mut self) -> (Sight, bool) {
        let mut changed = false;
        while let Ok(sight) = self.sights.try_recv() {
            if let Ok(before) = std::mem::replace(&mut self.sight, sight) {
                before.retire();
            }
            changed = true;
        }
        (self.sight, changed)
    }

    /// Says what a slot stands for; `false` if there is no room for it now.
    pub(crate) fn watch(&self, watched: Watched) -> bool {
        self.watched.try_send(watched).is_ok()
    }

    /// Pauses of JVMs.
    pub(crate) fn pauses(&self) -> &PauseTable {
        &self.pauses
    }

    /// How many slots there are.
    pub(crate) const fn slots(&self) -> u32 {
        self.slots
    }

    /// An end that has these maps, and what it tells.
    #[cfg(test)]
    pub(crate) fn with(view: View, pauses: Arc<PauseTable>) -> (Self, Receiver<Watched>) {
        let (_told, sights) = channel();
        let (watched, changes) = sync_channel(QUEUE);
        let end = Self {
            sights,
            sight: Ok(view),
            watched,
            pauses,
            slots: view.extent.slots,
        };
        (end, changes)
    }
}

/// The running thread.
#[derive(Debug)]
pub struct Telemetry {
    report: ReportCell,
    thread: Background,
}

impl Telemetry {
    /// The programs as they were at the last look.
    pub fn report(&self) -> ProgramReport {
        self.report.get()
    }

    /// Ends the thread and its programs. The kernel takes its time to take probes away (some 0.1 s each on a calm
    /// machine); what it has not done in time it does when the process ends.
    pub fn stop(self) {
        self.thread.end_within(END_WITHIN);
    }
}

/// What the thread is given.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) stop: Stop,
    pub(super) report: ReportCell,
    pub(super) sights: Sender<Sight>,
    pub(super) watched: Receiver<Watched>,
    pub(super) pauses: Arc<PauseTable>,
}

impl Ends {
    /// Whether the thread is to end.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_told()
    }

    /// Tells the tick what there is to see. A tick that has ended needs nothing.
    pub(super) fn show(&self, sight: Sight) {
        if let Err(unseen) = self.sights.send(sight)
            && let Ok(view) = unseen.0
        {
            view.retire();
        }
    }

    /// The next change of what is watched.
    pub(super) fn change(&self) -> Option<Watched> {
        self.watched.try_recv().ok()
    }
}

/// Starts the thread; it loads the programs by itself.
///
/// # Errors
/// The system has no thread left.
pub fn start(settings: EbpfSettings, roots: &Roots) -> io::Result<(Telemetry, TickEnd)> {
    let slots = settings.slots.clamp(2, SLOTS_MAX);
    let pauses = Arc::new(PauseTable::new(slots));
    let report = ProgramReport::starting(slots, settings.max_overhead, Arc::clone(&pauses));
    let report = ReportCell::new(report);
    let (told, sights) = channel();
    let (watched, changes) = sync_channel(QUEUE);
    let tick_end = TickEnd {
        sights,
        sight: Err(Lack::Starting),
        watched,
        pauses: Arc::clone(&pauses),
        slots,
    };
    let roots = roots.clone();
    let settings = EbpfSettings { slots, ..settings };
    let shown = report.clone();
    let thread = Background::start("kernel", move |stop| {
        let ends = Ends {
            stop,
            report: shown,
            sights: told,
            watched: changes,
            pauses,
        };
        Worker::new(settings, roots, ends).run();
    })?;
    Ok((Telemetry { report, thread }, tick_end))
}
