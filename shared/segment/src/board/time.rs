//! Telling the time by the clock that the board names.

use tidegate_abi::board::{ClockWord, header};

use super::Board;
use crate::clock::{self, Calibration, Clock};
use crate::sync::{Ordering, peek};

/// Places of rates count from 1.
const BEFORE_RATES: usize = header::RATES - 1;

/// Out of the way of those who read the counter.
#[inline(never)]
fn apart(kernel_ns: impl Fn() -> u64) -> u64 {
    kernel_ns()
}

impl Clock for Board {
    #[inline(always)]
    fn now_ns(&self) -> u64 {
        self.time_ns()
    }
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
        match self.calibration() {
            Some(calibration) => calibration.at(clock::counter()),
            None => apart(kernel_ns),
        }
    }

    /// The calibration in force; `None` = use the kernel's clock.
    #[inline(always)]
    pub fn calibration(&self) -> Option<Calibration> {
        let header = self.header();
        // Acquire: pairs with the Release in `TickWriter::publish_clock`; the rate that it names is there, and is
        // never written again.
        let word = header[header::CLOCK].load(Ordering::Acquire);
        let place = ClockWord::place(word);
        if place == 0 {
            return None;
        }
        // Relaxed: ordered by the word.
        let mult = peek(header, BEFORE_RATES.saturating_add(place));
        Some(Calibration {
            base_ns: word,
            mult,
        })
    }
}
