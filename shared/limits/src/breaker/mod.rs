//! A circuit breaker: admit, refuse for a while, let one probe decide.
//!
//! ```text
//! state word: [state 2 | generation 14 | time 48]
//! ```
//!
//! * **state**: 0 closed, 1 open, 2 half-open.
//! * **generation**: one more at each trip, modulo 2^14. A permit remembers the generation it was
//!   admitted in, so that a completion of an older one decides nothing, and the only permit of the
//!   present generation in half-open is the probe.
//! * **time** in ms of the clock, rounded up: when open, the earliest time of a probe; when half-open,
//!   the end of the probe's lease.
//!
//! A second word is the [`BreakerTally`] of completions. A completion is added to the tally first; what
//! that means for the state is decided by [`Breaker::complete`]. The two words need not change as
//! one: a trip is decided by whoever's completion finds the tally over the threshold.

use crate::number::{NS_PER_MS, NS_PER_S};
use crate::quirks::Quirks;

pub mod tally;
pub mod trip;

use tally::BreakerTally;
use trip::BreakerTrip;

/// A breaker's rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Breaker {
    /// When it opens.
    pub trip: BreakerTrip,
    /// Completions in the interval below which it does not open; at most
    /// [`tally::REQUESTS_MAX`].
    pub min_requests: u32,
    /// How long it stays open before a probe.
    pub recovery_ns: u64,
    /// How long a probe may take; see [`Breaker::default_lease_ns`]. Not used with quirks.
    pub lease_ns: u64,
    /// With quirks any completion decides in half-open, a probe has no lease, and an error ratio of
    /// 1.0 never trips.
    pub quirks: Quirks,
}

/// What a breaker does with calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// Admits all.
    Closed,
    /// Refuses all.
    Open,
    /// Waits for its probe and refuses all others.
    HalfOpen,
}

impl BreakerState {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Closed, Self::Open, Self::HalfOpen];

    /// Its word on every surface.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// The answer to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerAnswer {
    /// Admitted in that generation.
    Pass {
        /// To be given back with its completion.
        generation: u16,
    },
    /// Admitted as the probe. If a later rule refuses it, or it ends without an outcome, the caller
    /// says so with [`Breaker::put_back`].
    Probe {
        /// To be given back with its completion.
        generation: u16,
    },
    /// Refused.
    Refuse {
        /// Time until the next probe can be admitted, ns; when half-open, until the present probe's
        /// lease ends (it may end sooner). `u64::MAX` if the probe has no lease.
        retry_after_ns: u64,
    },
}

/// What a completion changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BreakerChange {
    /// Nothing.
    None,
    /// It opened; the caller tells observers.
    Opened {
        /// The ratio or count that was over the threshold; 1.0 after a bad probe.
        value: f64,
    },
    /// It closed: the caller has stored [`BreakerTally::cleared`] before it stores this.
    Closed,
}

/// A state word taken apart.
#[derive(Debug, Clone, Copy)]
struct BreakerWord {
    state: BreakerState,
    generation: u16,
    time_ms: u64,
}

const GENERATION_MASK: u16 = (1 << 14) - 1;
const TIME_MAX_MS: u64 = (1 << 48) - 1;

impl BreakerWord {
    const fn unpack(word: u64) -> Self {
        Self {
            state: match word >> 62 {
                1 => BreakerState::Open,
                2 => BreakerState::HalfOpen,
                _ => BreakerState::Closed,
            },
            generation: (word >> 48 & GENERATION_MASK as u64) as u16,
            time_ms: word & TIME_MAX_MS,
        }
    }

    const fn word(self) -> u64 {
        let state = match self.state {
            BreakerState::Closed => 0,
            BreakerState::Open => 1,
            BreakerState::HalfOpen => 2,
        };
        state << 62 | (self.generation as u64) << 48 | self.time_ms
    }

    /// Time from `now_ns` to the time in the word.
    fn until_ns(self, now_ns: u64) -> u64 {
        self.time_ms
            .saturating_mul(NS_PER_MS)
            .saturating_sub(now_ns)
    }

    /// Open, a generation on, until `retry_at_ns`.
    fn tripped(self, retry_at_ns: u64) -> Self {
        Self {
            state: BreakerState::Open,
            generation: self.generation.wrapping_add(1) & GENERATION_MASK,
            time_ms: ms(retry_at_ns),
        }
    }
}

/// The generation in which a closed breaker admits, read off its state word; `None` if it is not
/// closed. For callers that look closely only where there is something to see.
#[inline]
pub const fn closed(word: u64) -> Option<u16> {
    if word >> 62 == 0 {
        Some((word >> 48) as u16)
    } else {
        None
    }
}

/// Whether a closed breaker without quirks stays closed with this tally; mostly that takes one compare.
#[inline]
pub fn stays_closed(trip: BreakerTrip, min_requests: u32, tally: BreakerTally) -> bool {
    tally.bad() == 0 || tally.all() < min_requests || trip.over(tally, Quirks::None).is_none()
}

/// How long an open breaker refuses yet, ns; `None` if it is closed, half-open or due for a probe.
#[inline]
pub fn open_for_ns(word: u64, now_ns: u64) -> Option<u64> {
    let held = BreakerWord::unpack(word);
    let left_ns = held.until_ns(now_ns);
    (held.state == BreakerState::Open && left_ns > 0).then_some(left_ns)
}

/// ms, rounded up so that nothing comes early.
fn ms(ns: u64) -> u64 {
    ns.div_ceil(NS_PER_MS).min(TIME_MAX_MS)
}

