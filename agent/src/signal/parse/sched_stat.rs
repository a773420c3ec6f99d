//! `/proc/PID/task/TID/schedstat` and `/proc/schedstat`: time that tasks ran and waited for a CPU.

use crate::procfs::NoValue;
use crate::procfs::parse::{lines, number, words};

/// What the scheduler tells of one thread since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SchedStat {
    /// Time on a CPU, ns.
    pub(crate) run_ns: u64,
    /// Time ready to run without a CPU, ns.
    pub(crate) wait_ns: u64,
    /// Times it was put on a CPU.
    pub(crate) slices: u64,
}

/// Reads the three numbers of a thread.
///
/// # Errors
/// The name of the number that is missing or malformed.
pub(crate) fn parse(bytes: &[u8]) -> Result<SchedStat, NoValue> {
    let mut words = words(bytes);
    let mut next = |name| {
        let word = words.next().ok_or(NoValue::NoField(name))?;
        number(word).ok_or(NoValue::Malformed(name))
    };
    Ok(SchedStat {
        run_ns: next("run time")?,
        wait_ns: next("wait time")?,
        slices: next("slices")?,
    })
}

/// Reads from `/proc/schedstat` how long tasks waited on all run queues, ns: the eighth number of each
/// line `cpuN`. Time still being waited for is not in it.
///
/// # Errors
/// [`NoValue::NoField`] without any such line, [`NoValue::Malformed`] for a number that is none.
pub(crate) fn parse_host_wait_ns(bytes: &[u8]) -> Result<u64, NoValue> {
    let mut sum = None;
    for line in lines(bytes).filter(|line| line.starts_with(b"cpu")) {
        let word = words(line).nth(8).ok_or(NoValue::NoField("run_delay"))?;
        let wait = number(word).and_then(|wait| wait.checked_add(sum.unwrap_or(0)));
        sum = Some(wait.ok_or(NoValue::Malformed("run_delay"))?);
    }
    sum.ok_or(NoValue::NoField("cpu0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_three_numbers_of_a_thread_are_read() {
        let read = parse(b"192951 133972 2\n").unwrap();
        assert_eq!(
            read,
            SchedStat {
                run_ns: 192_951,
                wait_ns: 133_972,
                slices: 2
            }
        );
        assert_eq!(parse(b""), Err(NoValue::NoField("run time")));
        assert_eq!(parse(b"1 x 2"), Err(NoValue::Malformed("wait time")));
        assert_eq!(parse(b"1 2"), Err(NoValue::NoField("slices")));
    }

    #[test]
    fn the_waits_of_all_run_queues_are_summed() {
        let text = b"version 17\ntimestamp 4295\ncpu0 0 0 0 0 0 0 500 40 9\ndomain0 MC 3 0\n\
            cpu1 0 0 0 0 0 0 600 2 9\n";
        assert_eq!(parse_host_wait_ns(text), Ok(42));
        assert_eq!(
            parse_host_wait_ns(b"version 17\n"),
            Err(NoValue::NoField("cpu0"))
        );
        assert_eq!(
            parse_host_wait_ns(b"cpu0 1 2\n"),
            Err(NoValue::NoField("run_delay"))
        );
        let max = u64::MAX;
        let text = format!("cpu0 0 0 0 0 0 0 0 {max} 0\ncpu1 0 0 0 0 0 0 0 1 0\n");
        assert_eq!(
            parse_host_wait_ns(text.as_bytes()),
            Err(NoValue::Malformed("run_delay"))
        );
    }

    proptest! {
        #[test]
        fn any_bytes_give_numbers_or_a_fault(bytes: Vec<u8>) {
            let _read = (parse(&bytes), parse_host_wait_ns(&bytes));
            let _read = parse_host_wait_ns(&[b"cpu0 ", bytes.as_slice()].concat());
        }
    }
}
