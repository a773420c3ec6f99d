//! CPUs that the operator declares for a group, in place of those that quota and CPU set allow.

use tidegate_abi::signal::SignalId;

use crate::signal::Readings;

/// Puts so many CPUs into a group's readings, and every share of its CPUs with them; `cpus` is
/// over 0.
pub(super) fn put(readings: &mut Readings, cpus: f64) {
    let measured = readings.get(SignalId::EffectiveCpus).get();
    let used = readings.get(SignalId::UsedCpus).get();
    readings.set(SignalId::EffectiveCpus, Ok(cpus));
    readings.set(SignalId::Cpu, used.map(|used| used / cpus));
    for part in [SignalId::CpuUser, SignalId::CpuSystem] {
        let share = readings.get(part).get();
        let share = share.and_then(|share| Ok(share * measured? / cpus));
        readings.set(part, share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procfs::{Missing, NoValue};

    #[test]
    fn shares_are_of_the_declared_cpus() {
        let mut readings = Readings::new();
        for (id, value) in [
            (SignalId::EffectiveCpus, 4.0),
            (SignalId::UsedCpus, 1.2),
            (SignalId::Cpu, 0.3),
            (SignalId::CpuUser, 0.25),
            (SignalId::CpuSystem, 0.05),
            (SignalId::Threads, 7.0),
        ] {
            readings.set(id, Ok(value));
        }
        put(&mut readings, 1.5);
        let near = |id, expected: f64| {
            let value = readings.value(id).expect("it is measured");
            assert!((value - expected).abs() < 1e-9, "{id:?} is {value}");
        };
        near(SignalId::EffectiveCpus, 1.5);
        near(SignalId::Cpu, 0.8);
        near(SignalId::CpuUser, 1.0 / 1.5);
        near(SignalId::CpuSystem, 0.2 / 1.5);
        near(SignalId::Threads, 7.0);
    }

    #[test]
    fn what_was_not_measured_stays_so_and_says_why() {
        let mut readings = Readings::new();
        let missing = Missing {
            source: "cpu.stat",
            fault: NoValue::FirstSample,
        };
        readings.set(SignalId::UsedCpus, Err(missing));
        put(&mut readings, 1.5);
        assert_eq!(readings.get(SignalId::Cpu).get(), Err(missing));
        assert_eq!(readings.value(SignalId::EffectiveCpus), Some(1.5));
        assert_eq!(readings.value(SignalId::CpuUser), None);
    }
}
