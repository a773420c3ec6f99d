//! The agent is killed and started anew: it takes its ledger back from the services that map it, so windows, breakers
//! and places in flight go on.

#![cfg(test)]

use std::time::{Duration, Instant};

use serde_json::Value;
use tidegate_tests::actor::Actor;
use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::restarts;
use tidegate_tests::shared_count::SharedCount;
use tidegate_tests::spans::Spans;
use tidegate_tests::until::{self, SOON};

/// Beside those of [`restarts::RULES`].
const MORE_RULES: &str = "
[[flow]]
resource = \"order\"
count = 100
[[flow]]
resource = \"strict\"
count = 20
window = \"1h\"
strict = true
[[param]]
resource = \"item\"
index = 0
count = 3
window = \"1h\"
[[degrade]]
resource = \"payment\"
grade = \"error_count\"
threshold = 1
min_requests = 1
stat_interval = \"1h\"
recovery_timeout = \"2h\"
";

fn rules() -> String {
    [restarts::RULES, MORE_RULES].concat()
}

/// For how long the agent is killed again and again; `TIDEGATE_RESTART_SECONDS` says another time.
const KILLED_FOR: Duration = Duration::from_secs(8);

/// Opens the breaker of `payment`: two of its calls fail.
fn open_breaker(agent: &Agent) {
    for _call in 0..2 {
        let entered = agent.ask_http("POST", "/v1/enter", r#"{"resource":"payment"}"#);
        let answer: Value = serde_json::from_str(&entered.body).unwrap_or_default();
        let Some(permit) = answer["permit"].as_str() else {
            break;
        };
        let exit = format!(r#"{{"permit":"{permit}","outcome":"error"}}"#);
        assert_eq!(agent.ask_http("POST", "/v1/exit", &exit).status, 200);
    }
}

fn wait_for_clients(agent: &Agent, count: usize) {
    restarts::wait_for_clients(agent, count, |_client| true);
}

fn log_says(agent: &Agent, words: &str) -> usize {
    agent.log().matches(words).count()
}

#[test]
fn field_b13_a_restarted_agent_goes_on_with_windows_breakers_and_places() {
    let mut agent = Agent::start_logging(&rules(), CALM);
    let mut actors = [0, 1].map(|_process| Actor::start(&agent.runtime_dir()));
    let [first, second] = &mut actors;
    open_breaker(&agent);
    assert_eq!(first.ask("take work 6"), "taken 6 refused 0");
    assert_eq!(second.ask("take work 4"), "taken 4 refused 0");
    assert_eq!(first.ask("try hourly 60"), "passed 50 refused 10 qps");
    assert_eq!(first.ask("try strict 30"), "passed 20 refused 10 qps");
    for round in 1..=4 {
        agent.kill();
        let full = |actor: &mut Actor| {
            for (name, reason) in [
                ("work", "concurrency"),
                ("hourly", "qps"),
                ("strict", "qps"),
                ("payment", "breaker_open"),
            ] {
                let answer = actor.ask(&format!("try {name} 2"));
                assert_eq!(answer, format!("passed 0 refused 2 {reason}"), "{name}");
            }
        };
        actors.iter_mut().for_each(full);
        agent.start_again();
        actors.iter_mut().for_each(full);
        wait_for_clients(&agent, 2);
        actors.iter_mut().for_each(full);
        assert_eq!(agent.inflight("work"), 10);
        assert_eq!(log_says(&agent, "are taken up"), round, "{}", agent.log());
        // Callers over sockets are held to the same.
        for name in ["work", "hourly", "strict", "payment"] {
            let asked = format!(r#"{{"resource":"{name}"}}"#);
            let refused = agent.ask_http("POST", "/v1/enter", &asked);
            assert_eq!(refused.status, 429, "{name}: {}", refused.body);
        }
        let mut newcomer = Actor::start(&agent.runtime_dir());
        full(&mut newcomer);
    }
    let [first, second] = &mut actors;
    // Permits of the life before go back in this one.
    assert_eq!(first.ask("give 5"), "held 1");
    agent.wait_for_inflight("work", 5, SOON);
    assert_eq!(second.ask("take work 9"), "taken 5 refused 4");
    second.kill();
    agent.wait_for_inflight("work", 1, SOON);
    assert_eq!(first.ask("give 1"), "held 0");
    agent.wait_for_inflight("work", 0, SOON);
    assert_eq!(first.ask("open"), "open 0");
}

#[test]
fn field_b13_places_of_sockets_and_of_services_that_died_meanwhile_come_back() {
    let mut agent = Agent::start(&rules(), CALM);
    let [mut stays, mut dies] = [0, 1].map(|_process| Actor::start(&agent.runtime_dir()));
    assert_eq!(stays.ask("take work 2"), "taken 2 refused 0");
    assert_eq!(dies.ask("take work 3"), "taken 3 refused 0");
    let asked = r#"{"resource":"work"}"#;
    assert_eq!(agent.ask_http("POST", "/v1/enter", asked).status, 200);
    agent.wait_for_inflight("work", 6, SOON);
    agent.kill();
    dies.kill();
    agent.start_again();
    wait_for_clients(&agent, 1);
    assert_eq!(agent.inflight("work"), 2);
    assert_eq!(stays.ask("take work 9"), "taken 8 refused 1");
}

#[test]
fn field_b13_rules_that_changed_meanwhile_are_in_force_and_plain_windows_stay() {
    let mut agent = Agent::start(&rules(), CALM);
    let mut actor = Actor::start(&agent.runtime_dir());
    open_breaker(&agent);
    assert_eq!(actor.ask("take work 6"), "taken 6 refused 0");
    agent.kill();
    agent.write_rules(
        &rules()
            .replace("count = 10\n", "count = 8\n")
            .replace("count = 20\n", "count = 30\n")
            .replace(
                "resource = \"order\"\ncount = 100",
                "resource = \"order\"\ncount = 0",
            ),
    );
    agent.start_again();
    wait_for_clients(&agent, 1);
    // `order` tells the new rules from the old ones and takes nothing of `strict`, whatever the answer.
    until::holds("the new session", SOON, || {
        actor.ask("try order 1").starts_with("passed 0 ")
    });
    assert_eq!(actor.ask("try strict 31"), "passed 30 refused 1 qps");
    assert_eq!(actor.ask("take work 9"), "taken 2 refused 7");
    assert_eq!(
        actor.ask("try payment 1"),
        "passed 0 refused 1 breaker_open"
    );
}

/// More than one request a second passed, however often the agent was killed.
fn check_passed(answer: &str, least: u64) {
    let passed = answer.split(' ').nth(1);
    let passed = passed.and_then(|word| word.parse::<u64>().ok());
    assert!(passed.is_some_and(|passed| passed > least), "{answer}");
}

#[test]
#[expect(clippy::print_stdout, reason = "the figures are quoted in the README")]
fn alone_field_b13_no_limit_is_exceeded_while_the_agent_is_killed_again_and_again() {
    let seconds = std::env::var("TIDEGATE_RESTART_SECONDS").ok();
    let seconds = seconds.and_then(|seconds| seconds.parse().ok());
    let killed_for = seconds.map_or(KILLED_FOR, Duration::from_secs);
    let mut agent = Agent::start(&rules(), CALM);
    let count = SharedCount::create().unwrap();
    let [mut first, mut second, mut orders, mut watcher] =
        [0; 4].map(|_process| Actor::start(&agent.runtime_dir()));
    open_breaker(&agent);
    let offered = killed_for + Duration::from_secs(2);
    for actor in [&mut first, &mut second] {
        // 500 a second that stay 50 ms: 25 at a time.
        let seconds = offered.as_secs();
        actor.say(&format!("stay work 25 250 {seconds} 50 {}", count.path()));
    }
    orders.say(&format!("offer order 2 500 {}", offered.as_secs()));
    let begin = Instant::now();
    let mut restarts = 0_u64;
    while begin.elapsed() < killed_for {
        // Killed at some moment of its start, or after it.
        let lives_ms = u64::from(begin.elapsed().subsec_nanos()) / 1_000 % 400;
        until::throughout("an open breaker", Duration::from_millis(lives_ms), || {
            watcher.ask("try payment 1") == "passed 0 refused 1 breaker_open"
        });
        agent.kill_and_start_at_once();
        restarts += 1;
    }
    let limit = offered + SOON;
    for actor in [&first, &second] {
        check_passed(&actor.hear_within(limit), offered.as_secs());
    }
    let answer = orders.hear_within(limit);
    let [from, to, spans] = answer
        .splitn(3, ' ')
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    let spans: Spans = spans.parse().unwrap();
    let windows = spans.windows(from.parse().unwrap(), to.parse().unwrap());
    let over = windows.iter().filter(|(least, _most)| *least > 100).count();
    println!(
        "{restarts} restarts: {} in flight at most, {over} of {} windows over, {} passed",
        count.most(),
        windows.len(),
        spans.total()
    );
    assert_eq!(over, 0, "{windows:?}");
    assert!(count.most() <= 10, "{} were in flight", count.most());
    assert!(spans.total() > 80 * killed_for.as_secs(), "{spans}");
    for actor in [&mut first, &mut second, &mut orders, &mut watcher] {
        assert_eq!(actor.ask("open"), "open 0");
    }
    assert_eq!(
        watcher.ask("try payment 1"),
        "passed 0 refused 1 breaker_open"
    );
    agent.wait_for_inflight("work", 0, SOON);
    assert!(restarts >= 5, "{restarts}");
}