impl Breaker {
    /// The lease a probe gets if the rule says nothing: the recovery time, at least a second.
    pub fn default_lease_ns(recovery_ns: u64) -> u64 {
        recovery_ns.max(NS_PER_S)
    }

    /// The state at `now_ns`.
    pub fn state(&self, word: u64, now_ns: u64) -> BreakerState {
        self.at(word, now_ns).state
    }

    /// Time from `now_ns` until the next probe (open), or until the lease of the present one ends
    /// (half-open), ns; 0 when closed.
    pub fn left_ns(&self, word: u64, now_ns: u64) -> u64 {
        match self.at(word, now_ns) {
            held if held.state == BreakerState::Closed => 0,
            held => held.until_ns(now_ns),
        }
    }

    /// Whether the breaker opened between two of its words.
    pub const fn opened(before: u64, after: u64) -> bool {
        BreakerWord::unpack(before).generation != BreakerWord::unpack(after).generation
    }

    /// Asks for a call at `now_ns`.
    #[inline]
    pub fn enter(&self, word: u64, now_ns: u64) -> (BreakerAnswer, u64) {
        let held = self.at(word, now_ns);
        let (admission, next) = match held.state {
            BreakerState::Closed => Self::admitting(held),
            BreakerState::Open => self.refusing(held, now_ns),
            BreakerState::HalfOpen => self.probing(held, now_ns),
        };
        (admission, next.word())
    }

    #[inline]
    const fn admitting(held: BreakerWord) -> (BreakerAnswer, BreakerWord) {
        let generation = held.generation;
        (BreakerAnswer::Pass { generation }, held)
    }

    fn refusing(&self, held: BreakerWord, now_ns: u64) -> (BreakerAnswer, BreakerWord) {
        let retry_after_ns = held.until_ns(now_ns);
        if retry_after_ns > 0 {
            return (BreakerAnswer::Refuse { retry_after_ns }, held);
        }
        let lease_end_ms = if self.quirks.wanted() {
            TIME_MAX_MS
        } else {
            ms(now_ns.saturating_add(self.lease_ns))
        };
        let probe = BreakerWord {
            state: BreakerState::HalfOpen,
            time_ms: lease_end_ms,
            ..held
        };
        let generation = held.generation;
        (BreakerAnswer::Probe { generation }, probe)
    }

    fn probing(&self, held: BreakerWord, now_ns: u64) -> (BreakerAnswer, BreakerWord) {
        let retry_after_ns = if self.quirks.wanted() {
            u64::MAX
        } else {
            held.until_ns(now_ns)
        };
        (BreakerAnswer::Refuse { retry_after_ns }, held)
    }

    /// Tells of a completion at `now_ns`, already added to `tally`. `generation` is that of the
    /// call's admission; `None` if it was admitted before this breaker was there.
    #[inline]
    pub fn complete(
        &self,
        word: u64,
        tally: BreakerTally,
        call: Completion,
        now_ns: u64,
    ) -> (BreakerChange, u64) {
        let held = self.at(word, now_ns);
        let decides = self.quirks.wanted() || call.generation == Some(held.generation);
        let (change, next) = match held.state {
            BreakerState::Closed if decides => self.judge(held, tally, now_ns),
            BreakerState::HalfOpen if decides => self.close_or_trip(held, call.is_bad, now_ns),
            BreakerState::Closed | BreakerState::Open | BreakerState::HalfOpen => {
                (BreakerChange::None, held)
            }
        };
        (change, next.word())
    }

    fn judge(
        &self,
        held: BreakerWord,
        tally: BreakerTally,
        now_ns: u64,
    ) -> (BreakerChange, BreakerWord) {
        if tally.all() < self.min_requests {
            return (BreakerChange::None, held);
        }
        match self.trip.over(tally, self.quirks) {
            Some(value) => (BreakerChange::Opened { value }, self.trip_at(held, now_ns)),
            None => (BreakerChange::None, held),
        }
    }

    fn close_or_trip(
        &self,
        held: BreakerWord,
        is_bad: bool,
        now_ns: u64,
    ) -> (BreakerChange, BreakerWord) {
        if is_bad {
            return (
                BreakerChange::Opened { value: 1.0 },
                self.trip_at(held, now_ns),
            );
        }
        let closed = BreakerWord {
            state: BreakerState::Closed,
            time_ms: 0,
            ..held
        };
        (BreakerChange::Closed, closed)
    }

    /// The word after the probe of that generation was refused by a later rule or ended without an
    /// outcome: open, with the next probe admitted at once.
    pub fn put_back(&self, word: u64, generation: u16, now_ns: u64) -> u64 {
        let held = self.at(word, now_ns);
        if held.state != BreakerState::HalfOpen || held.generation != generation {
            return held.word();
        }
        let open = BreakerWord {
            state: BreakerState::Open,
            time_ms: 0,
            ..held
        };
        open.word()
    }

    fn trip_at(&self, held: BreakerWord, now_ns: u64) -> BreakerWord {
        held.tripped(now_ns.saturating_add(self.recovery_ns))
    }

    /// The word at `now_ns`: a probe whose lease ran out has tripped the breaker again, just then.
    #[inline]
    fn at(&self, word: u64, now_ns: u64) -> BreakerWord {
        let held = BreakerWord::unpack(word);
        let has_lease = held.state == BreakerState::HalfOpen && !self.quirks.wanted();
        if has_lease && held.until_ns(now_ns) == 0 {
            return self.trip_at(held, held.time_ms.saturating_mul(NS_PER_MS));
        }
        held
    }
}

/// A call that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Slow or failed, see [`BreakerTrip::is_bad`].
    pub is_bad: bool,
    /// Generation of its admission.
    pub generation: Option<u16>,
}
