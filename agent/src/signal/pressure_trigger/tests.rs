//! Triggers on this machine's kernel, and every way in which one refuses them.

use std::process::{Child, Command, Stdio};

use super::*;

/// Longest that the load runs, and so the test.
const LOAD_S: u64 = 5;

/// Twice as many busy processes as CPUs; they end by themselves, and at the latest when this is dropped.
struct Load(Vec<Child>);

impl Load {
    fn start() -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let busy = || {
            let mut timeout = Command::new("timeout");
            timeout.args([&LOAD_S.to_string(), "sh", "-c", "while :; do :; done"]);
            timeout.stdin(Stdio::null()).spawn().unwrap()
        };
        Self((0..cpus * 2).map(|_load| busy()).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // `timeout` passes SIGTERM on to its loop; one that has ended already is as good.
            let pid = rustix::process::Pid::from_child(child);
            let _ended = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let _reaped = child.wait();
        }
    }
}

fn in_seconds(seconds: u64) -> u64 {
    monotonic_ns().saturating_add(seconds.saturating_mul(1_000_000_000))
}

#[test]
#[expect(clippy::print_stdout, reason = "a test that cannot run says so")]
fn alone_busy_cpus_fire_the_trigger_of_this_kernel_before_the_wait_is_over() {
    let mut triggers = PressureTriggers::arm(true, &Roots::default());
    if let [Err(refusal), ..] = triggers.states() {
        println!("SKIPPED: this kernel gives no trigger: {refusal}");
        return;
    }
    let _load = Load::start();
    let due_ns = in_seconds(LOAD_S);
    let fired = std::iter::from_fn(|| triggers.wait_until(due_ns));
    let cpu = fired.into_iter().find(|fired| fired[0]);
    assert!(cpu.is_some() && monotonic_ns() < due_ns, "{triggers:?}");
}

#[test]
fn a_wait_without_triggers_or_into_the_past_ends_at_once() {
    assert_eq!(PressureTriggers::off().wait_until(u64::MAX), None);
    let mut armed = PressureTriggers::arm(true, &Roots::default());
    assert_eq!(armed.wait_until(0), None);
    let mut unwanted = PressureTriggers::arm(false, &Roots::default());
    assert_eq!(unwanted.states(), &[Err(TriggerRefusal::Off); 3]);
    assert_eq!(unwanted.wait_until(u64::MAX), None);
}

#[test]
fn without_pressure_files_it_says_which_kernel_would_have_them() {
    let dir = tempfile::tempdir().unwrap();
    let roots = Roots {
        proc: dir.path().into(),
        cgroup: dir.path().into(),
    };
    let triggers = PressureTriggers::arm(true, &roots);
    let refusal = TriggerRefusal::Os(libc::ENOENT);
    assert_eq!(triggers.states(), &[Err(refusal); 3]);
    assert!(refusal.remedy().contains("CONFIG_PSI"));
}

#[test]
fn a_file_that_is_not_the_kernels_is_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("pressure")).unwrap();
    let cpu = dir.path().join("pressure/cpu");
    let content = "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";
    std::fs::write(&cpu, content).unwrap();
    let roots = Roots {
        proc: dir.path().into(),
        cgroup: dir.path().into(),
    };
    let triggers = PressureTriggers::arm(true, &roots);
    assert_eq!(triggers.states()[0], Err(TriggerRefusal::NotOfTheKernel));
    assert_eq!(std::fs::read_to_string(&cpu).unwrap(), content);
}

#[test]
fn each_refusal_of_a_kernel_is_told_with_what_would_help() {
    for (errno, remedy) in [
        (libc::EOPNOTSUPP, "psi=1"),
        (libc::EPERM, "CAP_SYS_RESOURCE"),
        (libc::EACCES, "see the reason"),
        (libc::EINVAL, "CAP_SYS_RESOURCE"),
        (libc::EBUSY, "see the reason"),
    ] {
        let refusal = TriggerRefusal::Os(errno);
        let triggers = PressureTriggers::arm_with(|_pressure, _form| Err(refusal));
        assert_eq!(triggers.states(), &[Err(refusal); 3]);
        assert!(triggers.armed.is_empty());
        assert!(refusal.remedy().contains(remedy), "{refusal}");
        let words = refusal.to_string();
        assert!(words.contains(&format!("os error {errno}")), "{words}");
    }
}

#[test]
fn where_short_windows_are_refused_the_long_ones_serve() {
    let null = || File::open("/dev/null").map_err(|error| TriggerRefusal::of(&error));
    let triggers = PressureTriggers::arm_with(|pressure, form| match (pressure, form) {
        (Pressure::Cpu, TriggerForm::Second) => Err(TriggerRefusal::Os(libc::EINVAL)),
        (Pressure::Memory, _) => Err(TriggerRefusal::Os(libc::EPERM)),
        (Pressure::Cpu | Pressure::Io, _) => null(),
    });
    let states = [
        Ok(TriggerForm::TwoSeconds),
        Err(TriggerRefusal::Os(libc::EPERM)),
        Ok(TriggerForm::Second),
    ];
    assert_eq!(triggers.states(), &states);
    assert!(TriggerForm::TwoSeconds.better().is_some());
    let places: Vec<_> = triggers.armed.iter().map(|armed| armed.place).collect();
    assert_eq!(places, [0, 2]);
}

#[test]
fn a_trigger_that_the_kernel_takes_away_is_given_up_and_told() {
    let mut triggers = PressureTriggers::arm_with(|_pressure, _form| {
        File::open("/dev/null").map_err(|error| TriggerRefusal::of(&error))
    });
    let none = PollFlags::empty();
    assert_eq!(triggers.take([none; 3]), None);
    let fired = triggers.take([none, PollFlags::PRI, none]);
    assert_eq!(fired, Some([false, true, false]));
    let gone = PollFlags::PRI | PollFlags::ERR;
    assert_eq!(triggers.take([gone, none, none]), None);
    let lost = Err(TriggerRefusal::Os(libc::ENODEV));
    assert_eq!((triggers.states()[0], triggers.armed.len()), (lost, 2));
}

#[test]
fn field_s20_a_capability_is_no_remedy_for_a_file_that_nobody_may_write() {
    let refusal = TriggerRefusal::NotWritable;
    assert!(!refusal.remedy().contains("CAP_"), "{}", refusal.remedy());
    assert!(refusal.remedy().contains("root"));
}
