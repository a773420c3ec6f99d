//! The laws that the lab compares, by their names on the command line.

use clap::ValueEnum;

use crate::rival::{Rival, aegis, gozero, gradient2, none, sentinel, vegas};

/// A law.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Law {
    /// Tidegate's own, by the real agent and client.
    Adaptive,
    /// Everything is admitted.
    None,
    /// Sentinel's CPU rule: over the mark, everything is refused.
    Sentinel,
    /// The BBR limiter of aegis (Kratos).
    Aegis,
    /// The adaptive shedder of go-zero.
    Gozero,
    /// Gradient2 of concurrency-limits.
    Gradient2,
    /// Vegas of concurrency-limits.
    Vegas,
}

impl Law {
    /// The word on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Adaptive => "adaptive",
            Self::None => "none",
            Self::Sentinel => "sentinel",
            Self::Aegis => "aegis",
            Self::Gozero => "gozero",
            Self::Gradient2 => "gradient2",
            Self::Vegas => "vegas",
        }
    }

    /// A rival without history; Tidegate's own law is none and admits all here.
    pub(crate) fn rival(self) -> Box<dyn Rival> {
        match self {
            Self::Adaptive | Self::None => Box::new(none::Open),
            Self::Sentinel => Box::new(sentinel::CpuRule::default()),
            Self::Aegis => Box::new(aegis::Bbr::default()),
            Self::Gozero => Box::new(gozero::Shedder::default()),
            Self::Gradient2 => Box::new(gradient2::Gradient::default()),
            Self::Vegas => Box::new(vegas::Vegas::default()),
        }
    }
}
