//! Signals of this machine's own kernel.

#![cfg(test)]

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tidegate_abi::signal::SignalId;
use tidegate_agent::procfs::{GroupPattern, NoValue, Roots};
use tidegate_agent::signal::{
    GroupKey, Limiter, PressureTriggers, Sampler, TriggerForm, TriggerRefusal,
};
use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::confined::ConfinedProcess;
use tidegate_tests::load::CpuHogs;
use tidegate_tests::program::Program;
use tidegate_tests::ticks::{now_ns, until};
use tidegate_tests::{skip, until as until_it, user};

/// Sixty quota periods: one more or fewer at its ends is less than 2 %, so that 0.19 to 0.21 holds.
const SPAN: Duration = Duration::from_secs(6);

fn value(sampler: &Sampler, key: GroupKey, id: SignalId) -> f64 {
    let reading = sampler
        .group(key)
        .expect("the group is there")
        .readings()
        .get(id);
    reading
        .get()
        .unwrap_or_else(|missing| panic!("{}: {missing}", id.name()))
}

/// The look at single threads takes longer, and says so.
#[test]
fn alone_field_s6_five_thousand_threads_are_counted_within_twenty_ticks() {
    const THREADS: u32 = 5000;
    let mut many = Program::Actor.command();
    many.args(["--threads", &THREADS.to_string()]);
    let Some(group) = ConfinedProcess::start("threads", &mut many) else {
        return;
    };
    let all = format!("Threads:\t{}", THREADS + 1);
    let status = format!("/proc/{}/status", group.pid());
    let is_there = || fs::read_to_string(&status).unwrap_or_default();
    until_it::holds(
        "5000 threads, or none for want of room",
        3 * until_it::SOON,
        || {
            let status = is_there();
            status.contains(&all) || !status.contains("Threads:")
        },
    );
    if !is_there().contains(&all) {
        return skip::skip("this user may not have 5000 threads");
    }
    let mut sampler = Sampler::new(Roots::default());
    let key = sampler
        .watch_process(group.pid())
        .expect("watches the group");
    let mut told = Vec::new();
    for tick in 1..=20 {
        sampler.sample(tick * 100_000_000);
        let group = sampler.group(key).expect("the group is there");
        told.push(group.readings().get(SignalId::Threads).get());
    }
    let right = f64::from(THREADS + 1);
    assert_eq!(told.last(), Some(&Ok(right)), "{told:?}");
    // Before, it is not known; never another number.
    let is_right = |told: &Result<f64, _>| told.is_err() || *told == Ok(right);
    assert!(told.iter().all(is_right), "{told:?}");
}

#[test]
fn alone_a_group_with_a_fifth_of_a_cpu_is_read_as_full_and_throttled() {
    let Some(group) = ConfinedProcess::busy("full") else {
        return;
    };
    group.limit(20_000);
    let (mut each, mut ends) = (
        Sampler::new(Roots::default()),
        Sampler::new(Roots::default()),
    );
    let key = each.watch_process(group.pid()).expect("watches the group");
    let key_of_ends = ends.watch_process(group.pid()).expect("watches the group");
    let start = Instant::now();
    ends.sample(now_ns(start));
    let mut seen = Vec::new();
    let never = until(start, SPAN, |now_ns| {
        each.sample(now_ns);
        seen.push(
            each.group(key)
                .expect("the group is there")
                .readings()
                .get(SignalId::Throttle)
                .get(),
        );
        None::<()>
    });
    assert_eq!(never, None);
    ends.sample(now_ns(start));

    let used = value(&ends, key_of_ends, SignalId::UsedCpus);
    assert!((0.19..=0.21).contains(&used), "used {used} CPUs of 0.2");
    let cpu = value(&ends, key_of_ends, SignalId::Cpu);
    assert!((0.95..=1.05).contains(&cpu), "{cpu} of its quota");
    let effective = value(&each, key, SignalId::EffectiveCpus);
    assert!((effective - 0.2).abs() < 1e-9, "{effective} effective CPUs");
    let throttle = value(&each, key, SignalId::Throttle);
    assert!(throttle > 0.8, "throttled in {throttle} of its periods");
    let lost = value(&each, key, SignalId::ThrottledTime);
    assert!(
        (0.4..=0.9).contains(&lost),
        "lost {lost} of the time it wanted"
    );
    let first_faults: Vec<_> = seen
        .iter()
        .map_while(|read| read.err())
        .map(|missing| missing.fault)
        .collect();
    assert_eq!(first_faults.first(), Some(&NoValue::FirstSample));
    assert!(
        first_faults.contains(&NoValue::TooFewPeriods),
        "{first_faults:?}"
    );
    let limiter = each.group(key).expect("the group is there").limiter();
    assert!(matches!(limiter, Limiter::Quota(_)), "{limiter:?}");
}

