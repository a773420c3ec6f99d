//! A request on the express way, and what it gets: words that fit into registers.

use tidegate_abi::decision::Direction;

use super::request::{PassExtras, PassedBreaker};
use super::{Pass, Request};
use crate::board::Slot;

/// One request that asks for nothing but what the express way knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainRequest {
    /// The resource.
    pub slot: Slot,
    /// Which way the work goes.
    pub direction: Direction,
}

/// How many requests one on the express way stands for.
pub(super) const ONE: u32 = 1;

/// An admitted request that came the express way: a [`Pass`] that fits into registers. It is given back
/// with [`Gate::give_back`](super::Gate::give_back).
///
/// Whole words alone: what is written in small parts and read as one soon after makes a processor wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "an admitted request stays in flight until it is given back with `Gate::give_back`"]
pub struct Ticket {
    /// `[zero 15 | outbound 1 | generation 16 | slot 32]`, see [`Ticket::FREE_BITS`].
    place: u64,
    pub(super) entered_ns: u64,
    /// `[generation 16 | zero 15 | passed 1 | line of state 32]` of its breaker.
    breaker: u64,
}

const OUTBOUND: u64 = 1 << 48;
const PASSED: u64 = 1 << 32;

impl PlainRequest {
    /// The request, if it is plain.
    #[inline(always)]
    pub const fn of(slot: Slot, request: &Request<'_>) -> Option<Self> {
        let named = request.origin.node.is_some() || request.context.node.is_some();
        // Who sees its own accept queue knows more than the express way looks at.
        let sees = request.waiting.is_some();
        if request.prioritized || named || sees || request.count != ONE {
            return None;
        }
        Some(Self {
            slot,
            direction: request.direction,
        })
    }
}

impl Ticket {
    /// Bits that are zero in the first of a ticket's words, whatever the ticket: whoever keeps the words may use them.
    pub const FREE_BITS: u64 = u64::MAX << 49;

    /// The ticket as words, for whoever keeps it in a form of its own.
    #[inline(always)]
    pub const fn words(self) -> [u64; 3] {
        [self.place, self.entered_ns, self.breaker]
    }

    /// The ticket of words that [`Ticket::words`] gave, whatever stands in their [`Ticket::FREE_BITS`].
    #[inline(always)]
    pub const fn of_words([place, entered_ns, breaker]: [u64; 3]) -> Self {
        Self {
            place: place & !Self::FREE_BITS,
            entered_ns,
            breaker,
        }
    }

    #[inline(always)]
    pub(super) const fn slot(self) -> Slot {
        Slot {
            index: (self.place & 0xffff_ffff) as u32,
            generation: (self.place >> 32 & 0xffff) as u16,
        }
    }

    #[inline(always)]
    pub(super) const fn direction(self) -> Direction {
        if self.place & OUTBOUND == 0 {
            Direction::In
        } else {
            Direction::Out
        }
    }

    /// The line of state of its breaker, if it passed one.
    #[inline(always)]
    pub(super) const fn breaker_state(self) -> Option<u32> {
        if self.breaker & PASSED == 0 {
            return None;
        }
        Some((self.breaker & 0xffff_ffff) as u32)
    }

    /// The breaker that it passed.
    pub(super) const fn passed(self) -> Option<PassedBreaker> {
        match self.breaker_state() {
            Some(state) => Some(PassedBreaker {
                state,
                generation: (self.breaker >> 48) as u16,
                probe: false,
            }),
            None => None,
        }
    }

    #[inline(always)]
    pub(super) const fn of(plain: PlainRequest, entered_ns: u64, breaker: u64) -> Self {
        let outbound = match plain.direction {
            Direction::In => 0,
            Direction::Out => OUTBOUND,
        };
        Self {
            place: plain.slot.index as u64 | (plain.slot.generation as u64) << 32 | outbound,
            entered_ns,
            breaker,
        }
    }
}

/// The word of a breaker that was closed.
#[inline(always)]
pub(super) const fn passed_word(state: u32, generation: u16) -> u64 {
    state as u64 | PASSED | (generation as u64) << 48
}

impl From<Ticket> for Pass {
    #[inline]
    fn from(ticket: Ticket) -> Self {
        Self {
            kept: ticket
                .passed()
                .map_or(PassExtras::Nothing, PassExtras::Breaker),
            ..Self::plain(ticket.slot(), ticket.entered_ns, ticket.direction())
        }
    }
}

impl Pass {
    /// The same as a ticket; `None` if it holds more than that.
    #[inline(always)]
    pub const fn ticket(&self) -> Option<Ticket> {
        let breaker = match self.kept {
            PassExtras::Nothing => 0,
            PassExtras::Breaker(passed) => passed_word(passed.state, passed.generation),
            PassExtras::Walked(_) => return None,
        };
        let plain = PlainRequest {
            slot: self.slot,
            direction: self.direction,
        };
        if self.count != ONE {
            return None;
        }
        Some(Ticket::of(plain, self.entered_ns, breaker))
    }
}
