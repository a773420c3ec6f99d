//! The host in fixture trees, and this machine itself.

use std::path::Path;

use tidegate_abi::signal::SignalId;

use super::super::reading::Readings;
use super::super::sampler::Sampler;
use super::HostSignals;
use crate::procfs::NoValue;
use crate::procfs::Roots;
use crate::procfs::kept_file::ReadBuffer;

fn host_in(dir: &Path) -> HostSignals {
    HostSignals::new(&Roots {
        proc: dir.to_path_buf(),
        cgroup: dir.to_path_buf(),
    })
}

fn sampled(stats: &[&str]) -> Readings {
    let dir = tempfile::tempdir().unwrap();
    let mut host = host_in(dir.path());
    let (mut buffer, mut out) = (ReadBuffer::new(), Readings::new());
    for (tick, stat) in (1..).zip(stats) {
        std::fs::write(dir.path().join("stat"), stat).unwrap();
        host.sample(tick * 100_000_000, &mut buffer, &mut out);
    }
    out
}

#[test]
fn steal_is_told_apart_and_is_not_idle() {
    let out = sampled(&[
        "cpu  1 0 0 0 0 0 0 0 0 0\ncpu0 0\ncpu1 0\nprocs_running 3\nprocs_blocked 1\n",
        "cpu  21 10 8 40 10 1 1 10 5 0\ncpu0 0\ncpu1 0\nprocs_running 4\nprocs_blocked 2\n",
    ]);
    let value = |id| out.value(id).unwrap();
    assert!((value(SignalId::Cpu) - 0.5).abs() < 1e-9);
    assert!((value(SignalId::Steal) - 0.1).abs() < 1e-9);
    assert!((value(SignalId::CpuUser) - 0.3).abs() < 1e-9);
    assert!((value(SignalId::CpuSystem) - 0.1).abs() < 1e-9);
    assert!((value(SignalId::UsedCpus) - 0.8).abs() < 1e-9);
    assert!((value(SignalId::EffectiveCpus) - 2.0).abs() < 1e-9);
    assert!((value(SignalId::Runnable) - 4.0).abs() < 1e-9);
    assert!((value(SignalId::Blocked) - 2.0).abs() < 1e-9);
}

#[test]
fn a_rate_is_missing_until_there_are_two_good_samples() {
    let cpu = |stats: &[&str]| sampled(stats).get(SignalId::Cpu).get().unwrap_err().fault;
    assert_eq!(cpu(&["cpu  1 1 1 1\n"]), NoValue::FirstSample);
    assert_eq!(
        cpu(&["cpu  1 1 1 1\n", "cpu  1 1 1 1\n"]),
        NoValue::NoTimePassed
    );
    assert_eq!(
        cpu(&["cpu  1 1 1 9\n", "cpu  9 9 9 8\n"]),
        NoValue::WentBack
    );
    assert_eq!(cpu(&["cpu  1 1 1 9\n", ""]), NoValue::Empty);
    assert_eq!(
        cpu(&["cpu  1 1 1 9\n", "intr 5\n"]),
        NoValue::NoField("cpu")
    );
}

#[test]
fn a_load_average_that_stands_still_over_changing_tasks_is_not_a_value() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = host_in(dir.path());
    let (mut buffer, mut out) = (ReadBuffer::new(), Readings::new());
    std::fs::write(dir.path().join("loadavg"), "0.72 0.29 0.13 1/87 6277\n").unwrap();
    for tick in 1..=60 {
        assert!(out.get(SignalId::Load1).value().is_some() || tick == 1);
        let stat = format!("procs_running {}\nprocs_blocked 0\n", 1 + tick % 5);
        std::fs::write(dir.path().join("stat"), stat).unwrap();
        host.sample(tick * 100_000_000, &mut buffer, &mut out);
    }
    for id in [SignalId::Load1, SignalId::Load5, SignalId::Load15] {
        assert_eq!(out.get(id).get().unwrap_err().fault, NoValue::Frozen);
    }
}

#[test]
fn the_real_host_tells_its_signals() {
    let mut host = HostSignals::new(&Roots::default());
    let (mut buffer, mut out) = (ReadBuffer::new(), Readings::new());
    host.sample(1, &mut buffer, &mut out);
    for id in [SignalId::EffectiveCpus, SignalId::Load1, SignalId::Runnable] {
        assert!(out.value(id).is_some(), "{:?}", out.get(id));
    }
    assert_eq!(
        out.get(SignalId::Cpu).get().unwrap_err().fault,
        NoValue::FirstSample
    );
}

#[test]
fn without_any_file_every_signal_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let mut sampler = Sampler::new(Roots {
        proc: dir.path().to_path_buf(),
        cgroup: dir.path().to_path_buf(),
    });
    sampler.sample(1);
    for (id, reading) in sampler.host().iter() {
        let missing = reading.get().unwrap_err();
        assert_ne!(missing.fault, NoValue::NotSampled, "{id:?}");
    }
}

/// The compiler leads from a new signal to its unit and no further: this test leads to its readers. Each sets it, or
/// says that it has none, as the tables of `host_only` and `group_only` signals do.
#[test]
fn field_o14_every_signal_has_a_reader_for_a_group_too() {
    let mut sampler = Sampler::new(Roots::default());
    // Where no hierarchy is in sight there is no group to ask.
    let Ok(_own) = sampler.watch_own() else {
        return;
    };
    // Threads are looked at in turns.
    for second in 1..100 {
        sampler.sample(second * 1_000_000_000);
    }
    let (_key, group) = sampler.groups().next().unwrap();
    for readings in [sampler.host(), group.readings()] {
        for (id, reading) in readings.iter() {
            let fault = reading.get().err().map(|missing| missing.fault);
            if id == SignalId::AcceptQueue {
                // The tick sums it, from listeners that services have shown (control/listeners.rs).
                continue;
            }
            assert_ne!(
                fault,
                Some(NoValue::NotSampled),
                "nobody reads {id:?}: see agent/src/signal/host, cgroup and kernel.rs"
            );
        }
    }
}

#[test]
fn waits_switches_and_threads_of_the_host_are_told_where_the_kernel_does() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = host_in(dir.path());
    let (mut buffer, mut out) = (ReadBuffer::new(), Readings::new());
    for (second, wait_ns, switches) in [(1, 5, 100), (2, 3_000_000_005_u64, 400)] {
        let schedstat = format!("version 17\ncpu0 0 0 0 0 0 0 0 {wait_ns} 0\n");
        std::fs::write(dir.path().join("schedstat"), schedstat).unwrap();
        std::fs::write(dir.path().join("stat"), format!("ctxt {switches}\n")).unwrap();
        std::fs::write(dir.path().join("loadavg"), "0.72 0.29 0.13 1/87 6277\n").unwrap();
        host.sample(second * 1_000_000_000, &mut buffer, &mut out);
    }
    let told = [
        SignalId::RunqueueWait,
        SignalId::ContextSwitches,
        SignalId::Threads,
    ];
    let told = told.map(|id| format!("{:.0}", out.value(id).unwrap()));
    assert_eq!(told, ["3", "300", "87"]);
}
