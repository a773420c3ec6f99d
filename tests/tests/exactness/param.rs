//! Limits for each value of an argument.

use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::race::{Passes, Race, Racers, Then};
use tidegate_tests::until;

/// A limit for each value of the first argument, with these fields more.
fn rule(fields: &str) -> String {
    format!("[[param]]\nresource = \"query\"\nindex = 0\n{fields}\n")
}

fn of(value: i64) -> Race {
    Race {
        value: Some(value),
        ..Race::default()
    }
}

#[test]
fn alone_eight_processes_get_the_tokens_of_each_value_once() {
    let agent = Agent::start(&rule("count = 50\nburst = 7\nwindow = \"60s\""), CALM);
    let mut racers = Racers::start(&agent);
    for value in 0..5 {
        // For the first time, from all at one moment.
        assert_eq!(racers.race_as_one("query", &of(value)).len(), 57, "{value}");
    }
    assert_eq!(racers.race_as_one("query", &of(3)).len(), 0, "none is left");
}

#[test]
fn alone_eight_processes_are_held_to_a_strict_limit_of_a_value() {
    let fields = "count = 50\nwindow = \"1s\"\nstrict = true";
    let agent = Agent::start(&rule(fields), CALM);
    let race = Race {
        tries: u32::MAX,
        for_ms: 2_500,
        ..of(9)
    };
    let passes = Racers::start(&agent).race_as_one("query", &race);
    assert_eq!(passes.too_close(50, 1_000_000_000 / 50), None);
    assert!(passes.len() >= 100, "only {} passed", passes.len());
}

#[test]
fn alone_eight_processes_of_one_paced_value_are_an_interval_apart() {
    let fields = "count = 100\nbehavior = \"pace\"\nmax_queueing_time = \"100ms\"";
    let agent = Agent::start(&rule(fields), CALM);
    let race = Race {
        tries: u32::MAX,
        for_ms: 1_500,
        ..of(9)
    };
    let passes = Racers::start(&agent).race_as_one("query", &race);
    // Turns of values are whole milliseconds, and a caller is let in within its one.
    for many in [1, 10, 50] {
        let apart_ns = 10_000_000 - 1_000_000 / many as u64;
        assert_eq!(
            passes.too_close(many, apart_ns),
            None,
            "{} passes",
            passes.len()
        );
    }
    // Fifty that follow one, and more: how many turns are asked for in time is the machine's matter.
    assert!(passes.len() > 50, "only {} passed", passes.len());
}

#[test]
fn alone_eight_processes_run_as_many_calls_of_a_value_as_it_may_have() {
    let agent = Agent::start(&rule("count = 20\ngrade = \"concurrency\""), CALM);
    let mut racers = Racers::start(&agent);
    let keep = |value| Race {
        then: Then::Keep,
        ..of(value)
    };
    let passes = racers.race("query", &keep(1));
    assert_eq!(passes.iter().map(Passes::len).sum::<usize>(), 20);
    assert_eq!(racers.race_as_one("query", &keep(2)).len(), 20);
    // The calls of a process that is killed are over.
    racers.actors[0].kill();
    racers.actors.remove(0);
    let mut again = 0;
    until::holds("the calls of the dead are over", until::SOON, || {
        again += racers.race_as_one("query", &keep(1)).len();
        again >= passes[0].len()
    });
    assert_eq!(again, passes[0].len());
    assert_eq!(racers.race_as_one("query", &keep(1)).len(), 0);
}
