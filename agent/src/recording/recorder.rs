//! From the tick to the files.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate_abi::decision::ScopeState;
use tidegate_limits::law::Sample;
use tidegate_segment::sync::{Ordering, Word};

use super::VERSION;
use super::line::{Line, ScopeLine, Start, TickLine};
use super::ring::Ring;
use crate::background::{Background, END_WITHIN};
use crate::calendar::unix_now;

/// Records that wait at most.
const QUEUE: usize = 2048;

/// Time between two looks into the queue. Nobody wakes the thread: that would be a system call in
/// the tick.
const PAUSE: Duration = Duration::from_millis(200);

/// What a tick measured of a scope.
#[derive(Debug)]
pub struct TickRecord {
    /// Place of the scope.
    pub place: u32,
    /// Number of the scope among all that there ever were: tells the next one in its place.
    pub birth: u64,
    /// Its name.
    pub name: Arc<str>,
    /// Its group; `None` is the host.
    pub cgroup: Option<Arc<Path>>,
    /// What was measured.
    pub sample: Sample,
    /// What was published.
    pub state: ScopeState,
}

/// What is told from other threads.
#[derive(Debug)]
pub struct Notes {
    /// Ticks that were measured and not recorded.
    lost: Word,
    /// Times that the file was found gone or cut off, and was begun anew.
    begun_anew: Word,
    config: Mutex<Option<String>>,
}

impl Default for Notes {
    fn default() -> Self {
        Self {
            lost: Word::new(0),
            begun_anew: Word::new(0),
            config: Mutex::default(),
        }
    }
}

impl Notes {
    /// Ticks that were measured and not recorded.
    pub fn lost(&self) -> u64 {
        // Relaxed: a figure for people.
        self.lost.load(Ordering::Relaxed)
    }

    /// Times that the file was found gone or cut off, and was begun anew.
    pub fn begun_anew(&self) -> u64 {
        // Relaxed: a figure for people.
        self.begun_anew.load(Ordering::Relaxed)
    }

    /// Says which configuration is in force from now on, as TOML.
    pub fn tell_config(&self, text: String) {
        // What a panic left behind is a whole text or none.
        let mut config = self.config.lock().unwrap_or_else(PoisonError::into_inner);
        *config = Some(text);
    }

    fn new_config(&self) -> Option<String> {
        let mut config = self.config.lock().unwrap_or_else(PoisonError::into_inner);
        config.take()
    }

    fn count_lost(&self, ticks: u64) {
        self.lost.count(ticks);
    }
}

/// The tick's end of the queue.
#[derive(Debug, Default)]
pub struct Tap(Option<(SyncSender<TickRecord>, Arc<Notes>)>);

impl Tap {
    /// Hands a record over; one that finds no room is counted.
    pub fn put(&self, record: impl FnOnce() -> TickRecord) {
        let Some((queue, notes)) = &self.0 else {
            return;
        };
        if queue.try_send(record()).is_err() {
            notes.count_lost(1);
        }
    }

    /// Times that the file was found gone or cut off, and was begun anew.
    pub fn begun_anew(&self) -> u64 {
        let notes = self.0.as_ref().map(|(_queue, notes)| notes);
        notes.map_or(0, |notes| notes.begun_anew())
    }

    /// Ticks that were measured and not recorded.
    pub fn lost(&self) -> u64 {
        self.0.as_ref().map_or(0, |(_queue, notes)| notes.lost())
    }
}

/// The other end, until the thread takes it.
#[derive(Debug)]
pub struct PendingRecords {
    queue: Receiver<TickRecord>,
    notes: Arc<Notes>,
}

/// Both ends of a queue.
pub fn tap() -> (Tap, PendingRecords) {
    let (put, queue) = sync_channel(QUEUE);
    let notes = Arc::<Notes>::default();
    let tap = Tap(Some((put, Arc::clone(&notes))));
    (tap, PendingRecords { queue, notes })
}

/// The thread that writes.
#[derive(Debug)]
pub struct Recorder {
    notes: Arc<Notes>,
    thread: Background,
}

impl Recorder {
    /// Starts to record into files of this directory, of `size_max` bytes together.
    ///
    /// # Errors
    /// The files cannot be opened or another agent has them; the system has no thread left.
    pub fn start(waiting: PendingRecords, directory: &Path, size_max: u64) -> io::Result<Self> {
        let PendingRecords { queue, notes } = waiting;
        let mut writer = Writer::new(Ring::open(directory, size_max)?, directory);
        let told = Arc::clone(&notes);
        let thread = Background::start("recorder", move |stop| {
            loop {
                // Before the queue is emptied: what was put before the end is written.
                let end = stop.is_told();
                writer.round(&queue, &told);
                if end {
                    return;
                }
                std::thread::park_timeout(PAUSE);
            }
        })?;
        Ok(Self { notes, thread })
    }