#[test]
fn a_sample_allocates_nothing_once_files_and_threads_are_known() {
    let mut sampler = Sampler::new(Roots::default());
    let group = ConfinedProcess::busy("quiet");
    if let Some(group) = &group {
        sampler
            .watch_process(group.pid())
            .expect("watches the group");
        sampler.watch_pattern(GroupPattern::new("/tidegate-test-quiet-*").expect("a pattern"));
    }
    // Two searches and looks: the first finds what there is, the second grows what keeps it.
    for second in 1..4 {
        sampler.sample(second * 1_000_000_000);
    }
    let seen = allocation_counter::measure(|| {
        for tick in 40..80 {
            sampler.sample(tick * 100_000_000);
        }
    });
    assert_eq!(seen.count_total, 0);
    assert_eq!(sampler.groups().count(), group.iter().count());
}

#[test]
fn processes_that_come_and_go_are_counted_however_often_the_group_is_looked_at() {
    let Some(group) = ConfinedProcess::busy("company") else {
        return;
    };
    let mut sampler = Sampler::new(Roots::default());
    let key = sampler
        .watch_process(group.pid())
        .expect("watches the group");
    let start = Instant::now();
    let mut becomes = |threads: f64| {
        let mut last = None;
        // For a second, so that it stays.
        let mut seen = 0;
        let limit = start.elapsed() + Duration::from_mins(1);
        let found = until(start, limit, |now_ns| {
            sampler.sample(now_ns);
            last = sampler.group(key)?.readings().value(SignalId::Threads);
            let is_wanted = last.is_some_and(|told| (told - threads).abs() < 0.5);
            seen = if is_wanted { seen + 1 } else { 0 };
            (seen > 10).then_some(())
        });
        assert!(found.is_some(), "{threads} expected, last {last:?}");
    };
    becomes(1.0);
    let mut guest = std::process::Command::new("sleep")
        .arg("120")
        .spawn()
        .expect("starts");
    let procs = format!("/sys/fs/cgroup/cpu{}/cgroup.procs", group.cgroup);
    fs::write(procs, guest.id().to_string()).expect("joins the group");
    becomes(2.0);
    guest.kill().expect("ends");
    guest.wait().expect("ended");
    becomes(1.0);
}

#[test]
fn a_cgroup2_without_the_cpu_controller_is_not_called_never_throttled() {
    let top = PathBuf::from("/sys/fs/cgroup/unified");
    let controllers = fs::read_to_string(top.join("cgroup.controllers"));
    if !controllers.is_ok_and(|names| names.split_whitespace().all(|name| name != "cpu")) {
        skip::skip("needs a cgroup2 without the cpu controller at /sys/fs/cgroup/unified");
        return;
    }
    // The unified hierarchy alone, as a container sees it that gets only this mount.
    let mut sampler = Sampler::new(Roots {
        proc: "/proc".into(),
        cgroup: top,
    });
    let key = sampler.watch_path("/".as_ref()).expect("the top is there");
    sampler.sample(1_000_000_000);
    let throttle = sampler
        .group(key)
        .expect("the group is there")
        .readings()
        .get(SignalId::Throttle);
    throttle.get().expect_err("there is nothing to measure");
}

