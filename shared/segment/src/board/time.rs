//! Telling the time by the clock that the board names.

use tidegate_abi::board::{clock as clock_field, header};
use tidegate_abi::geometry::LINE;

use super::read::TRIES;
use super::{Board, ClockSource};
use crate::clock::{self, Calibration};
use crate::sync::{Ordering, Word, fence, peek};

/// Out of the way of those who read the counter.
#[inline(never)]
fn apart(kernel_ns: impl Fn() -> u64) -> u64 {
    kernel_ns()
}

impl Board {
    /// Time now, ns of `CLOCK_MONOTONIC`, by the clock that the board names.
    #[inline(always)]
    pub fn time_ns(&self) -> u64 {
        self.time_or(clock::monotonic_ns)
    }

    /// The same, for those to whom the kernel tells another time.
    #[inline(always)]
    pub fn time_or(&self, kernel_ns: impl Fn() -> u64) -> u64 {
        match self.clock_if_still() {
            Some(ClockSource::Counter(calibration)) => calibration.at(clock::counter()),
            Some(ClockSource::Monotonic) => apart(kernel_ns),
            None => self.time_closely_ns(kernel_ns),
        }
    }

    /// The same where the agent published meanwhile.
    #[cold]
    #[inline(never)]
    fn time_closely_ns(&self, kernel_ns: impl Fn() -> u64) -> u64 {
        match self.calibration() {
            Some(calibration) => calibration.at(clock::counter()),
            None => kernel_ns(),
        }
    }

    /// The calibration in force; `None` = use the kernel's clock.
    pub fn calibration(&self) -> Option<Calibration> {
        match (0..TRIES).find_map(|_try| self.clock_if_still()) {
            Some(ClockSource::Counter(calibration)) => Some(calibration),
            Some(ClockSource::Monotonic) | None => None,
        }
    }

    /// One try: the clock source, unless the agent published meanwhile.
    #[inline(always)]
    fn clock_if_still(&self) -> Option<ClockSource> {
        // Acquire: pairs with the Release in `TickWriter::publish_clock`.
        let generation = self.header()[header::CLOCK_GENERATION].load(Ordering::Acquire);
        let set = self.clock_set(generation & 1 != 0)?;
        // Relaxed: ordered by the generation around them.
        let word = |field: usize| peek(set, field);
        let calibration = Calibration {
            base_ns: word(clock_field::BASE_NS),
            mult: word(clock_field::MULT),
        };
        let source = match calibration.mult {
            0 => ClockSource::Monotonic,
            _ => ClockSource::Counter(calibration),
        };
        // Acquire fence: pairs with the Release fence in `TickWriter::publish_clock`; whoever read
        // a word of a newer set sees the newer generation here.
        fence(Ordering::Acquire);
        (peek(self.header(), header::CLOCK_GENERATION) == generation).then_some(source)
    }

    #[inline(always)]
    fn clock_set(&self, odd: bool) -> Option<&'static [Word; LINE]> {
        let [even_start, odd_start] = header::CLOCK_SETS;
        let start = if odd { odd_start } else { even_start };
        self.header().get(start..)?.first_chunk()
    }
}
