//! CPU quotas: `cpu.max` of cgroup v2, `cpu.cfs_quota_us` and `cpu.cfs_period_us` of v1.

use super::super::meter::to_f64;
use crate::procfs::NoValue;
use crate::procfs::parse::{number, sole_number, words};

/// What a group may run for in each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quota {
    /// Run time in each period, over all CPUs; never 0.
    pub(crate) run_us: u64,
    /// Length of a period; never 0.
    pub(crate) period_us: u64,
}

impl Quota {
    fn new(run_us: u64, period_us: u64) -> Result<Self, NoValue> {
        match (run_us, period_us) {
            (0, _) => Err(NoValue::Malformed("the quota of 0")),
            (_, 0) => Err(NoValue::Malformed("the period of 0")),
            _ => Ok(Self { run_us, period_us }),
        }
    }

    /// The quota as a number of CPUs.
    pub(crate) fn cpus(self) -> f64 {
        to_f64(self.run_us) / to_f64(self.period_us)
    }
}

/// Reads `cpu.max`: `max 100000`, `200000 100000`, or `max` alone. `None` is "no limit here".
///
/// # Errors
/// [`NoValue::Malformed`] or [`NoValue::NoField`]; a quota or a period of 0 is not a limit but a fault.
pub(crate) fn parse_max(bytes: &[u8]) -> Result<Option<Quota>, NoValue> {
    let mut words = words(bytes);
    let run = match words.next() {
        None | Some(b"max") => return Ok(None),
        Some(word) => number(word).ok_or(NoValue::Malformed("the quota"))?,
    };
    let period = words.next().ok_or(NoValue::NoField("period"))?;
    Quota::new(run, number(period).ok_or(NoValue::Malformed("the period"))?).map(Some)
}

/// Reads `cpu.cfs_quota_us`; a negative number is "no limit here", `None`.
///
/// # Errors
/// [`NoValue::Malformed`] if it is not a number.
pub(crate) fn parse_cfs_quota(bytes: &[u8]) -> Result<Option<u64>, NoValue> {
    let word = bytes.trim_ascii();
    let (negative, digits) = match word.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, word),
    };
    let run_us = number(digits).ok_or(NoValue::Malformed("the quota"))?;
    Ok((!negative).then_some(run_us))
}

/// Joins the quota of v1 with the content of `cpu.cfs_period_us`.
///
/// # Errors
/// [`NoValue::Malformed`] or [`NoValue::Empty`].
pub(crate) fn join_cfs_period(run_us: u64, period: &[u8]) -> Result<Quota, NoValue> {
    Quota::new(run_us, sole_number(period, "the period")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn max_is_no_limit_in_each_of_its_spellings() {
        for text in ["max 100000\n", "max 100000", "max", "max\n", "", "\n"] {
            assert_eq!(parse_max(text.as_bytes()), Ok(None), "{text:?}");
        }
        let two = Quota {
            run_us: 200_000,
            period_us: 100_000,
        };
        assert_eq!(parse_max(b"200000 100000"), Ok(Some(two)));
    }

    #[test]
    fn a_zero_is_a_fault_and_not_zero_cpus() {
        for text in ["0 100000", "100000 0", "100000", "-1 100000", "a b", "1 b"] {
            assert!(parse_max(text.as_bytes()).is_err(), "{text:?}");
        }
        join_cfs_period(0, b"100000\n").unwrap_err();
        join_cfs_period(1, b"0\n").unwrap_err();
        assert_eq!(join_cfs_period(1, b""), Err(NoValue::Empty));
    }

    #[test]
    fn the_older_files_say_minus_one_for_no_limit() {
        assert_eq!(parse_cfs_quota(b"-1\n"), Ok(None));
        assert_eq!(parse_cfs_quota(b"20000\n"), Ok(Some(20_000)));
        for text in ["", "-", "--1", "max", "1 2"] {
            assert!(parse_cfs_quota(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_quota_above_zero_or_a_fault(bytes: Vec<u8>) {
            let _read = parse_cfs_quota(&bytes);
            if let Ok(Some(quota)) = parse_max(&bytes) {
                prop_assert!(quota.run_us > 0 && quota.period_us > 0);
            }
        }
    }
}
