//! Telling the time by the clock that the board names.

use tidegate_abi::board::{clock as clock_field, header};
use tidegate_abi::geometry::LINE;

use super::read::TRIES;
use super::{Board, ClockSource};
use crate::clock::{self, Calibration};
use crate::sync::{Ordering, Word, fence, peek};

impl Board {
    /// Time now, ns of `CLOCK_MONOTONIC`, by the clock that the board names.
    #[inline(always)]
    pub fn time_ns(&self) -> u64 {
        match self.counter_ns() {
            Some(now_ns) => now_ns,
            None => self.time_closely_ns(),
        }
    }

    /// The same by the time stamp counter; `None` if the board names another clock, or if the agent
    /// published meanwhile: ask again, with [`Board::calibration`].
    #[inline(always)]
    pub fn counter_ns(&self) -> Option<u64> {
        match self.clock_if_still()? {
            ClockSource::Counter(calibration) => Some(calibration.at(clock::counter())),
            ClockSource::Monotonic => None,
        }
    }

    #[inline(never)]
    fn time_closely_ns(&self) -> u64 {
        match self.calibration() {
            Some(calibration) => calibration.at(clock::counter()),
            None => clock::monotonic_ns(),
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
            tsc: word(clock_field::TSC),
            ns: word(clock_field::NS),
            mult: word(clock_field::MULT),
        };
        let source = match word(clock_field::USE_TSC) {
            1 => ClockSource::Counter(calibration),
            _ => ClockSource::Monotonic,
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
