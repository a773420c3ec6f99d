//! How the kernel schedules the sampler thread.

use rustix::io::Errno;
use rustix::process::getpriority_process;
use tidegate_segment::os::sched;

/// The nice value of a sampler thread that may choose it.
const BEST_NICE: i32 = -20;

/// How the kernel schedules the sampler thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheduling {
    /// Round robin, before all ordinary threads.
    RealTime,
    /// Ordinary, at the best nice value and with a short slice.
    Nice,
    /// Ordinary, with a short slice only: nothing else is permitted.
    #[default]
    Ordinary,
}

impl Scheduling {
    /// The word used in status and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RealTime => "real_time",
            Self::Nice => "nice",
            Self::Ordinary => "ordinary",
        }
    }

    /// What would give the sampler thread a better place.
    pub const fn better(self) -> Option<&'static str> {
        match self {
            Self::RealTime => None,
            Self::Nice | Self::Ordinary => Some("run the agent with CAP_SYS_NICE, for SCHED_RR"),
        }
    }

    /// Asks for the best that is permitted to the calling thread.
    pub(super) fn best() -> Self {
        if sched::real_time().is_ok() {
            return Self::RealTime;
        }
        if sched::short_slice(BEST_NICE).is_ok() {
            return Self::Nice;
        }
        let nice = getpriority_process(None).unwrap_or(0);
        // Old kernels and strict sandboxes refuse even this; the thread then stays as it is.
        let _refused: Result<(), Errno> = sched::short_slice(nice);
        Self::Ordinary
    }
}
