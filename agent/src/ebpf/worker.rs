//! What the thread of the kernel's programs does: climbs the ladder, then turns once a second.

use std::collections::BTreeMap;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tidegate_abi::kernel::group::ELSEWHERE;
use tidegate_abi::kernel::pause::ProbeRecord;
use tidegate_segment::clock::monotonic_ns;
use tidegate_segment::os::heap::give_back;

use super::budget::Budget;
use super::jvm::Libraries;
use super::pause_book::PauseBook;
use super::pauses::Pauses;
use super::program::{Programs, Wanted};
use super::rung::{MissedRung, Rung};
use super::thread::{EbpfSettings, Ends, Sight};
use super::watch::{self, Watch};
use crate::procfs::Lack;
use crate::procfs::{Layout, Roots};

const SECOND_NS: u64 = 1_000_000_000;
/// Longest wait for records, so that the end is seen soon.
const WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};
/// Most records that are taken in one go; more are taken in the next.
const RECORDS_MAX: usize = 4096;
/// After a step down for its cost, the best step is tried again.
const TRY_AGAIN_NS: u64 = 600 * SECOND_NS;
/// Seconds after which all processes are looked at again for JVMs.
const LOOK_AGAIN_S: u64 = 60;
/// Seconds after which it is asked again which group a process is in.
const ASK_AGAIN_S: u64 = 10;

/// Holds the programs and all that is known of them.
#[derive(Debug)]
pub(super) struct Worker {
    settings: EbpfSettings,
    roots: Roots,
    layout: Layout,
    ends: Ends,
    programs: Option<Programs>,
    missed: Vec<MissedRung>,
    /// Words of the tables as they were written.
    groups: BTreeMap<u32, u64>,
    tasks: BTreeMap<u32, u64>,
    watch: Watch,
    libraries: Libraries,
    pauses: Pauses,
    book: PauseBook,
    /// The slot of each JVM.
    processes: BTreeMap<u32, u32>,
    budget: Budget,
    ring_lost: u64,
    seconds: u64,
    try_again_ns: u64,
}

impl Worker {
    pub(super) fn new(settings: EbpfSettings, roots: Roots, ends: Ends) -> Self {
        Self {
            settings,
            layout: Layout::discover(roots.clone()),
            roots,
            programs: None,
            missed: Vec::new(),
            groups: BTreeMap::new(),
            tasks: BTreeMap::new(),
            watch: Watch::default(),
            libraries: Libraries::default(),
            pauses: Pauses::default(),
            book: PauseBook::new(Arc::clone(&ends.pauses)),
            processes: BTreeMap::new(),
            budget: Budget::new(settings.max_overhead),
            ring_lost: 0,
            seconds: 0,
            try_again_ns: u64::MAX,
            ends,
        }
    }

    /// Works until it is told to end.
    pub(super) fn run(mut self) {
        self.climb();
        let mut due_ns = 0;
        while !self.ends.is_stopped() {
            let now_ns = monotonic_ns();
            if now_ns >= due_ns {
                due_ns = now_ns.saturating_add(SECOND_NS);
                self.turn(now_ns);
            }
            self.wait();
            self.drain();
        }
    }

    /// Why no step is tried at all, if none is.
    fn unwanted(&self) -> Option<Lack> {
        if !self.settings.enabled {
            return Some(Lack::SwitchedOff);
        }
        (self.roots != Roots::default()).then_some(Lack::OtherFiles)
    }

    /// Takes the best step that this host allows.
    fn climb(&mut self) {
        self.missed.clear();
        self.try_again_ns = u64::MAX;
        if let Some(lack) = self.unwanted() {
            self.missed.push(MissedRung::plainly(Rung::Typed, lack));
            return self.settle(Err(lack));
        }
        for rung in [Rung::Typed, Rung::Plain] {
            match self.load(rung, None) {
                Ok(()) => return,
                Err(missed) if missed.lack.is_of_this_step() => self.missed.push(missed),
                Err(missed) => {
                    let lack = missed.lack;
                    self.missed.push(missed);
                    return self.settle(Err(lack));
                }
            }
        }
        // Without the scheduler's programs, pauses can still be had.
        let lack = self
            .missed
            .first()
            .map_or(Lack::Refused, |missed| missed.lack);
        self.probes_alone(lack);
    }

