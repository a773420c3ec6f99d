//! Counts of `/proc/stat` that no running machine has.

use super::super::parse::proc_stat::ProcStat;
use crate::procfs::NoValue;

/// Most threads that Linux can number.
const THREADS_MAX: u64 = 1 << 22;

/// Puts a fault in place of each count that cannot be true. The reader itself runs and was switched to: a sandbox that
/// shows zeros for that tells nothing. And no more tasks run, or are blocked, than there are threads.
pub(super) fn check(stat: &mut ProcStat, threads: Result<u64, NoValue>) {
    let most = threads.unwrap_or(THREADS_MAX).min(THREADS_MAX);
    let fits = |count: u64| {
        let is_more = count > most;
        (!is_more).then_some(count).ok_or(NoValue::MoreThanThreads)
    };
    let told = |count: u64| (count > 0).then_some(count).ok_or(NoValue::NotTold);
    let running = stat.running.and_then(told);
    if running == Err(NoValue::NotTold) {
        stat.blocked = stat.blocked.and(Err(NoValue::NotTold));
    }
    stat.running = running.and_then(fits);
    stat.blocked = stat.blocked.and_then(fits);
    stat.switches = stat.switches.and_then(told);
    if stat.times.is_ok_and(|times| times.total == 0) {
        stat.times = Err(NoValue::NotTold);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::parse::proc_stat;
    use super::*;
    use proptest::prelude::*;

    fn checked(
        running: u64,
        blocked: u64,
        threads: Result<u64, NoValue>,
    ) -> [Result<u64, NoValue>; 2] {
        let text = format!("procs_running {running}\nprocs_blocked {blocked}\n");
        let mut stat = proc_stat::parse(text.as_bytes());
        check(&mut stat, threads);
        [stat.running, stat.blocked]
    }

    #[test]
    fn field_s7_more_tasks_than_threads_are_not_measured() {
        let wrong = Err(NoValue::MoreThanThreads);
        let wrapped = u64::MAX;
        assert_eq!(checked(wrapped, wrapped, Ok(133)), [wrong, wrong]);
        assert_eq!(checked(4_194_305, 1, Err(NoValue::Empty)), [wrong, Ok(1)]);
        assert_eq!(checked(134, 133, Ok(133)), [wrong, Ok(133)]);
        assert_eq!(checked(133, 0, Ok(133)), [Ok(133), Ok(0)]);
    }

    #[test]
    fn field_s8_zeros_of_a_sandbox_are_not_measured() {
        let zero = Err(NoValue::NotTold);
        assert_eq!(checked(0, 0, Ok(0)), [zero, zero]);
        let mut stat = proc_stat::parse(b"cpu  0 0 0 0 0 0 0 0 0 0\nctxt 0\n");
        check(&mut stat, Ok(0));
        assert_eq!(stat.times, Err(NoValue::NotTold));
        assert_eq!(stat.switches, Err(NoValue::NotTold));
    }

    proptest! {
        #[test]
        fn field_s7_no_count_is_over_the_threads(running: u64, blocked: u64, threads: u64) {
            for told in checked(running, blocked, Ok(threads)).into_iter().flatten() {
                prop_assert!(told <= threads && told <= THREADS_MAX);
            }
        }
    }
}