#[test]
fn a_user_without_capabilities_gets_triggers_of_2_s_or_is_told_why_not() {
    if !user::are_at_hand() {
        return;
    }
    let [uid, _other] = user::TWO;
    let armed = user::act_as(uid, || PressureTriggers::arm(true, &Roots::default()));
    for state in armed.states() {
        let is_told = match state {
            Ok(form) => *form == TriggerForm::TwoSeconds,
            Err(TriggerRefusal::Os(errno)) => *errno != 0,
            Err(TriggerRefusal::NotWritable) => true,
            Err(TriggerRefusal::Off | TriggerRefusal::NotOfTheKernel) => false,
        };
        assert!(is_told, "{state:?}");
    }
}

#[test]
fn tasks_that_begin_to_wait_bring_a_tick_forward_and_metrics_count_it() {
    let agent = Agent::start("", &format!("{CALM}[signals]\npsi_triggers = true\n"));
    let status = agent.get("/v1/status");
    let trigger = &status["agent"]["psi_triggers"]["cpu"];
    if trigger["rung"] == "none" {
        let switched_off = TriggerRefusal::Off.to_string();
        assert_ne!(
            trigger["reason"], switched_off,
            "the configuration wants them"
        );
        skip::skip(&format!("this kernel gives no trigger: {trigger}"));
        return;
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let _load = CpuHogs::start(cpus * 2, 30);
    until_it::holds("an early tick", Duration::from_secs(30), || {
        let metrics = agent.ask_http("GET", "/metrics", "").body;
        let early = "tidegate_pressure_triggers_total{pressure=\"cpu\"} ";
        let count = metrics.lines().find_map(|line| line.strip_prefix(early));
        count.is_some_and(|count| count != "0")
    });
}

#[test]
fn metrics_say_what_kind_of_reason_a_missing_signal_has() {
    let agent = Agent::start("", CALM);
    let burst = "{scope=\"host\",signal=\"burst\"";
    let lines = [
        format!("tidegate_signal_measured{burst}}} 0"),
        format!("tidegate_signal_missing{burst},cause=\"group_only\"}} 1"),
    ];
    // The first tick brings them.
    until_it::holds("both lines", Duration::from_secs(10), || {
        let metrics = agent.ask_http("GET", "/metrics", "").body;
        lines
            .iter()
            .all(|line| metrics.lines().any(|shown| shown == line))
    });
}

#[test]
fn status_and_metrics_tell_the_steps_in_use_and_what_would_make_a_signal_available() {
    let agent = Agent::start("", CALM);
    let (told, _time) = until_it::found("a sampled host", Duration::from_secs(10), || {
        let status = agent.get("/v1/status");
        let value = &status["scopes"][0]["signals"]["cpu"]["value"];
        value.is_f64().then_some(status)
    });
    for scope in told["scopes"].as_array().expect("scopes") {
        let signals = scope["signals"].as_object().expect("signals");
        assert_eq!(signals.len(), SignalId::COUNT);
        for (name, signal) in signals {
            let has_remedy = signal["remedy"]
                .as_str()
                .is_some_and(|text| !text.is_empty());
            assert_eq!(signal["value"].is_null(), has_remedy, "{name}: {signal}");
        }
    }
    let (own, host) = (&told["agent"], &told["scopes"][0]);
    let trigger = &own["psi_triggers"]["cpu"]["rung"];
    let metrics = agent.ask_http("GET", "/metrics", "").body;
    for (ladder, rung) in [
        ("ladder=\"sampler\"", &own["scheduling"]),
        ("ladder=\"clock\"", &own["clock"]),
        ("ladder=\"trigger cpu\"", trigger),
    ] {
        let line = format!("tidegate_rung{{{ladder},rung={rung}}} 1");
        assert!(metrics.contains(&line), "{line} is missing in {metrics}");
    }
    assert!(host["waiters"].is_string(), "{host}");
    assert!(metrics.contains("tidegate_waiters_rung{scope=\"host\",rung="));
}
