//! Passes in windows, places in flight, and passes borrowed from the next window.

use tidegate_tests::actor::Actor;
use tidegate_tests::agent::{Agent, CALM, ONE_SEAT};
use tidegate_tests::race::{Passes, Race, Racers, Then};
use tidegate_tests::shared_count::SharedCount;
use tidegate_tests::spans::{BUCKET_NS, Spans};
use tidegate_tests::until::SOON;

use super::{QPS_RULE, check_windows};

const CONCURRENCY_RULE: &str =
    "[[flow]]\nresource = \"order\"\ngrade = \"concurrency\"\ncount = 30\n";

/// A flow rule with these fields more.
fn flow_rule(fields: &str) -> String {
    format!("[[flow]]\nresource = \"order\"\n{fields}\n")
}

/// The passes by half seconds.
fn spans(passes: &Passes) -> Spans {
    let mut spans = Spans::default();
    for (earliest, latest) in &passes.times {
        spans.admitted(*earliest, *latest);
    }
    spans
}

/// The most that must have been let in within one aligned second.
fn most_in_a_second(passes: &Passes) -> u64 {
    let buckets = passes
        .times
        .iter()
        .map(|(earliest, _)| earliest / BUCKET_NS);
    let first = buckets.clone().min().unwrap_or(0).saturating_sub(1);
    let last = buckets.max().unwrap_or(0) + 2;
    let windows = spans(passes).windows(first, last);
    windows
        .into_iter()
        .map(|(least, _)| least)
        .max()
        .unwrap_or(0)
}

/// Hears what each actor was admitted in its offer, and checks all of it together.
fn check_offers(actors: &[Actor]) {
    let mut all = Spans::default();
    let (mut first, mut last) = (0, u64::MAX);
    for actor in actors {
        let answer = actor.hear();
        let mut words = answer.splitn(3, ' ');
        let mut number = || words.next().unwrap().parse::<u64>().unwrap();
        first = first.max(number());
        last = last.min(number());
        let spans: Spans = words.next().unwrap().parse().unwrap();
        assert!(spans.total() > 0, "an actor was admitted nothing");
        all.add(&spans);
    }
    check_windows(&all, first, last);
}

#[test]
fn alone_eight_processes_behind_one_qps_rule_admit_exactly_its_count() {
    let agent = Agent::start(QPS_RULE, CALM);
    let mut racers = Racers::start(&agent);
    // At one moment: eight times the limit.
    let passes = racers.race_as_one("order", &Race::default());
    assert!(passes.len() >= 100, "only {} passed", passes.len());
    let most = most_in_a_second(&passes);
    assert!(most <= 100, "{most} in a second: {passes}");
    // And over seconds.
    for actor in &mut racers.actors {
        actor.say("offer order 1 600 4");
    }
    check_offers(&racers.actors);
}

#[test]
fn alone_eight_threads_that_offer_half_a_million_a_second_are_admitted_exactly_the_count() {
    let agent = Agent::start(QPS_RULE, CALM);
    let mut actor = Actor::start(&agent.runtime_dir());
    // More than a machine of two CPUs may get asked: then all of them ask without a pause.
    actor.say("offer order 8 500000 4");
    check_offers(&[actor]);
}

#[test]
fn alone_eight_processes_behind_a_rule_of_ten_seconds_admit_its_count() {
    let agent = Agent::start(&flow_rule("count = 100\nwindow = \"10s\""), CALM);
    let passes = Racers::start(&agent).race_as_one("order", &Race::default());
    assert_eq!(passes.len(), 100);
}

#[test]
fn alone_eight_processes_of_a_cold_resource_get_its_cold_rate() {
    let fields = "count = 300\nbehavior = \"warm_up\"\nwarm_up_period = \"10s\"";
    let agent = Agent::start(&flow_rule(fields), CALM);
    let passes = Racers::start(&agent).race_as_one("order", &Race::default());
    assert!(passes.len() >= 100, "only {} passed", passes.len());
    // 100 in the first second; where the moment falls on an edge, 104 in the next. A machine that stalls draws the
    // moment out, and the resource warms meanwhile: by less than 8 a second that soon.
    let times = passes.times.iter();
    let begin = times.clone().map(|(earliest, _)| *earliest).min();
    let end = times.map(|(_, latest)| *latest).max();
    let seconds = (end.unwrap() - begin.unwrap()) / 1_000_000_000;
    let most = most_in_a_second(&passes);
    assert!(most <= 104 + 8 * seconds, "{most} in a second: {passes}");
}

