//! Watches whether the time stamp counter may be used, and keeps its calibration fresh.
//!
//! ```text
//!   ┌─────┐  kernel's clock is the counter,   ┌──────────┐  a base line of    ┌────────┐
//!   │ off │ ────────────────────────────────► │ settling │ ─────────────────► │ in use │──┐ its base renewed
//!   └─────┘  and it is constant and never     └──────────┘  100 ms, or 10 s   └────────┘◄─┘ each tick
//!      ▲     stops                                  │       after a fault         │
//!      └────────────────────────────────────────────┴─────────────────────────────┘
//!            the kernel left the counter, or the two clocks differ by more than 100 µs
//! ```
//!
//! The rate of a counter does not change, so it is measured once; where the kernel steers its own clock, by
//! 500 ppm at most, the base of each tick follows. Whatever goes wrong, the next tick tells every reader of the board to ask the kernel instead.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use tidegate_segment::board::ClockSource;
use tidegate_segment::clock::{Calibration, ClockReading, read_both};

const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const CPU_INFO: &str = "/proc/cpuinfo";

/// Shortest base line of the first calibration, ns: the readings are good to some 10 ns.
const SETTLE_NS: u64 = 100_000_000;
/// The same after a fault: a clock that has been wrong has to behave for a while.
const RECOVER_NS: u64 = 10_000_000_000;
/// Most that the two clocks may differ before the counter is given up, ns, after a tick that came at once.
const TOLERANCE_NS: u64 = 100_000;
/// What a kernel that steers its clock as fast as it can adds to that: one part in so many of the time since.
const STEERED: u64 = 2_000;
/// Rates that differ by at most one part in so many are of one counter, measured twice.
const SAME_RATE: u64 = 10_000;

/// The watch over the counter.
#[derive(Debug)]
pub struct ClockWatch {
    current: Option<File>,
    judge: Judge,
}

impl Default for ClockWatch {
    fn default() -> Self {
        Self::new()
    }
}

impl ClockWatch {
    /// A watch that begins with the kernel's clock.
    pub fn new() -> Self {
        let steady = std::fs::read_to_string(CPU_INFO).is_ok_and(|info| is_steady(&info));
        Self {
            current: steady.then(|| File::open(CURRENT).ok()).flatten(),
            judge: Judge::NEW,
        }
    }

    /// Looks at both clocks; what every reader is to use from now on, if that changed.
    pub fn tick(&mut self) -> Option<ClockSource> {
        let trusted = self.current.as_ref().is_some_and(kernel_uses_counter);
        self.judge.tick(trusted.then(read_both))
    }

    /// Whether the counter is in use.
    pub(super) fn uses_counter(&self) -> bool {
        matches!(self.judge.state, State::InUse { .. })
    }
}

fn kernel_uses_counter(current: &File) -> bool {
    let mut name = [0; 16];
    let length = current.read_at(&mut name, 0).unwrap_or(0);
    name.get(..length) == Some(b"tsc\n")
}

/// Whether every processor's counter has a constant rate and never stops.
fn is_steady(cpu_info: &str) -> bool {
    let mut flags = cpu_info
        .lines()
        .filter(|line| line.starts_with("flags"))
        .peekable();
    flags.peek().is_some()
        && flags.all(|line| {
            ["constant_tsc", "nonstop_tsc"]
                .iter()
                .all(|flag| line.split_whitespace().any(|word| word == *flag))
        })
}

/// What is thought of the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Off,
    Settling {
        first: ClockReading,
    },
    InUse {
        calibration: Calibration,
        /// The reading that its base was made of.
        made: ClockReading,
    },
}

/// The state, and what outlives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Judge {
    state: State,
    /// The rate that was in use last.
    rate: Option<u64>,
    faults: u32,
}

impl Judge {
    const NEW: Self = Self {
        state: State::Off,
        rate: None,
        faults: 0,
    };

    /// Takes the reading of a tick; `None` is "the counter must not be used". Gives what readers are to use, if
    /// they are to be told.
    fn tick(&mut self, reading: Option<ClockReading>) -> Option<ClockSource> {
        match (self.state, reading) {
            (State::Off, None) => None,
            (State::Off, Some(first)) => {
                self.state = State::Settling { first };
                None
            }
            (State::Settling { first }, Some(now)) => self.settle(first, now),
            (State::InUse { calibration, made }, Some(now)) => self.renew(calibration, made, now),
            (State::Settling { .. } | State::InUse { .. }, None) => self.give_up(),
        }
    }

    fn settle(&mut self, first: ClockReading, now: ClockReading) -> Option<ClockSource> {
        let needed_ns = if self.faults == 0 {
            SETTLE_NS
        } else {
            RECOVER_NS
        };
        if now.ns.saturating_sub(first.ns) < needed_ns {
            return None;
        }
        let Some(Calibration { mult, .. }) = Calibration::between(first, now) else {
            return self.give_up();
        };
        // A board keeps few rates, and another measurement of the same counter is none.
        let same = |rate: &u64| rate.abs_diff(mult) <= mult / SAME_RATE;
        let rate = self.rate.filter(same).unwrap_or(mult);
        self.rate = Some(rate);
        Some(self.use_from(rate, now))
    }

