//! The agent stops or dies: rules stay in force, adaptive limits go through grace and mode, and
//! services come back by themselves.

#![cfg(test)]

use std::time::{Duration, Instant};

use tidegate_tests::actor::Actor;
use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::until::{self, SOON};

const RULE: &str = "[[flow]]\nresource = \"limited\"\ngrade = \"qps\"\ncount = 10\n";

/// The host refuses all inbound work, since no machine is as idle as this asks for.
const REJECT: &str =
    "[cpu]\nenter = 0.0002\nleave = 0.0001\naction = \"reject\"\nsustained = \"0s\"\n";

/// How long the limits are looked at within the grace time; the rest of it is room for a machine
/// that is slow to answer.
const WITHIN_GRACE: Duration = Duration::from_secs(1);
/// Longer than time to live and grace together.
const PAST_GRACE: Duration = Duration::from_secs(2);

fn loss(mode: &str) -> String {
    format!(
        "{REJECT}[agent_loss]\nmode = \"{mode}\"\ntime_to_live = \"300ms\"\ngrace = \"1500ms\"\n"
    )
}

fn tried(actor: &mut Actor, resource: &str) -> String {
    actor.ask(&format!("try {resource} 1"))
}

/// An agent whose host scope refuses everything, and a service that has seen that.
fn refusing(mode: &str) -> (Agent, Actor) {
    let agent = Agent::start(RULE, &loss(mode));
    let mut actor = Actor::start(&agent.runtime_dir());
    until::holds("a scope that refuses", SOON, || {
        tried(&mut actor, "free") == "passed 0 refused 1 reject"
    });
    (agent, actor)
}

/// Stops the agent and checks that the adaptive limit is kept for the grace time.
fn stop_and_check_grace(agent: &Agent, actor: &mut Actor) {
    let stopped = Instant::now();
    agent.stop();
    while stopped.elapsed() < WITHIN_GRACE {
        let answer = tried(actor, "free");
        let after = stopped.elapsed();
        // An answer that came later, on a machine that stalled, says nothing of the grace.
        if after < WITHIN_GRACE {
            assert_eq!(answer, "passed 0 refused 1 reject", "{after:?}");
        }
    }
}

#[test]
fn alone_open_lifts_the_adaptive_limits_after_the_grace_and_keeps_the_rules() {
    let (agent, mut actor) = refusing("open");
    stop_and_check_grace(&agent, &mut actor);
    until::holds("an open gate", SOON, || {
        tried(&mut actor, "free") == "passed 1 refused 0 none"
    });
    assert_eq!(actor.ask("try free 50"), "passed 50 refused 0 none");
    let answer = actor.ask("try limited 50");
    assert!(answer.ends_with(" qps"), "the rule is in force: {answer}");
    agent.go_on();
    until::holds("a scope that refuses again", SOON, || {
        tried(&mut actor, "free") == "passed 0 refused 1 reject"
    });
    assert_eq!(actor.ask("open"), "open 0");
}

/// An agent is away for this long and its limits and rules hold all the same: the grace is 10 s by
/// default, after a second of silence.
const AWAY: Duration = Duration::from_secs(10);

#[test]
fn alone_ten_seconds_without_the_agent_change_nothing_by_default() {
    // One agent whose scope refuses all inbound work, and one whose rules alone act.
    let shedding = Agent::start(RULE, REJECT);
    let calm = Agent::start(RULE, CALM);
    let mut shed = Actor::start(&shedding.runtime_dir());
    let mut ruled = Actor::start(&calm.runtime_dir());
    until::holds("a scope that refuses", SOON, || {
        tried(&mut shed, "free") == "passed 0 refused 1 reject"
    });
    let stopped = Instant::now();
    shedding.stop();
    calm.stop();
    until::throughout("limit and rule", AWAY, || {
        let limit = tried(&mut shed, "free") == "passed 0 refused 1 reject";
        limit && ruled.ask("try limited 50").ends_with(" qps")
    });
    // A second of silence and the grace are over soon after: the adaptive limit goes, the rule stays.
    until::holds("an open gate", SOON, || {
        tried(&mut shed, "free") == "passed 1 refused 0 none"
    });
    let grace = AWAY + Duration::from_millis(800);
    assert!(stopped.elapsed() >= grace, "{:?}", stopped.elapsed());
    assert!(ruled.ask("try limited 50").ends_with(" qps"));
    shedding.go_on();
    calm.go_on();
    until::holds("a scope that refuses again", SOON, || {
        tried(&mut shed, "free") == "passed 0 refused 1 reject"
    });
    for actor in [&mut shed, &mut ruled] {
        assert_eq!(actor.ask("open"), "open 0");
    }
}

#[test]
fn alone_last_keeps_the_adaptive_limits() {
    let (agent, mut actor) = refusing("last");
    stop_and_check_grace(&agent, &mut actor);
    until::throughout("the limit as it was", PAST_GRACE, || {
        tried(&mut actor, "free") == "passed 0 refused 1 reject"
    });
    agent.go_on();
}

#[test]
fn alone_closed_refuses_and_says_that_the_agent_is_lost() {
    let (agent, mut actor) = refusing("closed");
    stop_and_check_grace(&agent, &mut actor);
    until::holds("a closed gate", SOON, || {
        tried(&mut actor, "free") == "passed 0 refused 1 agent_lost"
    });
    agent.go_on();
}

#[test]
fn alone_services_of_a_killed_agent_keep_its_rules_and_come_back_to_the_next_one() {
    let mut agent = Agent::start(RULE, CALM);
    let mut actors = [0, 1].map(|_process| Actor::start(&agent.runtime_dir()));
    for actor in &mut actors {
        assert_eq!(actor.ask("take free 3"), "taken 3 refused 0");
    }
    agent.wait_for_inflight("free", 6, SOON);
    agent.kill();
    let answer = actors[0].ask("try limited 50");
    assert!(answer.ends_with(" qps"), "the rule is in force: {answer}");
    agent.start_again();
    until::holds("clients that have come back", SOON, || {
        let status = agent.get("/v1/status");
        let clients = status.get("clients").and_then(|clients| clients.as_array());
        clients.is_some_and(|clients| clients.len() >= 2)
    });
    until::holds("decisions of the new session", SOON, || {
        actors[1].ask("take free 1");
        agent.inflight("free") > 0
    });
    for actor in &mut actors {
        assert_eq!(
            actor.ask("open"),
            "open 0",
            "no decision was made without rules"
        );
    }
}

#[test]
fn an_agent_that_is_started_while_the_killed_one_still_ends_waits_for_it() {
    // Programs in the kernel make the end long enough to be met.
    let mut agent = Agent::start(RULE, &format!("{CALM}[ebpf]\nenabled = true\n"));
    let mut before = agent.pid();
    for _time in 0..3 {
        until::holds("the programs, or why there are none", 3 * SOON, || {
            let reason = agent.get("/v1/status")["agent"]["ebpf"]["reason"].to_string();
            !reason.contains("being loaded")
        });
        agent.kill_and_start_at_once();
        assert_ne!(agent.pid(), before);
        before = agent.pid();
    }
}
