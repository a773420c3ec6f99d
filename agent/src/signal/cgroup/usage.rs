//! CPU time that a group used.

use super::super::meter::{Meter, Step};
use super::super::truth::Counter;
use crate::procfs::Place;
use crate::procfs::Version;
use crate::procfs::kept_file::{KeptFile, ReadBuffer};
use crate::procfs::{Missing, NamedSource as _, NoValue};

/// CPUs in use since the last sample: CPU seconds per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Usage {
    /// In all.
    pub(super) total: Result<f64, Missing>,
    /// User code.
    pub(super) user: Result<f64, Missing>,
    /// Kernel code.
    pub(super) system: Result<f64, Missing>,
}

impl Usage {
    /// Nothing of it is known.
    pub(super) fn missing(missing: Missing) -> Self {
        Self {
            total: Err(missing),
            user: Err(missing),
            system: Err(missing),
        }
    }
}

/// When a sample is taken, and on how many CPUs (0 if not known).
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) now_ns: u64,
    pub(super) cpus: u32,
}

/// Time between two looks at the parts of v1, which are files of their own. The kernel takes the parts
/// at its own ticks of some ms: over a second they are exact to a percent, over 100 ms they are not.
const PARTS_EVERY_NS: u64 = 1_000_000_000;

/// Reads the counters of use.
#[derive(Debug)]
pub(super) struct UsageReader {
    files: UsageFiles,
    total: TimeCounter,
    user: TimeCounter,
    system: TimeCounter,
    last: Usage,
    next_parts_ns: u64,
}

#[derive(Debug)]
enum UsageFiles {
    /// One file tells all.
    One(KeptFile),
    /// One file each: total, user, system.
    Each([KeptFile; 3]),
}

impl UsageReader {
    /// Readers for the group at `place`.
    pub(super) fn new(place: &Place) -> Self {
        let truth = place.version.truth();
        let file = |counter: Counter| KeptFile::new(place.dir().join(counter.file));
        let files = match place.version {
            Version::V1 => UsageFiles::Each([truth.usage, truth.user, truth.system].map(file)),
            Version::V2 => UsageFiles::One(file(truth.usage)),
        };
        Self {
            files,
            total: TimeCounter::new(truth.usage),
            user: TimeCounter::new(truth.user),
            system: TimeCounter::new(truth.system),
            last: Usage::missing(Missing {
                source: truth.usage.file,
                fault: NoValue::NotSampled,
            }),
            next_parts_ns: 0,
        }
    }

    /// Whether the files may be those of another group under the same path, or are gone.
    pub(super) fn is_opened_anew(&self) -> bool {
        let (UsageFiles::One(total) | UsageFiles::Each([total, ..])) = &self.files;
        total.is_opened_anew()
    }

    /// Takes a sample of the whole, and of the parts where the same file tells them or a second has
    /// passed.
    pub(super) fn sample(&mut self, at: Moment, buffer: &mut ReadBuffer) -> Usage {
        match &mut self.files {
            UsageFiles::One(file) => {
                let bytes = file.read(buffer);
                self.last = Usage {
                    total: self.total.take(bytes, at),
                    user: self.user.take(bytes, at),
                    system: self.system.take(bytes, at),
                };
            }
            UsageFiles::Each([total, user, system]) => {
                self.last.total = self.total.take(total.read(buffer), at);
                if at.now_ns >= self.next_parts_ns {
                    self.next_parts_ns = at.now_ns.saturating_add(PARTS_EVERY_NS);
                    self.last.user = self.user.take(user.read(buffer), at);
                    self.last.system = self.system.take(system.read(buffer), at);
                }
            }
        }
        self.last
    }
}

/// A thread that was held up between its clock and its read may see this much more than the time
/// between two samples explains.
const HELD_UP_MAX_NS: u64 = 1_000_000_000;

/// One counter of CPU time with its last value.
#[derive(Debug)]
struct TimeCounter {
    counter: Counter,
    meter: Meter,
}

impl TimeCounter {
    fn new(counter: Counter) -> Self {
        Self {
            counter,
            meter: Meter::default(),
        }
    }

    fn take(&mut self, bytes: Result<&[u8], NoValue>, at: Moment) -> Result<f64, Missing> {
        let count = bytes.and_then(|bytes| self.counter.read(bytes));
        let step = count.and_then(|count| self.meter.step(at.now_ns, count));
        step.and_then(|step| cpus_used(step, at.cpus))
            .named(self.counter.file)
    }
}

/// CPUs used in a step. A read that was cut short is followed by a leap: no CPUs did that.
fn cpus_used(step: Step, cpus: u32) -> Result<f64, NoValue> {
    let most_ns = step
        .elapsed_ns
        .saturating_add(HELD_UP_MAX_NS)
        .saturating_mul(u64::from(cpus));
    if cpus > 0 && step.grown > most_ns {
        return Err(NoValue::Implausible);
    }
    Ok(step.rate())
}
