//! A line of rule state.

use tidegate_abi::ledger::state as field;

use tidegate_limits::breaker;

use super::Ledger;
use crate::board::{PoolSpan, halves, split};
use crate::sync::{Ordering, Word};

/// The last request that a rule refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastRefused {
    /// The value measured.
    pub value: u32,
    /// The limit it was held against.
    pub limit: u32,
    /// When, monotonic ns.
    pub at_ns: u64,
}

impl LastRefused {
    pub(super) fn of(last: &Word, at: &Word) -> Option<Self> {
        let at_ns = at.load(Ordering::Relaxed);
        let (value, limit) = split(last.load(Ordering::Relaxed));
        (at_ns != 0).then_some(Self {
            value,
            limit,
            at_ns,
        })
    }
}

/// How often a breaker came into each state, modulo 2^21 (half-open 2^22).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BreakerChanges {
    /// Opened.
    pub open: u32,
    /// Closed.
    pub closed: u32,
    /// Let a probe through.
    pub half_open: u32,
}

impl BreakerChanges {
    const MASK: u32 = (1 << 21) - 1;
    const PROBES_MASK: u32 = (1 << 22) - 1;

    const fn unpack(word: u64) -> Self {
        Self {
            open: (word & 0x1f_ffff) as u32,
            closed: (word >> 21 & 0x1f_ffff) as u32,
            half_open: (word >> 42 & 0x3f_ffff) as u32,
        }
    }

    const fn pack(self) -> u64 {
        (self.open & Self::MASK) as u64
            | ((self.closed & Self::MASK) as u64) << 21
            | ((self.half_open & Self::PROBES_MASK) as u64) << 42
    }

    const fn and_one(self, to: breaker::BreakerState) -> Self {
        match to {
            breaker::BreakerState::Open => Self {
                open: self.open.wrapping_add(1),
                ..self
            },
            breaker::BreakerState::Closed => Self {
                closed: self.closed.wrapping_add(1),
                ..self
            },
            breaker::BreakerState::HalfOpen => Self {
                half_open: self.half_open.wrapping_add(1),
                ..self
            },
        }
    }

    /// How often it came into a state.
    pub const fn to(self, state: breaker::BreakerState) -> u32 {
        match state {
            breaker::BreakerState::Open => self.open,
            breaker::BreakerState::Closed => self.closed,
            breaker::BreakerState::HalfOpen => self.half_open,
        }
    }
}

/// The state of one rule on one resource.
#[derive(Clone, Copy)]
pub struct RuleState {
    line: &'static [Word; field::WORDS],
}

impl core::fmt::Debug for RuleState {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}

impl Ledger {
    /// A rule's line of state.
    #[inline]
    pub fn state(&self, index: u32) -> Option<RuleState> {
        let line = self.states.get(usize::try_from(index).ok()?)?;
        Some(RuleState { line })
    }

    /// Zeroes a line for a rule that is new there.
    pub fn clear_state(&self, index: u32) {
        if let Some(state) = self.state(index) {
            state
                .line
                .iter()
                .for_each(|word| word.store(0, Ordering::Relaxed));
        }
    }
}

impl Ledger {
    /// Zeroes sets of values for a rule that is new there.
    pub fn clear_sets(&self, sets: PoolSpan) {
        self.places_of(sets)
            .filter(|word| word.load(Ordering::Relaxed) != 0)
            .for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// The words of sets of values.
    pub fn words_of(&self, sets: PoolSpan) -> impl Iterator<Item = u64> {
        // Relaxed: to see whether they change.
        self.places_of(sets)
            .map(|word| word.load(Ordering::Relaxed))
    }

    pub(super) fn places_of(&self, sets: PoolSpan) -> impl Iterator<Item = &'static Word> {
        let start = usize::try_from(sets.start).unwrap_or(usize::MAX);
        let length = usize::try_from(sets.length).unwrap_or(0);
        self.values.iter().skip(start).take(length).flatten()
    }
}

impl RuleState {
    /// The rule's own word.
    #[inline]
    pub const fn word(&self) -> &'static Word {
        &self.line[field::STATE]
    }

    /// Its second word.
    #[inline]
    pub const fn second(&self) -> &'static Word {
        &self.line[field::SECOND]
    }

    /// All words of the line.
    pub fn words(&self) -> [u64; field::WORDS] {
        // Relaxed: to see whether they change.
        self.line
            .each_ref()
            .map(|word| word.load(Ordering::Relaxed))
    }

    /// A word of the line; items of a hot-parameter rule have one each.
    pub fn item(&self, index: usize) -> Option<&'static Word> {
        self.line.get(index)
    }

    /// Counts a request that the rule refused, or would have refused if it did not only observe, and
    /// keeps the value measured and the limit.
    pub fn count_refused(&self, observed: bool, (value, limit): (u32, u32), now_ns: u64) {
        let word = if observed {
            &self.line[field::OBSERVED]
        } else {
            &self.line[field::REFUSED]
        };
        word.count(1);
        // Relaxed: figures for people, each whole by itself.
        self.line[field::LAST].store(halves(value, limit), Ordering::Relaxed);
        self.line[field::LAST_NS].store(now_ns, Ordering::Relaxed);
    }

    /// Value, limit and time of the last request that the rule refused.
    pub fn last_refused(&self) -> Option<LastRefused> {
        LastRefused::of(&self.line[field::LAST], &self.line[field::LAST_NS])
    }

    /// Counts a change of a breaker.
    #[cold]
    pub fn count_change(&self, to: breaker::BreakerState) {
        let _turn: Option<()> = self.line[field::CHANGES].step(|seen| {
            let changes = BreakerChanges::unpack(seen);
            ((), changes.and_one(to).pack())
        });
    }

    /// Changes of a breaker so far.
    pub fn changes(&self) -> BreakerChanges {
        BreakerChanges::unpack(self.line[field::CHANGES].load(Ordering::Relaxed))
    }

    /// Keeps the ratio or count that opened a breaker.
    #[cold]
    pub fn set_opened_by(&self, value: f64) {
        self.line[field::OPENED_BY].store(value.to_bits(), Ordering::Relaxed);
    }

    /// The ratio or count that opened a breaker last; 0 before the first.
    pub fn opened_by(&self) -> f64 {
        let value = f64::from_bits(self.line[field::OPENED_BY].load(Ordering::Relaxed));
        if value.is_finite() { value } else { 0.0 }
    }

    /// Requests that the rule refused, and that it would have refused, free-running.
    pub fn refused_and_observed(&self) -> (u64, u64) {
        let word = |field: usize| crate::sync::peek(self.line, field);
        (word(field::REFUSED), word(field::OBSERVED))
    }
}
