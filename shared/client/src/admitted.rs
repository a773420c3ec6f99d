//! A request that was admitted, as its session knows it.

use std::time::Duration;

use tidegate_abi::message::TOKEN;
use tidegate_segment::gate::{Pass, Ticket};

/// What is to be given back for it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Admitted {
    /// On the pages, with no more than fits into a ticket.
    Ticket(Ticket),
    /// On the pages, with more than that.
    Pass(Pass),
    /// By the agent, under a token.
    Asked {
        token: [u8; TOKEN],
        waited: Duration,
    },
}

impl Admitted {
    /// On the pages.
    pub(crate) fn of(pass: Pass) -> Self {
        match pass.ticket() {
            // A ticket does not know of a wait.
            Some(ticket) if pass.waited_ns == 0 => Self::Ticket(ticket),
            Some(_) | None => Self::Pass(pass),
        }
    }
}
