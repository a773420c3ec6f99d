//! The shipped unit keeps the pages over restarts, crashes and the watchdog, in systemd's store of descriptors.

#![cfg(test)]

use std::time::Duration;

use serde_json::Value;
use tidegate_tests::actor::Actor;
use tidegate_tests::agent::CALM;
use tidegate_tests::machine::{CHECKOUT, Machine};
use tidegate_tests::program::Program;
use tidegate_tests::until;

const RULES: &str = r#"
[[flow]]
resource = "work"
grade = "concurrency"
count = 10
[[flow]]
resource = "hourly"
count = 50
window = "1h"
[[degrade]]
resource = "payment"
grade = "error_count"
threshold = 1
min_requests = 1
stat_interval = "1h"
recovery_timeout = "2h"
"#;

/// An agent that ended is back by then, also when the host has much to do.
const BACK_WITHIN: Duration = Duration::from_mins(3);

const KILL: &str = "kill -KILL $(systemctl show -P MainPID tidegate)";

/// A machine on which the unit runs with these rules, and a watchdog that need not be waited for long.
fn machine() -> Option<Machine> {
    let machine = Machine::boot_with_checkout(&Program::Tidegate.path())?;
    machine.must(&format!(
        "cd {CHECKOUT}
         install -m 755 target/release/tidegate /usr/bin/
         install -D -m 644 -t /etc/systemd/system systemd/tidegate*.service systemd/tidegate*.socket
         install -D -m 644 systemd/tidegate.sysusers /etc/sysusers.d/tidegate.conf
         install -D -m 644 systemd/tidegate.tmpfiles /etc/tmpfiles.d/tidegate.conf
         systemd-sysusers /etc/sysusers.d/tidegate.conf
         systemd-tmpfiles --create /etc/tmpfiles.d/tidegate.conf"
    ));
    machine.write("/etc/tidegate/tidegate.toml", CALM);
    machine.write("/etc/tidegate/rules.d/a.toml", RULES);
    let watchdog = "[Service]\nWatchdogSec=3s\nTimeoutStopSec=10s\n";
    machine.write("/etc/systemd/system/tidegate.service.d/test.conf", watchdog);
    machine.must("systemctl daemon-reload; systemctl enable --now tidegate");
    Some(machine)
}

fn main_pid(machine: &Machine) -> String {
    machine.must("systemctl show -P MainPID tidegate")
}

/// Ends the agent, and waits until another one serves.
fn ended(machine: &Machine, end: &str) {
    let before = main_pid(machine);
    machine.must(end);
    until::holds("another agent", BACK_WITHIN, || {
        let state = machine.must("systemctl show -P ActiveState tidegate");
        state.trim() == "active" && main_pid(machine) != before
    });
}

/// What the agent tells of the default tenant's pages.
fn begun(machine: &Machine) -> Value {
    let status =
        machine.must("curl -sS --unix-socket /run/tidegate/http.sock http://tidegate/v1/status");
    let status: Value = serde_json::from_str(&status).unwrap_or_default();
    status["agent"]["pages"][0]["begun"].clone()
}

/// Asks over HTTP; the answer.
fn ask(machine: &Machine, resource: &str) -> String {
    machine.must(&format!(
        "curl -sS --unix-socket /run/tidegate/http.sock -d '{{\"resource\":\"{resource}\"}}' http://tidegate/v1/enter"
    ))
}

fn open_breaker(machine: &Machine) {
    until::holds("an open breaker", until::SOON, || {
        let answer: Value = serde_json::from_str(&ask(machine, "payment")).unwrap_or_default();
        let Some(permit) = answer["permit"].as_str() else {
            return true;
        };
        machine.must(&format!(
            "curl -sS --unix-socket /run/tidegate/http.sock -d '{{\"permit\":\"{permit}\",\"outcome\":\"error\"}}' \
             http://tidegate/v1/exit"
        ));
        false
    });
}

#[test]
fn field_b13_a_restart_a_crash_and_the_watchdog_leave_windows_breakers_and_places_as_they_were() {
    let Some(machine) = machine() else {
        return;
    };
    let mut actor = Actor::start_on(&machine);
    open_breaker(&machine);
    assert_eq!(actor.ask("take work 6"), "taken 6 refused 0");
    assert_eq!(actor.ask("try hourly 20"), "passed 20 refused 0 none");
    let stop = "kill -STOP $(systemctl show -P MainPID tidegate)";
    for end in [
        "systemctl restart tidegate",
        KILL,
        stop,
        "systemctl restart tidegate",
    ] {
        // On its pages a service goes on meanwhile.
        actor.say("try orders 1000");
        ended(&machine, end);
        assert_eq!(actor.hear(), "passed 1000 refused 0 none", "{end}");
        assert_eq!(begun(&machine), "taken_up", "{end}");
        assert_eq!(
            actor.ask("try payment 2"),
            "passed 0 refused 2 breaker_open"
        );
        assert_eq!(actor.ask("take work 6"), "taken 4 refused 2", "{end}");
        assert_eq!(actor.ask("give 4"), "held 6");
        assert_eq!(
            actor.ask("try hourly 5"),
            "passed 5 refused 0 none",
            "{end}"
        );
        machine.must("tidegate enter orders");
        let refused = machine.run("tidegate enter payment");
        assert_eq!(refused.status.code(), Some(3), "{refused:?}");
        assert!(ask(&machine, "payment").contains("breaker_open"), "{end}");
        assert!(
            ask(&machine, "orders").contains("\"admitted\":true"),
            "{end}"
        );
    }
    assert_eq!(actor.ask("try hourly 20"), "passed 10 refused 10 qps");
}

#[test]
fn field_b13_pages_are_kept_where_no_service_maps_them_and_what_is_not_theirs_is_refused_aloud() {
    let Some(machine) = machine() else {
        return;
    };
    open_breaker(&machine);
    let journal = "journalctl -q -o cat -u tidegate";
    for end in [
        "systemctl restart tidegate",
        KILL,
        "systemctl restart tidegate",
    ] {
        ended(&machine, end);
        assert_eq!(begun(&machine), "taken_up", "{end}");
        assert!(ask(&machine, "payment").contains("breaker_open"), "{end}");
        let stored = machine.must("systemctl show -P NFileDescriptorStore tidegate");
        assert_eq!(stored.trim(), "2", "those of the last life alone");
    }
    // Other sizes, as of another version's layout.
    let sizes = format!("{CALM}[pages]\nmax_resources = 64\n");
    machine.write("/etc/tidegate/tidegate.toml", &sizes);
    ended(&machine, "systemctl restart tidegate");
    assert_eq!(begun(&machine), "anew");
    assert!(ask(&machine, "payment").contains("\"admitted\":true"));
    machine.wait_for(journal, "the pages have other sizes than in the last run");
    // Without the record nothing says whose they are.
    machine.must("rm /run/tidegate/pages-*");
    ended(&machine, KILL);
    assert_eq!(begun(&machine), "anew");
    machine.wait_for(journal, "kept pages of which there is no record");
    // A stop is the end of them.
    machine.must("systemctl stop 'tidegate*'");
    let stored = machine.must("systemctl show -P NFileDescriptorStore tidegate");
    assert_eq!(stored.trim(), "0");
}
