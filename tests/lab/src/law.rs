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
    /// A real Envoy with its adaptive concurrency filter, in front of the service.
    Envoy,
    /// A real `HAProxy`, tuned by hand to this service.
    Haproxy,
    /// A real nginx, with a limit of connections that is tuned by hand.
    Nginx,
}

/// A program of others in front of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Proxy {
    Envoy,
    Haproxy,
    Nginx,
}

impl Proxy {
    /// The law under which its figures are told.
    pub(crate) const fn law(self) -> Law {
        match self {
            Self::Envoy => Law::Envoy,
            Self::Haproxy => Law::Haproxy,
            Self::Nginx => Law::Nginx,
        }
    }
}

impl Law {
    /// The program that stands in front of the service.
    pub(crate) const fn proxy(self) -> Option<Proxy> {
        match self {
            Self::Envoy => Some(Proxy::Envoy),
            Self::Haproxy => Some(Proxy::Haproxy),
            Self::Nginx => Some(Proxy::Nginx),
            Self::Adaptive
            | Self::None
            | Self::Sentinel
            | Self::Aegis
            | Self::Gozero
            | Self::Gradient2
            | Self::Vegas => None,
        }
    }

    /// The law that decides in the service.
    pub(crate) const fn inside(self) -> Self {
        match self.proxy() {
            Some(_proxy) => Self::None,
            None => self,
        }
    }

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
            Self::Envoy => "envoy",
            Self::Haproxy => "haproxy",
            Self::Nginx => "nginx",
        }
    }

    /// A rival without history; Tidegate's own law is none and admits all here.
    pub(crate) fn rival(self) -> Box<dyn Rival> {
        match self {
            Self::Adaptive | Self::None | Self::Envoy | Self::Haproxy | Self::Nginx => {
                Box::new(none::Open)
            }
            Self::Sentinel => Box::new(sentinel::CpuRule::default()),
            Self::Aegis => Box::new(aegis::Bbr::default()),
            Self::Gozero => Box::new(gozero::Shedder::default()),
            Self::Gradient2 => Box::new(gradient2::Gradient::default()),
            Self::Vegas => Box::new(vegas::Vegas::default()),
        }
    }
}
