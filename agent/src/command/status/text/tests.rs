use std::path::Path;

use super::*;
use crate::report::verdict::VerdictReport;

/// A status as scripts read it: a host whose load is high, a group that refuses, forgotten permits.
const STATUS: &str = r#"{"agent":{"version":"0.1.0","uptime_s":7512.3,"tick_ms":100,"tick_late_p99_ms":0.4,
    "pid":4242,"directory":"/run/tidegate","config":"/etc/tidegate/tidegate.toml",
    "rules":{"count":8,"directory":"/etc/tidegate/rules.d","found":true,"read_s":12.0,"reload_ok":true},
    "http_permits":{"held":59,"oldest_s":41.2,"expired_total":118},
    "ebpf":{"rung":"none","reason":"not built"},"rules_generation":3},
    "scopes":[{"name":"host","cgroup":null,"state":"overload","cause":"load",
      "why":"load is high (load1 4.6, mark 2); nobody is refused: 0 of 32 in flight","refuses":false,
      "inflight":0,"passed_total":1000,"refused_total":0,"shed_total":0,
      "course":{"since_s":63.2,"changes_total":1,"demand":0.1,"healthy_ticks":[0,0],"ineffective":false,"resting":false},
      "signals":{"cpu":{"value":0.975,"unit":"ratio"},"threads":{"value":128.0,"unit":"count"},
      "runqueue_wait_p50":{"value":0.000039,"unit":"seconds"},"context_switches":{"value":1530.4,"unit":"per_second"},
      "runqueue_wait_share":{"not_measured":"kernel: not built"},
      "steal":{"not_measured":"/proc/stat: belongs to the host, not to a group"}},
      "limits":{"inflight":32,"allowed_qps":187.4}},
     {"name":"orders","cgroup":"/orders","state":"overload","cause":"gc",
      "why":"garbage collection takes its time (stopped 47 %), and its quota holds it back (throttled in 100 % of its periods); what is over 10 requests in flight is refused",
      "refuses":true,"inflight":10,"passed_total":600,"refused_total":420,"shed_total":400,
      "course":{"since_s":3.2,"changes_total":12,"demand":1.2,"healthy_ticks":[2,5],"ineffective":true,"resting":false},
      "signals":{"throttle":{"value":1.0,"unit":"ratio"}},
      "declared_cpus":{"cpus":2.0,"allowed":0.5,"conflict":true,
        "text":"2 CPUs are declared (cpus in its [[scope]]), its quota allows 0.5: its share of the CPU looks less than it is, unless `cpus` is taken out"},
      "threads":[{"name":"GC Thread#","threads":4,"used_cpus":0.5,"cpu_share":0.25,"gc":true},
        {"name":"...","threads":69,"used_cpus":0.012,"cpu_share":0.006,"gc":false}],
      "limits":{"inflight":10,"allowed_qps":null}}],
    "scopes_without_group":[
      {"name":"typo","cgroup":"/system.slice/brun.service","one_group":true,"remedy":"",
       "text":"no group at /system.slice/brun.service: start what it stands for, or put the path right"},
      {"name":"pods","cgroup":"/docker/*","one_group":false,"remedy":"","text":"no group at /docker/*: start what it stands for"}],
    "resources":[{"name":"__other__","passed_total":0,"refused_total":{},"inflight":0,"rt_ms":null},
      {"tenant":"shop","name":"pay","passed_total":5,"refused_total":{},"inflight":0,"rt_ms":2.5,
       "rules":["degrade pay-errors"],"breakers":[{"rule":"pay-errors","state":"open","left_ms":4951,"opened_total":1}]},
      {"name":"order-create","passed_total":1000,"refused_total":{"flow":20,"system":400},"inflight":1,"rt_ms":null,
       "rules":["flow orders","flow at-once"]}],
    "clients":[{"pid":7,"uid":1000,"name":"shop","door":"shm","scope":"orders","held":1},
      {"pid":0,"uid":0,"name":"","door":"socket","scope":"host","held":0}]}"#;

fn told(now: &str, verbose: bool) -> String {
    let earlier = now
        .replace("\"passed_total\":1000", "\"passed_total\":950")
        .replace(
            "\"refused_total\":420,\"shed_total\":400",
            "\"refused_total\":320,\"shed_total\":300",
        )
        .replace("\"system\":400", "\"system\":300");
    let before = Before {
        status: &serde_json::from_str(&earlier).unwrap(),
        seconds: 1.0,
    };
    text(&serde_json::from_str(now).unwrap(), &before, verbose)
}

fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/screens")
        .join(name);
    crate::command::screens::compare(&path, text);
}

#[test]
fn field_o11_a_status_reads_from_what_is_wrong_to_scopes_resources_and_clients() {
    golden("status.txt", &told(STATUS, false));
}

#[test]
fn field_b13_what_a_restart_lost_and_a_missing_socket_are_told() {
    let now = STATUS.replace(
        "\"rules_generation\":3}",
        r#""rules_generation":3,"missing_socket":"gate.sock","pages":[{"tenant":"default","begun":"anew",
        "earlier_services":1,"earlier_inflight":6},{"tenant":"shop","begun":"taken_up","earlier_services":0,
        "earlier_inflight":0}]}"#,
    );
    let text = told(&now, false);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for line in [
        "! gate.sock is missing in /run/tidegate: nobody new can connect there, the log says why",
        "pages those from before the start could not be gone on with: windows and breakers began anew, which admitted \
         one window more at most; 6 requests of before in flight, counted",
    ] {
        assert!(words.contains(line), "{text}");
    }
    assert!(!words.contains("of shop from before"), "{text}");
}

#[test]
fn field_o11_signals_and_threads_come_with_v() {
    golden("status-verbose.txt", &told(STATUS, true));
}

#[test]
fn field_o5_a_high_load_that_refuses_nobody_is_nothing_wrong() {
    let now: StatusReport = serde_json::from_str(STATUS).unwrap();
    let now = StatusReport {
        scopes: now.scopes.into_iter().take(1).collect(),
        scopes_without_group: Vec::new(),
        resources: Vec::new(),
        ..now
    };
    let before = Before {
        status: &StatusReport::default(),
        seconds: 1.0,
    };
    let text = text(&now, &before, false);
    assert!(
        text.starts_with("tidegate 0.1.0: nothing is wrong\n"),
        "{text}"
    );
    assert!(text.contains("host     busy"), "{text}");
}

#[test]
fn the_verdict_is_said_first() {
    let now: StatusReport = serde_json::from_str(STATUS).unwrap();
    let verdict = VerdictReport {
        text: "busy: host for 9 s, load is high; nobody is refused: 3 of 32 in flight".to_owned(),
        ..VerdictReport::default()
    };
    let now = StatusReport {
        verdict: Some(verdict.clone()),
        ..now
    };
    let before = Before {
        status: &StatusReport::default(),
        seconds: 1.0,
    };
    let text = text(&now, &before, false);
    let first = format!("{}\ntidegate 0.1.0: ", verdict.text);
    assert!(text.starts_with(&first), "{text}");
}

#[test]
fn field_o11_a_refused_reload_and_rules_that_are_nowhere_are_told() {
    let refused = STATUS.replace("\"reload_ok\":true", "\"reload_ok\":false");
    let text = told(&refused, false);
    let line = "  ! the last reload was refused, those read 12 s ago are in force: `tidegate\n    check` tells why\n";
    assert!(text.contains(line), "{text}");
    let nowhere = STATUS.replace("\"found\":true", "\"found\":false");
    let text = told(&nowhere, false);
    assert!(
        text.contains("rules    8 from /etc/tidegate/rules.d, which is not there\n"),
        "{text}"
    );
}

#[test]
fn a_mark_that_rests_since_the_hour_has_had_its_changes_is_told_with_the_time_left() {
    let passed = "\"resting\":false";
    let rests = STATUS.replacen(passed, "\"resting\":false,\"withheld_s\":1500.0", 1);
    let text = told(&rests, false).replace("\n    ", " ");
    assert!(
        text.contains("host: this hour has had all its changes of state (hysteresis.changes_per_hour_max): its mark is passed and rests for 25 min more"),
        "{text}"
    );
    let ended = STATUS.replace(passed, "\"resting\":true,\"withheld_s\":60.0");
    let text = told(&ended, true).replace("\n    ", " ");
    assert!(text.contains("the overload has ended and stays"), "{text}");
}

#[test]
fn an_older_agent_tells_less() {
    let old = r#"{"agent":{"version":"0.0.9","uptime_s":1,"tick_ms":100,"tick_late_p99_ms":null},
        "scopes":[{"name":"host","state":"healthy","cause":"none","signals":{},"limits":{"inflight":null}}],
        "resources":[],"clients":[]}"#;
    assert!(told(old, true).contains("host     healthy"));
}
