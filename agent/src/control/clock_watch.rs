//! Watches whether the time stamp counter may be used, and keeps its calibration fresh.
//!
//! ```text
//!   ┌─────┐  kernel's clock is the counter,   ┌──────────┐  a base line of    ┌────────┐
//!   │ off │ ────────────────────────────────► │ settling │ ─────────────────► │ in use │──┐ renewed
//!   └─────┘  and it is constant and never     └──────────┘  100 ms, or 10 s   └────────┘◄─┘ each second
//!      ▲     stops                                  │       after a fault         │
//!      └────────────────────────────────────────────┴─────────────────────────────┘
//!            the kernel left the counter, or the two clocks differ by more than 100 µs
//! ```
//!
//! Whatever goes wrong, the next tick tells every reader of the board to ask the kernel instead.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use tidegate_segment::board::ClockSource;
use tidegate_segment::clock::{Calibration, Reading, read_both};

const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const CPU_INFO: &str = "/proc/cpuinfo";

/// Shortest base line of the first calibration, ns: the readings are good to some 10 ns.
const SETTLE_NS: u64 = 100_000_000;
/// The same after a fault: a clock that has been wrong has to behave for a while.
const RECOVER_NS: u64 = 10_000_000_000;
/// Age at which a calibration is renewed, ns: the kernel steers its clock.
const RENEW_NS: u64 = 1_000_000_000;
/// Most that the two clocks may differ before the counter is given up, ns.
const TOLERANCE_NS: u64 = 100_000;

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
            judge: Judge::Off { faults: 0 },
        }
    }

    /// Looks at both clocks; what every reader is to use from now on, if that changed.
    pub fn tick(&mut self) -> Option<ClockSource> {
        let trusted = self.current.as_ref().is_some_and(kernel_uses_counter);
        self.judge.tick(trusted.then(read_both))
    }

    /// Whether the counter is in use.
    pub(super) fn uses_counter(&self) -> bool {
        matches!(self.judge, Judge::InUse { .. })
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
enum Judge {
    Off {
        faults: u32,
    },
    Settling {
        first: Reading,
        faults: u32,
    },
    InUse {
        calibration: Calibration,
        /// The reading that it was made of last.
        made: Reading,
        faults: u32,
    },
}

impl Judge {
    /// Takes the reading of a tick; `None` is "the counter must not be used".
    fn tick(&mut self, reading: Option<Reading>) -> Option<ClockSource> {
        match (*self, reading) {
            (Self::Off { .. }, None) => None,
            (Self::Off { faults }, Some(first)) => {
                *self = Self::Settling { first, faults };
                None
            }
            (Self::Settling { first, faults }, Some(now)) => self.settle(first, now, faults),
            (
                Self::InUse {
                    calibration,
                    made,
                    faults,
                },
                Some(now),
            ) => self.renew((calibration, made), now, faults),
            (Self::Settling { faults, .. } | Self::InUse { faults, .. }, None) => {
                self.give_up(faults)
            }
        }
    }

    fn settle(&mut self, first: Reading, now: Reading, faults: u32) -> Option<ClockSource> {
        let needed_ns = if faults == 0 { SETTLE_NS } else { RECOVER_NS };
        if now.ns.saturating_sub(first.ns) < needed_ns {
            return None;
        }
        let Some(calibration) = Calibration::between(first, now) else {
            return self.give_up(faults);
        };
        *self = Self::InUse {
            calibration,
            made: now,
            faults,
        };
        Some(ClockSource::Counter(calibration))
    }

    fn renew(
        &mut self,
        (old, made): (Calibration, Reading),
        now: Reading,
        faults: u32,
    ) -> Option<ClockSource> {
        if old.at(now.tsc).abs_diff(now.ns) > TOLERANCE_NS {
            return self.give_up(faults);
        }
        if now.ns.saturating_sub(made.ns) < RENEW_NS {
            return None;
        }
        let calibration = Calibration::between(made, now)?;
        *self = Self::InUse {
            calibration,
            made: now,
            faults,
        };
        Some(ClockSource::Counter(calibration))
    }

    fn give_up(&mut self, faults: u32) -> Option<ClockSource> {
        let was_in_use = matches!(self, Self::InUse { .. });
        *self = Self::Off {
            faults: faults.saturating_add(1),
        };
        was_in_use.then_some(ClockSource::Monotonic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter of 3 GHz, `ns` after both clocks began, `ahead_ns` wrong.
    fn reading(ns: u64, ahead_ns: u64) -> Reading {
        Reading {
            tsc: (ns + ahead_ns) * 3,
            ns,
        }
    }

    fn in_use() -> Judge {
        let mut judge = Judge::Off { faults: 0 };
        assert_eq!(judge.tick(Some(reading(0, 0))), None);
        assert_eq!(judge.tick(Some(reading(SETTLE_NS / 2, 0))), None);
        let told = judge.tick(Some(reading(SETTLE_NS, 0)));
        assert!(matches!(told, Some(ClockSource::Counter(_))), "{told:?}");
        judge
    }

    #[test]
    fn the_counter_comes_into_use_and_its_calibration_is_renewed() {
        let mut judge = in_use();
        assert_eq!(judge.tick(Some(reading(SETTLE_NS + RENEW_NS / 2, 0))), None);
        let Some(ClockSource::Counter(calibration)) =
            judge.tick(Some(reading(SETTLE_NS + RENEW_NS, 0)))
        else {
            panic!("not renewed");
        };
        let told = calibration.at(3 * 5_000_000_000);
        assert!(told.abs_diff(5_000_000_000) <= 5, "{told}");
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
        let mut judge = Judge::Off { faults: 0 };
        for tick in 0..100 {
            let still = Reading {
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