    fn probes_alone(&mut self, lack: Lack) {
        if let Err(missed) = self.load(Rung::Files, Some(lack)) {
            self.missed.push(missed);
            self.settle(Err(lack));
        }
    }

    /// Loads the programs of a step; `lack` is why none of them watches the scheduler.
    fn load(&mut self, rung: Rung, lack: Option<Lack>) -> Result<(), MissedRung> {
        self.programs = None;
        self.groups.clear();
        self.tasks.clear();
        let wanted = Wanted {
            rung,
            slots: self.settings.slots,
            by_cpu_controller: self.layout.has_cpu_hierarchy(),
        };
        let programs = Programs::load(wanted).map_err(|refused| refused.missed(rung))?;
        let view = programs.view.lacking(lack);
        self.programs = Some(programs);
        self.libraries = Libraries::default();
        self.budget = Budget::new(self.settings.max_overhead);
        self.ring_lost = 0;
        self.tell_groups();
        self.settle(Ok(view));
        Ok(())
    }

    /// Tells everybody what there is now.
    fn settle(&mut self, sight: Sight) {
        let rung = sight.map_or(Rung::Files, |view| view.rung);
        // The types of the kernel were read.
        give_back();
        self.ends.show(sight);
        let missed = self.missed.clone();
        let unsampled = self
            .programs
            .as_ref()
            .and_then(|programs| programs.unsampled.clone());
        self.ends.report.change(|report| {
            report.settled = true;
            report.rung = rung;
            report.missed = missed;
            report.unsampled = unsampled;
        });
        let reason = self.ends.report.get().reason();
        tracing::info!(
            event = "ebpf_source",
            rung = rung.name(),
            "{} ({reason})",
            rung.words()
        );
    }

    /// What is done once a second.
    fn turn(&mut self, now_ns: u64) {
        self.seconds = self.seconds.saturating_add(1);
        while let Some(watched) = self.ends.change() {
            self.book.clear(watched.slot);
            self.processes.clear();
            self.watch.take(watched);
        }
        if self.seconds.is_multiple_of(LOOK_AGAIN_S) {
            self.libraries.look_again();
        }
        if self.seconds.is_multiple_of(ASK_AGAIN_S) {
            self.processes.clear();
        }
        self.tell_groups();
        if let Some(programs) = &mut self.programs {
            self.libraries.look(&self.roots.proc, programs);
            programs.flush_log();
        }
        self.book.turn(now_ns);
        self.check_cost(now_ns);
    }

    /// Writes which slot counts for which group, as far as that has changed.
    fn tell_groups(&mut self) {
        let Some(programs) = &mut self.programs else {
            return;
        };
        let (slots, left_out) = self.watch.slots();
        let (table, unplaced) = watch::table(&slots);
        write_table(&mut programs.groups, &mut self.groups, table);
        if programs.view.rung == Rung::Plain {
            write_table(
                &mut programs.task_slots,
                &mut self.tasks,
                self.watch.tasks(),
            );
        }
        let (placed, left_out) = (self.groups.len(), left_out.saturating_add(unplaced));
        self.ends.report.change(|report| {
            report.groups = placed;
            report.groups_left_out = left_out;
        });
    }

