//! `/proc/stat`: CPU times since boot, tasks that run or are blocked, CPUs that are online.

use super::cpu_set::CpuSet;
use crate::procfs::NoValue;
use crate::procfs::parse::{field, number, words};

/// CPU times of all CPUs since boot, in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CpuTimes {
    /// All time, guests counted once.
    pub(crate) total: u64,
    /// Idle, with or without storage to wait for.
    pub(crate) idle: u64,
    /// User code.
    pub(crate) user: u64,
    /// Kernel code, with interrupts.
    pub(crate) system: u64,
    /// Taken by the hypervisor; not told before kernel 2.6.11.
    pub(crate) steal: Option<u64>,
}

/// What `/proc/stat` tells; each part may be missing alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcStat {
    /// The line `cpu`.
    pub(crate) times: Result<CpuTimes, NoValue>,
    /// CPUs with a line of their own: those that are online. Never empty.
    pub(crate) online: Result<CpuSet, NoValue>,
    /// Tasks that run or wait for a CPU, the reader included.
    pub(crate) running: Result<u64, NoValue>,
    /// Tasks in uninterruptible sleep.
    pub(crate) blocked: Result<u64, NoValue>,
    /// Context switches since boot.
    pub(crate) switches: Result<u64, NoValue>,
}

impl ProcStat {
    /// What a file tells that could not be read.
    pub(crate) fn missing(fault: NoValue) -> Self {
        let (running, blocked, switches) = (Err(fault), Err(fault), Err(fault));
        Self {
            times: Err(fault),
            online: Err(fault),
            running,
            blocked,
            switches,
        }
    }
}

/// Reads the file; lines it does not know are skipped.
pub(crate) fn parse(bytes: &[u8]) -> ProcStat {
    let mut times = Err(NoValue::NoField("cpu"));
    let mut online = CpuSet::EMPTY;
    let lines = bytes.split_inclusive(|&byte| byte == b'\n');
    for rest in lines.filter_map(|line| line.strip_prefix(b"cpu")) {
        match rest.first() {
            Some(b' ') => times = parse_times(rest),
            _ => insert_cpu(&mut online, rest),
        }
    }
    let running = field(bytes, "procs_running");
    let blocked = field(bytes, "procs_blocked");
    let switches = field(bytes, "ctxt");
    let is_none = online.is_empty();
    ProcStat {
        times,
        online: if is_none {
            Err(NoValue::NoField("cpu0"))
        } else {
            Ok(online)
        },
        running,
        blocked,
        switches,
    }
}

/// The times of each CPU, with its number. A line that is cut short or unknown is left out.
pub(crate) fn each_cpu(bytes: &[u8]) -> impl Iterator<Item = (u64, CpuTimes)> {
    let lines = bytes.split_inclusive(|&byte| byte == b'\n');
    let cpus = lines.filter_map(|line| line.strip_prefix(b"cpu"));
    cpus.filter_map(|rest| {
        let end = rest.iter().position(|byte| *byte == b' ')?;
        let (cpu, times) = rest.split_at_checked(end)?;
        Some((number(cpu)?, parse_times(times).ok()?))
    })
}

fn insert_cpu(online: &mut CpuSet, rest: &[u8]) {
    let inserted = words(rest)
        .next()
        .and_then(number)
        .and_then(|cpu| online.insert(cpu));
    // A line such as `cpufuture 1` is unknown, hence skipped.
    let _unknown = inserted.is_none();
}