    fn renew(
        &mut self,
        old: Calibration,
        made: ClockReading,
        now: ClockReading,
    ) -> Option<ClockSource> {
        let steered_ns = now.ns.saturating_sub(made.ns) / STEERED;
        let tolerated_ns = TOLERANCE_NS.saturating_add(steered_ns);
        if old.at(now.tsc).abs_diff(now.ns) > tolerated_ns {
            return self.give_up();
        }
        Some(self.use_from(old.mult, now))
    }

    fn use_from(&mut self, rate: u64, now: ClockReading) -> ClockSource {
        let calibration = Calibration::through(now, rate);
        self.state = State::InUse {
            calibration,
            made: now,
        };
        ClockSource::Counter(calibration)
    }

    fn give_up(&mut self) -> Option<ClockSource> {
        let was_in_use = matches!(self.state, State::InUse { .. });
        self.state = State::Off;
        self.faults = self.faults.saturating_add(1);
        was_in_use.then_some(ClockSource::Monotonic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter of 3 GHz, `ns` after both clocks began, `ahead_ns` wrong.
    fn reading(ns: u64, ahead_ns: u64) -> ClockReading {
        ClockReading {
            tsc: (ns + ahead_ns) * 3,
            ns,
        }
    }

    fn in_use() -> Judge {
        let mut judge = Judge::NEW;
        assert_eq!(judge.tick(Some(reading(0, 0))), None);
        assert_eq!(judge.tick(Some(reading(SETTLE_NS / 2, 0))), None);
        let told = judge.tick(Some(reading(SETTLE_NS, 0)));
        assert!(matches!(told, Some(ClockSource::Counter(_))), "{told:?}");
        judge
    }

    #[test]
    fn the_counter_comes_into_use_and_its_base_follows_the_kernels_clock() {
        let mut judge = in_use();
        let rate = judge.rate;
        // The kernel steers by 500 ppm, one way and then the other; some ticks come late.
        let mut ahead_ns = 0;
        let mut now_ns = SETTLE_NS;
        for (ticks, length_ns) in [(50, 100_000_000), (3, 1_000_000_000), (100, 100_000_000)] {
            for tick in 0..ticks {
                now_ns += length_ns;
                let steered_ns = length_ns / STEERED;
                ahead_ns = if tick % 40 < 20 {
                    ahead_ns + steered_ns
                } else {
                    ahead_ns - steered_ns
                };
                let now = reading(now_ns, ahead_ns);
                let Some(ClockSource::Counter(calibration)) = judge.tick(Some(now)) else {
                    panic!("not renewed at {now_ns}");
                };
                assert!(calibration.at(now.tsc).abs_diff(now_ns) <= 1);
                assert_eq!(Some(calibration.mult), rate, "the rate stays");
            }
        }
    }

    #[test]
    fn a_counter_that_was_given_up_comes_back_with_its_rate() {
        let mut judge = in_use();
        let rate = judge.rate;
        assert_eq!(judge.tick(None), Some(ClockSource::Monotonic));
        let again = SETTLE_NS * 3;
        // Measured a little otherwise than the first time.
        assert_eq!(judge.tick(Some(reading(again, 0))), None);
        judge.tick(Some(reading(again + RECOVER_NS, 300)));
        assert_eq!(judge.rate, rate);
        assert!(
            matches!(judge.state, State::InUse { calibration, .. } if Some(calibration.mult) == rate)
        );
    }

    #[test]
    fn a_counter_that_jumps_or_that_the_kernel_leaves_is_given_up_at_once() {
        for wrong in [Some(reading(SETTLE_NS + 1, TOLERANCE_NS + 1000)), None] {
            let mut judge = in_use();
            assert_eq!(judge.tick(wrong), Some(ClockSource::Monotonic));
            let again = SETTLE_NS * 3;
            assert_eq!(judge.tick(Some(reading(again, 0))), None);
            assert_eq!(judge.tick(Some(reading(again + SETTLE_NS * 2, 0))), None);
            let told = judge.tick(Some(reading(again + RECOVER_NS, 0)));
            assert!(matches!(told, Some(ClockSource::Counter(_))), "{told:?}");
        }
    }

    #[test]
    fn a_counter_that_stands_still_never_comes_into_use() {
        let mut judge = Judge::NEW;
        for tick in 0..100 {
            let still = ClockReading {
                tsc: 7,
                ns: tick * SETTLE_NS,
            };
            assert_eq!(judge.tick(Some(still)), None);
        }
    }

    #[test]
    fn both_flags_are_needed_on_every_processor() {
        let line = |flags: &str| format!("flags\t\t: fpu {flags} sse\n");
        let both = line("constant_tsc nonstop_tsc");
        assert!(is_steady(&format!("{both}bogomips\t: 1\n{both}")));
        assert!(!is_steady(&format!("{both}{}", line("constant_tsc"))));
        assert!(!is_steady(&line("nonstop_tsc_s3 constant_tsc")));
        assert!(!is_steady(""));
    }

    #[test]
    fn this_machine_settles_on_one_clock() {
        let mut watch = ClockWatch::new();
        let first = watch.tick();
        assert_eq!(first, None, "no calibration after one reading");
        let settled = tidegate_segment::clock::monotonic_ns() + SETTLE_NS;
        while tidegate_segment::clock::monotonic_ns() < settled {
            std::hint::spin_loop();
        }
        let counter = matches!(watch.tick(), Some(ClockSource::Counter(_)));
        assert_eq!(counter, watch.uses_counter());
    }
}