    /// What is told from other threads.
    pub fn notes(&self) -> Arc<Notes> {
        Arc::clone(&self.notes)
    }

    /// Writes what waits, and ends; a disk that hangs is not waited for.
    pub fn stop(self) {
        self.thread.end_within(END_WITHIN);
    }
}

/// Turns records into lines.
#[derive(Debug)]
struct Writer {
    ring: Ring,
    directory: PathBuf,
    part: u64,
    config: Option<String>,
    /// Birth, name and group of each place, as the file has them.
    scopes: Vec<Option<(u64, ScopeLine)>>,
    lines: Vec<u8>,
    told_lost: u64,
    failed: bool,
}

impl Writer {
    fn new(ring: Ring, directory: &Path) -> Self {
        let mut writer = Self {
            ring,
            directory: directory.to_owned(),
            part: 0,
            config: None,
            scopes: Vec::new(),
            lines: Vec::new(),
            told_lost: 0,
            failed: false,
        };
        writer.head();
        writer
    }

    fn push(&mut self, line: &Line) {
        // Writing to memory cannot fail, and every line can be written.
        if serde_json::to_writer(&mut self.lines, line).is_ok() {
            self.lines.push(b'\n');
        }
    }

    /// What each file begins with.
    fn head(&mut self) {
        self.push(&Line::Start(Start {
            version: VERSION,
            part: self.part,
            unix_s: unix_now().as_secs(),
        }));
        if let Some(config) = self.config.clone() {
            self.push(&Line::Config(config));
        }
        let scopes: Vec<_> = self.scopes.iter().flatten().cloned().collect();
        for (_birth, scope) in scopes {
            self.push(&Line::Scope(ScopeLine {
                new: false,
                ..scope
            }));
        }
    }

    fn round(&mut self, queue: &Receiver<TickRecord>, notes: &Notes) {
        if let Some(config) = notes.new_config() {
            self.push(&Line::Config(config.clone()));
            self.config = Some(config);
        }
        let mut ticks = 0_u64;
        for record in queue.try_iter() {
            self.tell_scope(&record);
            self.push(&Line::Tick(Box::new(TickLine {
                scope: record.place,
                was: Some(record.state.into()),
                ..TickLine::of(&record.sample)
            })));
            ticks = ticks.saturating_add(1);
        }
        let lost = notes.lost();
        if lost > self.told_lost {
            self.push(&Line::Lost(lost.saturating_sub(self.told_lost)));
            self.told_lost = lost;
        }
        if let Err(error) = self.flush(notes) {
            notes.count_lost(ticks);
            self.lines.clear();
            // Half of a line may be there.
            self.lines.push(b'\n');
            self.complain(&error);
        } else {
            self.failed = false;
        }
    }

    /// Names the scope of a record where the file does not know it.
    fn tell_scope(&mut self, record: &TickRecord) {
        let cgroup = record.cgroup.as_deref();
        let Ok(place) = usize::try_from(record.place) else {
            return;
        };
        if place >= self.scopes.len() {
            self.scopes.resize(place.saturating_add(1), None);
        }
        let Some(known) = self.scopes.get_mut(place) else {
            return;
        };
        let born = known.as_ref().map(|(birth, _scope)| *birth);
        let same = known.as_ref().is_some_and(|(birth, scope)| {
            *birth == record.birth
                && *scope.name == *record.name
                && scope.cgroup.as_deref().map(Path::new) == cgroup
        });
        if same {
            return;
        }
        let scope = ScopeLine {
            place: record.place,
            name: record.name.to_string(),
            cgroup: cgroup.map(|path| path.to_string_lossy().into_owned()),
            new: born != Some(record.birth),
        };
        *known = Some((record.birth, scope.clone()));
        self.push(&Line::Scope(scope));
    }

    fn flush(&mut self, notes: &Notes) -> io::Result<()> {
        if self.ring.begin_anew()? {
            notes.begun_anew.count(1);
            let directory = self.directory.display();
            tracing::warn!(event = "recording_begun_anew", %directory, "the recording was deleted or truncated; a new one begins");
            self.part = self.part.saturating_add(1);
            let lines = std::mem::take(&mut self.lines);
            self.head();
            self.lines.extend(lines);
        }
        if self.ring.is_full(self.lines.len()) {
            let lines = std::mem::take(&mut self.lines);
            self.part = self.part.saturating_add(1);
            self.ring.turn()?;
            self.head();
            self.lines.extend(lines);
        }
        self.ring.write(&self.lines)?;
        self.lines.clear();
        Ok(())
    }

    fn complain(&mut self, error: &io::Error) {
        if !self.failed {
            let directory = self.directory.display();
            tracing::warn!(event = "recording_failed", %error, %directory, "ticks cannot be recorded; retrying");
        }
        self.failed = true;
    }
}
