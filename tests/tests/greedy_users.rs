//! Users that take what they get of a scope and ask for more: the others find a place all the same.

#![cfg(test)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tidegate_tests::actor::Actor;
use tidegate_tests::agent::Agent;
use tidegate_tests::limit::{MARKS_OFF, forty};
use tidegate_tests::ticks;
use tidegate_tests::until::{self, SOON};
use tidegate_tests::user::{self, act_as};

const GREEDY: u32 = user::TWO[0];
const MODEST: u32 = user::TWO[1];

/// An agent that lets everybody in, and 40 requests of the host at a time by this law.
fn agent(law: &str) -> Agent {
    let agent = Agent::start("", &format!("[socket]\nmode = \"0666\"\n{MARKS_OFF}{law}"));
    agent.open_directory();
    until::holds("limits", SOON, || {
        agent.ask_http("GET", "/readyz", "").status == 200
    });
    agent
}

/// Takes permits until there are no more, and gives none back.
fn take_all(actor: &mut Actor, door: &str) {
    let hold = format!("hold {door} order 20");
    until::holds("a full scope", SOON, || {
        actor.ask(&hold) == "taken 0 refused 20"
    });
}

#[test]
fn field_b3_a_user_that_gives_no_permit_back_leaves_a_scopes_limit_to_others() {
    if !user::are_at_hand() {
        return;
    }
    for door in ["http", "gate"] {
        let agent = agent(&forty("law"));
        let mut greedy = Actor::start_as(GREEDY, &agent.runtime_dir());
        take_all(&mut greedy, door);
        let mut modest = Actor::start_as(MODEST, &agent.runtime_dir());
        let each = format!("ask {door} order 20");
        until::holds("places for another user", SOON, || {
            modest.ask(&each).starts_with("passed 20 ")
        });
        let many = format!("hold {door} order 100");
        assert_eq!(greedy.ask(&many), "taken 0 refused 100");
    }
}

/// Asks without a permit, again and again, until it is told to stop; how often that was.
fn flood(agent: &Agent, stop: &AtomicBool) -> u32 {
    let mut asked = 0;
    while !stop.load(Ordering::Relaxed) {
        agent.ask_http("GET", "/v1/admit?resource=order", "");
        asked += 1;
    }
    asked
}

#[test]
fn field_b15_a_flood_of_questions_leaves_another_user_what_it_asks_for() {
    if !user::are_at_hand() {
        return;
    }
    // So many requests a second once anything is known.
    let law = forty("law").replace("successes = 1000000.0", "successes = 5.0");
    let agent = agent(&format!("{law}[law.rate]\nfloor_qps = 100.0\n"));
    let mut service = Actor::start(&agent.runtime_dir());
    until::holds("an overload of which something is known", SOON, || {
        // Some end well, and then there are more than the limit.
        service.ask("try order 20");
        service.ask("take order 100");
        service.ask("give 1000");
        agent.get("/v1/status")["scopes"][0]["limits"]["allowed_qps"].is_number()
    });
    let stop = AtomicBool::new(false);
    let ([admitted, modest], asked) = thread::scope(|scope| {
        let floods = [(); 2].map(|()| scope.spawn(|| act_as(GREEDY, || flood(&agent, &stop))));
        let modest = act_as(MODEST, || ask_now_and_then(&agent));
        stop.store(true, Ordering::Relaxed);
        (modest, floods.map(|flood| flood.join().expect("it ends")))
    });
    assert!(
        admitted * 5 >= modest * 4,
        "{admitted} of {modest}, beside {asked:?}"
    );
    let refused = agent.get("/v1/status")["scopes"][0]["shed_total"].as_u64();
    assert!(
        refused > Some(100),
        "no flood: {refused:?} refused of {asked:?}"
    );
}

/// Asks ten times a second for a while; how often it was admitted, and how often it asked.
fn ask_now_and_then(agent: &Agent) -> [u32; 2] {
    let mut counts = [0, 0];
    ticks::until(Instant::now(), Duration::from_secs(2), |_now_ns| {
        let answer = agent.ask_http("GET", "/v1/admit?resource=order", "");
        counts[0] += u32::from(answer.status == 200);
        counts[1] += 1;
        None::<()>
    });
    counts
}
