//! Which clock the board names: the time stamp counter where it can be trusted, else the kernel's.
//!
//! The counter is trusted only where the processor says that it is constant and never stops *and*
//! the kernel itself keeps time by it. The calibration is refined as the agent runs, since the
//! kernel's clock is slewed by NTP.

use std::fs;
use std::path::{Path, PathBuf};

use tidegate_segment::board::ClockSource;
use tidegate_segment::clock::{Calibration, Reading};

/// Processor flags without which the counter does not tell the time.
const FLAGS: [&str; 2] = ["constant_tsc", "nonstop_tsc"];

/// The kernel's clock source, from the root of /sys.
const CURRENT: &str = "devices/system/clocksource/clocksource0/current_clocksource";

/// Time between the first two readings, ns: 20 ns of error are 0.2 ppm of it.
pub const FIRST_CALIBRATION_NS: u64 = 100_000_000;

/// Time between calibrations after that, ns.
const CALIBRATION_NS: u64 = 1_000_000_000;

/// Where to look whether the counter can be trusted.
#[derive(Debug, Clone)]
pub struct CounterTrust {
    cpuinfo: PathBuf,
    current: PathBuf,
}

impl CounterTrust {
    /// Looks below these roots, `/proc` and `/sys` on a real host.
    pub fn new(proc_root: &Path, sys_root: &Path) -> Self {
        Self {
            cpuinfo: proc_root.join("cpuinfo"),
            current: sys_root.join(CURRENT),
        }
    }

    /// Whether the counter can be trusted.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn check(&self) -> Result<(), String> {
        let cpuinfo = read(&self.cpuinfo)?;
        let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
        let flags = flags.unwrap_or_default();
        for flag in FLAGS {
            if !flags.split_ascii_whitespace().any(|word| word == flag) {
                return Err(format!("the processor does not say {flag}"));
            }
        }
        self.check_kernel()
    }

    /// Whether the kernel still keeps time by the counter: the part that can change.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn check_kernel(&self) -> Result<(), String> {
        let current = read(&self.current)?;
        match current.trim() {
            "tsc" => Ok(()),
            other => Err(format!("the kernel's clock source is {other}, not tsc")),
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Turns readings of both clocks into what the board should name.
#[derive(Debug)]
pub struct Calibrator {
    last: Reading,
    interval_ns: u64,
}

impl Calibrator {
    /// Begins with a first reading; until the second the board names the kernel's clock.
    pub const fn new(first: Reading) -> Self {
        Self {
            last: first,
            interval_ns: FIRST_CALIBRATION_NS,
        }
    }

    /// Whether another reading is due at `now_ns`.
    pub const fn due(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.last.ns) >= self.interval_ns
    }

    /// The source to publish after another reading.
    pub fn next(&mut self, reading: Reading) -> ClockSource {
        let calibration = Calibration::between(self.last, reading);
        self.last = reading;
        self.interval_ns = CALIBRATION_NS;
        calibration.map_or(ClockSource::Monotonic, ClockSource::Counter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trust(flags: &str, source: &str) -> Result<(), String> {
        let root = tempfile::tempdir().unwrap();
        let trust = CounterTrust::new(root.path(), root.path());
        fs::write(
            &trust.cpuinfo,
            format!("processor\t: 0\nflags\t\t: fpu {flags}\n"),
        )
        .unwrap();
        fs::create_dir_all(trust.current.parent().unwrap()).unwrap();
        fs::write(&trust.current, format!("{source}\n")).unwrap();
        trust.check()
    }

    #[test]
    fn the_counter_needs_both_flags_and_the_kernels_trust() {
        assert_eq!(trust("constant_tsc nonstop_tsc", "tsc"), Ok(()));
        assert_eq!(
            trust("constant_tsc", "tsc"),
            Err("the processor does not say nonstop_tsc".to_owned())
        );
        assert_eq!(
            trust("constant_tsc nonstop_tsc", "hpet"),
            Err("the kernel's clock source is hpet, not tsc".to_owned())
        );
    }

    #[test]
    fn a_host_without_these_files_says_which_is_missing() {
        let root = tempfile::tempdir().unwrap();
        let error = CounterTrust::new(root.path(), root.path()).check();
        assert!(error.unwrap_err().contains("cpuinfo"));
    }

    #[test]
    fn the_first_calibration_comes_soon_and_the_next_each_second() {
        let mut calibrator = Calibrator::new(Reading { tsc: 0, ns: 0 });
        assert!(!calibrator.due(FIRST_CALIBRATION_NS - 1));
        assert!(calibrator.due(FIRST_CALIBRATION_NS));
        let second = Reading {
            tsc: 3 * FIRST_CALIBRATION_NS,
            ns: FIRST_CALIBRATION_NS,
        };
        let ClockSource::Counter(calibration) = calibrator.next(second) else {
            panic!("two readings make a calibration");
        };
        assert_eq!(calibration.at(second.tsc), second.ns);
        assert!(!calibrator.due(second.ns + CALIBRATION_NS - 1));
        assert!(calibrator.due(second.ns + CALIBRATION_NS));
    }

    #[test]
    fn a_counter_that_stood_still_gives_way_to_the_kernels_clock() {
        let mut calibrator = Calibrator::new(Reading { tsc: 5, ns: 0 });
        let still = Reading {
            tsc: 5,
            ns: FIRST_CALIBRATION_NS,
        };
        assert_eq!(calibrator.next(still), ClockSource::Monotonic);
    }
}
