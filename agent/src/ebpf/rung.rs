//! The ladder: by which programs the scheduler is watched, and why not by better ones.

use std::fmt;

use crate::procfs::Lack;

/// A step of the ladder, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// Programs on the scheduler's typed tracepoints: waits to the nanosecond, and who took the CPU
    /// from whom.
    Typed,
    /// One program that reads the kernel's own account of waits: cheaper, and short waits are told
    /// too short, as are those of tasks that are moved to another CPU while they wait.
    SchedInfo,
    /// Programs on plain tracepoints, for kernels that do not describe their types.
    Plain,
    /// No program: files of `/proc` alone.
    Files,
}

impl Rung {
    /// The word used in status, metrics and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Typed => "btf",
            Self::SchedInfo => "sched_info",
            Self::Plain => "tracepoints",
            Self::Files => "files",
        }
    }

    /// What it is, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Typed => "eBPF: typed tracepoints",
            Self::SchedInfo => "eBPF: the kernel's own account of waits",
            Self::Plain => "eBPF: plain tracepoints",
            Self::Files => "no eBPF: files of /proc alone",
        }
    }

    /// Every step, the best first.
    pub const ALL: [Self; 4] = [Self::Typed, Self::SchedInfo, Self::Plain, Self::Files];

    /// The step to take when this one costs too much. Plain tracepoints cost more than typed ones.
    #[must_use]
    pub const fn cheaper(self) -> Self {
        match self {
            Self::Typed => Self::SchedInfo,
            Self::SchedInfo | Self::Plain | Self::Files => Self::Files,
        }
    }
}

/// A step that could not be taken, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissedRung {
    /// The step.
    pub rung: Rung,
    /// In one word.
    pub lack: Lack,
    /// What the kernel said; empty if there is no more to say.
    pub detail: String,
}

impl MissedRung {
    /// A step that was missed for a reason that says it all.
    pub(super) const fn plainly(rung: Rung, lack: Lack) -> Self {
        Self {
            rung,
            lack,
            detail: String::new(),
        }
    }
}

impl fmt::Display for MissedRung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not by {}: {}", self.rung.name(), self.lack)?;
        if self.detail.is_empty() {
            return Ok(());
        }
        write!(f, " ({})", self.detail)
    }
}
