//! Services whose monotonic clock is not the agent's: containers that were moved, or started in a time namespace.

#![cfg(test)]

use std::process::Command;

use tidegate_segment::clock::monotonic_ns;
use tidegate_tests::actor::Actor;
use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::skip;

/// Seconds of the rule's window.
const WINDOW_S: u64 = 20;
/// More than a window ahead: by this clock, what the others took is long over.
const SLIGHTLY_S: u64 = 45;
/// So far that the agent sees it from the hello alone.
const FAR_S: u64 = 7200;

/// A rule for each of some resources.
const RULE: &str = "[[flow]]\nresource = \"order-.*\"\nregex = true\ncount = 5\nwindow = \"20s\"\n";

/// A command that runs another one with a clock that is ahead; `None` where that cannot be.
fn ahead(seconds: u64) -> Option<Command> {
    let command = || {
        let mut command = Command::new("unshare");
        command.args(["--time", "--fork", "--monotonic", &seconds.to_string()]);
        command
    };
    let works = command().arg("true").status();
    if !works.is_ok_and(|status| status.success()) {
        skip::skip("needs root, time namespaces and unshare of util-linux 2.36");
        return None;
    }
    Some(command())
}

/// Which of the rule's windows it is.
fn window() -> u64 {
    monotonic_ns() / (WINDOW_S * 1_000_000_000)
}

#[test]
fn services_with_other_clocks_share_a_window_with_the_rest() {
    let Some(slightly) = ahead(SLIGHTLY_S) else {
        return;
    };
    let Some(far) = ahead(FAR_S) else { return };
    let agent = Agent::start(RULE, CALM);
    let dir = agent.runtime_dir();
    let mut actors = [
        Actor::start(&dir),
        Actor::start_by(slightly, &dir),
        Actor::start_by(far, &dir),
    ];
    let doors = actors.each_mut().map(|actor| actor.ask("door"));
    assert_eq!(doors, ["shm", "shm", "socket"]);
    for number in 0.. {
        let begun = window();
        let ask = |actor: &mut Actor| actor.ask(&format!("try order-{number} 2"));
        let answers = actors.each_mut().map(ask);
        let again = actors.each_mut().map(ask);
        if window() != begun {
            continue; // One began meanwhile.
        }
        let passed = "passed 2 refused 0 none";
        assert_eq!(answers, [passed, passed, "passed 1 refused 1 qps"]);
        assert_eq!(again, ["passed 0 refused 2 qps"; 3]);
        break;
    }
    assert_eq!(
        actors.each_mut().map(|actor| actor.ask("open")),
        ["open 0"; 3]
    );
}