    /// Takes down what the programs cost, and leaves a step that costs too much.
    fn check_cost(&mut self, now_ns: u64) {
        let Some(programs) = &self.programs else {
            return;
        };
        let rung = programs.view.rung;
        let counters = programs.view.counters();
        let cost = self.budget.take(now_ns, counters).unwrap_or_default();
        let (unpaired, libraries) = (self.pauses.unpaired, &self.libraries);
        self.ends.pauses.deny(libraries.is_denied());
        self.ends.report.change(|report| {
            report.runs_per_s = cost.runs_per_s;
            report.run_ns = cost.run_ns;
            report.overhead = cost.ratio;
            report.counters = counters;
            report.unpaired = unpaired;
            report.jvm_libraries = libraries.probed;
            report.jvm_fault.clone_from(&libraries.fault);
        });
        if let Some(ratio) = self.budget.exceeded().filter(|_ratio| rung != Rung::Files) {
            self.step_down(rung, ratio, now_ns);
        } else if now_ns >= self.try_again_ns {
            self.climb();
        }
    }

    fn step_down(&mut self, rung: Rung, ratio: f64, now_ns: u64) {
        let missed = MissedRung {
            rung,
            lack: Lack::OverBudget,
            detail: format!("{:.1} % of one CPU for five seconds", ratio * 100.0),
        };
        tracing::warn!(
            event = "ebpf_step_down",
            "eBPF programs step down: {missed}"
        );
        self.missed.push(missed);
        match rung.cheaper() {
            Rung::Files => self.probes_alone(Lack::OverBudget),
            cheaper @ (Rung::Typed | Rung::SchedInfo | Rung::Plain) => {
                if let Err(missed) = self.load(cheaper, None) {
                    self.missed.push(missed);
                    self.probes_alone(Lack::OverBudget);
                }
            }
        }
        self.try_again_ns = now_ns.saturating_add(TRY_AGAIN_NS);
    }

    /// Waits for records, a tenth of a second at most.
    fn wait(&self) {
        let waited: Result<usize, Errno> = match &self.programs {
            Some(programs) => {
                let ring = programs.pauses.as_fd();
                poll(
                    &mut [PollFd::from_borrowed_fd(ring, PollFlags::IN)],
                    Some(&WAIT),
                )
            }
            None => poll(&mut [], Some(&WAIT)),
        };
        if let Err(errno) = waited
            && errno != Errno::INTR
        {
            tracing::debug!(event = "ebpf_ring_failed", %errno, "the eBPF ring of pauses cannot be polled");
        }
    }

    /// Takes the records of the ring.
    fn drain(&mut self) {
        let Some(programs) = &mut self.programs else {
            return;
        };
        let lost = programs.view.counters().ring_lost;
        if lost != self.ring_lost {
            self.ring_lost = lost;
            self.pauses.forget();
        }
        for _record in 0..RECORDS_MAX {
            let Some(bytes) = programs.pauses.next() else {
                return;
            };
            let record = ProbeRecord::decode(&bytes);
            drop(bytes);
            let pause = record.ok().and_then(|record| self.pauses.take(record));
            if let Some(pause) = pause {
                let (layout, watch) = (&self.layout, &self.watch);
                let slot = self.processes.entry(pause.process).or_insert_with(|| {
                    let dir = layout.dir_of_process(pause.process);
                    dir.and_then(|dir| watch.slot_of(&dir)).unwrap_or(ELSEWHERE)
                });
                self.book.book(*slot, pause);
            }
        }
    }
}

/// Brings a table of the kernel from `written` to `wanted`.
fn write_table(
    table: &mut aya::maps::Array<aya::maps::MapData, u64>,
    written: &mut BTreeMap<u32, u64>,
    wanted: BTreeMap<u32, u64>,
) {
    let gone = written.keys().filter(|place| !wanted.contains_key(place));
    let gone = gone.map(|place| (*place, 0));
    let new = wanted.iter().map(|(place, word)| (*place, *word));
    let new = new.filter(|(place, word)| written.get(place) != Some(word));
    for (place, word) in gone.chain(new) {
        if let Err(error) = table.set(place, word, 0) {
            tracing::warn!(event = "ebpf_group_left_out", %error, place, "a cgroup gets no slot in the eBPF map");
        }
    }
    *written = wanted;
}
