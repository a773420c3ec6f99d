//! Monotonic time: the time stamp counter with the board's calibration, or the kernel's clock.
//!
//! Reading the clock is the largest single cost of a decision. The counter is used only where the
//! agent found it constant, never stopping and chosen by the kernel itself; the agent watches that
//! on each tick and switches it off on the board for everybody at once.
#![cfg_attr(
    not(loom),
    expect(
        unsafe_code,
        reason = "the counter and clock_gettime have no safe form that is as fast"
    )
)]

/// Something that tells the time, ns of `CLOCK_MONOTONIC`. Tests script it.
pub trait Clock {
    /// Time now, ns.
    fn now_ns(&self) -> u64;
}

/// How to turn a counter into ns: `base_ns + (counter × mult) >> 32`, wrapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calibration {
    /// Monotonic ns at the counter's zero; before the clock's own zero where that is the later one.
    pub base_ns: u64,
    /// ns per count, 32 fractional bits.
    pub mult: u64,
}

impl Calibration {
    /// Time of a counter value, ns.
    #[inline(always)]
    pub fn at(self, counter: u64) -> u64 {
        // 584 years of ns fit; what does not is a counter that makes no sense.
        self.base_ns.wrapping_add(scaled(counter, self.mult))
    }

    /// The calibration that two readings of both clocks give.
    ///
    /// `None` if the counter did not advance or the ratio does not fit.
    pub fn between(first: ClockReading, second: ClockReading) -> Option<Self> {
        let counts = u128::from(second.tsc.checked_sub(first.tsc)?);
        let ns = u128::from(second.ns.checked_sub(first.ns)?);
        let mult = u64::try_from((ns << 32).checked_div(counts)?).ok()?;
        Some(Self::through(second, mult))
    }

    /// The calibration of that rate that gives a reading back.
    pub fn through(reading: ClockReading, mult: u64) -> Self {
        Self {
            base_ns: reading.ns.wrapping_sub(scaled(reading.tsc, mult)),
            mult,
        }
    }
}

/// `counter × mult`, without its 32 fractional bits.
#[inline(always)]
fn scaled(counter: u64, mult: u64) -> u64 {
    low_half(u128::from(counter).wrapping_mul(u128::from(mult)) >> 32)
}

/// The low half of a double word.
#[inline(always)]
const fn low_half(value: u128) -> u64 {
    match value.to_le_bytes().first_chunk() {
        Some(low) => u64::from_le_bytes(*low),
        None => 0,
    }
}

/// Both clocks read at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// Time stamp counter.
    pub tsc: u64,
    /// `CLOCK_MONOTONIC`, ns.
    pub ns: u64,
}

/// `CLOCK_MONOTONIC`, ns.
#[cfg(not(loom))]
#[inline(always)]
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a live timespec; this clock always exists. The safe wrappers cost a
    // conversion on a path that runs on every decision.
    let _status: libc::c_int = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let ns = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.wrapping_mul(1_000_000_000).wrapping_add(ns)
}

/// `CLOCK_MONOTONIC` does not exist under loom; time is scripted there.
#[cfg(loom)]
pub fn monotonic_ns() -> u64 {
    0
}

/// The time stamp counter; 0 where the processor has none that user space may read.
#[inline(always)]
pub fn counter() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    {
        // SAFETY: every x86-64 processor has the instruction, and Linux lets user space run it.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(any(not(target_arch = "x86_64"), loom))]
    {
        0
    }
}

/// Reads both clocks as close together as a few tries allow.
pub fn read_both() -> ClockReading {
    let mut best = ClockReading { tsc: 0, ns: 0 };
    let mut best_width = u64::MAX;
    for _try in 0..32_u32 {
        let before = counter();
        let ns = monotonic_ns();
        let width = counter().saturating_sub(before);
        if width < best_width {
            best_width = width;
            best = ClockReading {
                tsc: before.saturating_add(width / 2),
                ns,
            };
        }
    }
    best
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_calibration_gives_back_the_readings_it_was_made_of() {
        let first = ClockReading {
            tsc: 1_000,
            ns: 5_000,
        };
        let second = ClockReading {
            tsc: 3_001_000,
            ns: 1_005_000,
        };
        let calibration = Calibration::between(first, second).unwrap();
        assert_eq!(calibration.at(second.tsc), second.ns);
        let later = calibration.at(second.tsc + 3_000_000) - second.ns;
        assert!(later.abs_diff(1_000_000) <= 1, "{later}");
        // The counter of another core may be behind.
        let behind = second.ns - calibration.at(second.tsc - 300);
        assert!(behind.abs_diff(100) <= 1, "{behind}");
    }

    #[test]
    fn a_counter_that_began_long_before_the_clock_reads_right() {
        // A virtual machine that was moved: the counter is years ahead.
        let first = ClockReading {
            tsc: 300_000_000_000_000_000,
            ns: 50,
        };
        let second = ClockReading {
            tsc: first.tsc + 3_000_000_000,
            ns: first.ns + 1_000_000_000,
        };
        let calibration = Calibration::between(first, second).unwrap();
        assert_eq!(calibration.at(second.tsc), second.ns);
        let later = calibration.at(second.tsc + 3_000_000);
        assert!((later - second.ns).abs_diff(1_000_000) <= 1, "{later}");
    }

    #[test]
    fn a_counter_that_stands_still_gives_no_calibration() {
        let still = ClockReading { tsc: 7, ns: 1 };
        assert_eq!(
            Calibration::between(still, ClockReading { tsc: 7, ns: 9 }),
            None
        );
        assert_eq!(
            Calibration::between(still, ClockReading { tsc: 6, ns: 9 }),
            None
        );
    }
}
