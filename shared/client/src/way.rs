//! The way of a session to its decisions.

use std::sync::Arc;

use crate::asker::Asker;
use crate::error::ConnectFault;
use crate::seat::SeatedGate;

/// How a session decides.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one in force, and a box would cost each decision on the pages a load"
)]
#[derive(Debug, Clone)]
pub(crate) enum Way {
    /// It does not: there has been no agent yet.
    Open,
    /// On the pages, in this process.
    Seated(SeatedGate),
    /// By asking the agent.
    Asking(Arc<Asker>),
}

impl Way {
    /// The pages it decides on.
    pub(crate) const fn seated(&self) -> Option<&SeatedGate> {
        match self {
            Self::Seated(seated) => Some(seated),
            Self::Open | Self::Asking(_) => None,
        }
    }

    /// Why it leads nowhere any more; `None` while it does.
    pub(crate) fn lost(&self) -> Option<ConnectFault> {
        match self {
            Self::Open => None,
            Self::Seated(seated) => (!seated.gate.seated()).then_some(ConnectFault::Ended),
            Self::Asking(asker) => asker.lost(),
        }
    }

    /// Generation of the rules in force on its pages; 0 without pages.
    pub(crate) fn rules_generation(&self) -> u64 {
        match self {
            Self::Seated(seated) => seated.gate.board().rules_generation(),
            Self::Open | Self::Asking(_) => 0,
        }
    }

    /// Its connection is over: the permits that the agent holds for it end. Pages still decide.
    pub(crate) fn close(&self) {
        if let Self::Asking(asker) = self {
            asker.close();
        }
    }
}