/// Takes the times of the line `cpu`. A line without its newline was cut: its last number may be
/// short of digits, and a total that jumps would read as an idle machine.
fn parse_times(rest: &[u8]) -> Result<CpuTimes, NoValue> {
    let rest = rest
        .strip_suffix(b"\n")
        .ok_or(NoValue::Malformed("the line cpu, cut short,"))?;
    let mut told = [None; 8];
    for (slot, word) in told.iter_mut().zip(words(rest)) {
        *slot = Some(number(word).ok_or(NoValue::Malformed("cpu"))?);
    }
    let [
        Some(user),
        Some(nice),
        Some(system),
        Some(idle),
        iowait,
        irq,
        softirq,
        steal,
    ] = told
    else {
        return Err(NoValue::NoField("idle"));
    };
    let later = [iowait, irq, softirq].map(|time| time.unwrap_or(0));
    let [iowait, irq, softirq] = later;
    let sum = |times: &[u64]| {
        times
            .iter()
            .try_fold(0_u64, |sum, time| sum.checked_add(*time))
            .ok_or(NoValue::Malformed("cpu"))
    };
    Ok(CpuTimes {
        total: sum(&[
            user,
            nice,
            system,
            idle,
            iowait,
            irq,
            softirq,
            steal.unwrap_or(0),
        ])?,
        idle: sum(&[idle, iowait])?,
        user: sum(&[user, nice])?,
        system: sum(&[system, irq, softirq])?,
        steal,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAT: &[u8] = b"cpu  9624 10 3705 143452 411 1 52 181 7 8\n\
        cpu0 4441 0 1652 72416 53 0 17 93 0 0\n\
        cpu3 5183 0 2052 71036 358 0 35 88 0 0\n\
        intr 134009 0 0\nctxt 218195\nprocs_running 4\nprocs_blocked 2\nsoftirq 78046 0\n";

    #[test]
    fn guests_are_counted_once_and_steal_stands_apart() {
        let stat = parse(STAT);
        let times = stat.times.unwrap();
        assert_eq!(times.total, 9624 + 10 + 3705 + 143_452 + 411 + 1 + 52 + 181);
        assert_eq!((times.idle, times.user), (143_452 + 411, 9634));
        assert_eq!((times.system, times.steal), (3705 + 1 + 52, Some(181)));
        assert_eq!((stat.running, stat.blocked), (Ok(4), Ok(2)));
        assert_eq!(stat.switches, Ok(218_195));
        assert_eq!(stat.online.unwrap().count(), 2);
    }

    #[test]
    fn each_cpu_has_its_times_and_a_cut_line_has_none() {
        let cpus: Vec<_> = each_cpu(STAT)
            .map(|(cpu, times)| (cpu, times.idle))
            .collect();
        assert_eq!(cpus, [(0, 72_416 + 53), (3, 71_036 + 358)]);
        assert_eq!(
            each_cpu(b"cpu  1 2 3 4\ncpu0 1 2\ncpux 1 2 3 4\ncpu1 1 2 3 4").count(),
            0
        );
    }

    #[test]
    fn each_part_is_missing_alone() {
        let stat = parse(b"cpu  1 2 3 4\nprocs_running x\n");
        assert_eq!(stat.times.unwrap().steal, None);
        assert_eq!(stat.running, Err(NoValue::Malformed("procs_running")));
        assert_eq!(stat.blocked, Err(NoValue::NoField("procs_blocked")));
        assert_eq!(stat.online, Err(NoValue::NoField("cpu0")));
    }

    #[test]
    fn cut_at_every_byte_the_times_are_whole_or_missing() {
        let whole = parse(STAT).times;
        for end in 0..STAT.len() {
            let cut = parse(&STAT[..end]).times;
            assert!(cut == whole || cut.is_err(), "cut at {end}: {cut:?}");
        }
    }

    #[test]
    fn numbers_at_the_end_of_their_range_are_a_fault() {
        let max = u64::MAX;
        let sum = format!("cpu  {max} {max} 0 0 0 0 0 0\n");
        for line in [
            sum.as_str(),
            "cpu  18446744073709551616 0 0 0\n",
            "cpu  1 2 3\n",
        ] {
            parse(line.as_bytes()).times.unwrap_err();
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_values_or_faults(bytes: Vec<u8>) {
            let _read = parse(&bytes);
            let _read = parse(&[b"cpu ", bytes.as_slice(), b"\n"].concat());
        }
    }
}