#[test]
fn alone_eight_processes_that_borrow_never_exceed_the_window_they_borrow_of() {
    let agent = Agent::start(&flow_rule("count = 40"), CALM);
    let race = Race {
        tries: u32::MAX,
        for_ms: 4_000,
        prioritized: true,
        ..Race::default()
    };
    let mut passes = Racers::start(&agent).race_as_one("order", &race);
    let mut borrowed = 0;
    for (earliest, latest) in &mut passes.times {
        // A borrower waits until the next half second, and is let in just then.
        let edge = earliest.next_multiple_of(BUCKET_NS);
        if edge <= *latest && edge - *earliest < 1_000_000 {
            borrowed += 1;
            (*earliest, *latest) = (edge, edge);
        }
    }
    assert!(borrowed > 0, "nobody borrowed: {passes}");
    let most = most_in_a_second(&passes);
    assert!(
        most <= 40,
        "{most} in a second, {borrowed} borrowed: {passes}"
    );
    assert!(passes.len() >= 100, "only {} passed", passes.len());
}

#[test]
fn alone_eight_processes_take_exactly_the_places_there_are() {
    let agent = Agent::start(CONCURRENCY_RULE, CALM);
    let mut racers = Racers::start(&agent);
    let keep = Race {
        then: Then::Keep,
        ..Race::default()
    };
    let passes = racers.race("order", &keep);
    let taken: usize = passes.iter().map(Passes::len).sum();
    assert_eq!(taken, 30);
    // The places of a process that is killed are there for the others, and no more than those.
    racers.actors[0].kill();
    racers.actors.remove(0);
    let freed = passes[0].len();
    agent.wait_for_inflight("order", 30 - freed as u64, SOON);
    assert_eq!(racers.race_as_one("order", &keep).len(), freed);
}

#[test]
fn alone_two_processes_behind_one_qps_rule_admit_exactly_its_count() {
    let agent = Agent::start(QPS_RULE, CALM);
    let mut actors = [0, 1].map(|_process| Actor::start(&agent.runtime_dir()));
    for actor in &mut actors {
        actor.say("offer order 4 2500 6");
    }
    check_offers(&actors);
    for actor in &mut actors {
        assert_eq!(actor.ask("open"), "open 0");
    }
}

#[test]
fn alone_a_process_with_a_seat_and_one_without_share_one_qps_rule() {
    let agent = Agent::start(QPS_RULE, &format!("{CALM}{ONE_SEAT}"));
    let mut actors = [0, 1].map(|_process| Actor::start(&agent.runtime_dir()));
    let [seated, seatless] = &mut actors;
    assert_eq!(seated.ask("door"), "shm");
    assert_eq!(seatless.ask("door"), "socket");
    for actor in &mut actors {
        actor.say("offer order 1 1000 5");
    }
    check_offers(&actors);
}

#[test]
fn alone_two_hundred_threads_of_four_processes_are_never_more_than_thirty_inside() {
    let agent = Agent::start(CONCURRENCY_RULE, CALM);
    let count = SharedCount::create().unwrap();
    let mut actors = [0; 4].map(|_process| Actor::start(&agent.runtime_dir()));
    for actor in &mut actors {
        actor.say(&format!("crowd order 50 4 {}", count.path()));
    }
    let mut passed = 0;
    for actor in &actors {
        let answer = actor.hear();
        let words: Vec<&str> = answer.split(' ').collect();
        passed += words[1].parse::<u64>().unwrap();
    }
    assert!(passed > 1_000, "only {passed} were let in");
    assert!(count.most() <= 30, "{} were inside", count.most());
    assert!(count.most() >= 29, "only {} were ever inside", count.most());
    agent.wait_for_inflight("order", 0, SOON);
}
