//! Services hand the pages of the agent's last life back, or what is in flight there counts all the same; liars are told
//! from them.

#![cfg(test)]

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tidegate_abi::message::NO_SEAT;
use tidegate_segment::os::memfd::{self, MemoryKind};
use tidegate_tests::actor::Actor;
use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::raw_service::RawService;
use tidegate_tests::restarts::{RULES, wait_for_clients};
use tidegate_tests::until::{self, SOON};
use tidegate_tests::user::{self, act_as};

/// Everybody may connect.
const OPEN: &str = "[socket]\nmode = \"0666\"\n";

/// The agent waits 10 s for who does not come, and more on a slow machine.
const LATE: std::time::Duration = std::time::Duration::from_mins(1);

fn pages(agent: &Agent, tenant: &str) -> Value {
    let status = agent.get("/v1/status");
    let pages = status.pointer("/agent/pages").and_then(Value::as_array);
    let mut pages = pages.into_iter().flatten();
    let own = pages.find(|pages| pages["tenant"] == tenant).cloned();
    own.unwrap_or_default()
}

/// Waits until so many processes sit on the pages.
fn wait_for_seats(agent: &Agent, count: usize) {
    wait_for_clients(agent, count, |client| client["door"] == "shm");
}

/// Takes away what the agent has written of its pages.
fn lose_record(agent: &Agent) {
    let files = fs::read_dir(agent.runtime_dir()).expect("the directory is there");
    let paths = files.map(|file| file.expect("it can be listed").path());
    let is_record = |path: &std::path::PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| name.starts_with("pages-"))
    };
    let records: Vec<_> = paths.filter(is_record).collect();
    assert!(!records.is_empty());
    for record in records {
        fs::remove_file(record).expect("it is ours");
    }
}

fn refused(agent: &Agent, reason: &str) -> u64 {
    let metrics = agent.ask_http("GET", "/metrics", "").body;
    let line = format!("tidegate_hand_backs_refused_total{{reason=\"{reason}\"}} ");
    let count = metrics.lines().find_map(|told| told.strip_prefix(&line));
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Two services hold all ten places over a restart with new pages, and give them back.
fn what_is_held_counts(agent: &mut Agent, [first, second]: &mut [Actor; 2]) {
    agent.start_again();
    // Whoever comes first: not a place is free.
    let mut newcomer = Actor::start(&agent.runtime_dir());
    assert_eq!(
        newcomer.ask("try work 2"),
        "passed 0 refused 2 concurrency",
        "{}",
        agent.log()
    );
    wait_for_seats(agent, 3);
    assert_eq!(agent.inflight("work"), 10);
    let pages = pages(agent, "default");
    assert_eq!(pages["begun"], "anew", "{pages}");
    assert_eq!(pages["earlier_inflight"], 10, "{pages}");
    assert_eq!(first.ask("give 5"), "held 1");
    agent.wait_for_inflight("work", 5, SOON);
    assert_eq!(second.ask("take work 9"), "taken 5 refused 4");
    assert_eq!(agent.inflight("work"), 10);
    // A death takes the places of both lives along.
    second.kill();
    agent.wait_for_inflight("work", 1, SOON);
    assert_eq!(first.ask("give 1"), "held 0");
    agent.wait_for_inflight("work", 0, SOON);
    assert_eq!(newcomer.ask("take work 11"), "taken 10 refused 1");
}

fn ten_held(agent: &Agent) -> [Actor; 2] {
    let mut actors = [0, 1].map(|_process| Actor::start(&agent.runtime_dir()));
    let [first, second] = &mut actors;
    assert_eq!(first.ask("take work 6"), "taken 6 refused 0");
    assert_eq!(second.ask("take work 4"), "taken 4 refused 0");
    actors
}

#[test]
fn field_b13_without_a_record_what_services_hold_counts_until_they_give_it_back() {
    let mut agent = Agent::start_logging(RULES, CALM);
    let mut actors = ten_held(&agent);
    agent.kill();
    lose_record(&agent);
    what_is_held_counts(&mut agent, &mut actors);
}

#[test]
fn field_b13_with_other_sizes_what_services_hold_counts_until_they_give_it_back() {
    let mut agent = Agent::start_logging(RULES, CALM);
    let mut actors = ten_held(&agent);
    agent.kill();
    let config = agent.runtime_dir().with_file_name("tidegate.toml");
    let before = fs::read_to_string(&config).expect("the agent was started with it");
    fs::write(&config, format!("{before}\n[pages]\nmax_resources = 512\n")).expect("it is ours");
    what_is_held_counts(&mut agent, &mut actors);
}

#[test]
fn field_b13_places_of_a_stopped_service_count_until_it_goes_on() {
    let mut agent = Agent::start_logging(RULES, CALM);
    let [mut stopped, mut other] = ten_held(&agent);
    let pid = i32::try_from(stopped.pid()).ok().and_then(Pid::from_raw);
    let pid = pid.expect("it is a process");
    kill_process(pid, Signal::STOP).expect("it is ours");
    agent.kill();
    agent.start_again();
    wait_for_seats(&agent, 1);
    until::holds("the agent waits no longer", LATE, || {
        agent
            .log()
            .contains("have not come back: what they have in flight counts for")
    });
    // Who is new gets a seat again, and no place.
    let mut newcomer = Actor::start(&agent.runtime_dir());
    assert_eq!(newcomer.ask("door"), "shm");
    assert_eq!(newcomer.ask("try work 1"), "passed 0 refused 1 concurrency");
    assert_eq!(other.ask("give 4"), "held 0");
    assert_eq!(newcomer.ask("take work 9"), "taken 4 refused 5");
    kill_process(pid, Signal::CONT).expect("it is ours");
    wait_for_seats(&agent, 3);
    assert_eq!(stopped.ask("give 6"), "held 0");
    agent.wait_for_inflight("work", 4, SOON);
}

#[test]
fn field_b13_who_comes_too_late_to_hand_its_pages_back_has_its_places_counted() {
    let mut agent = Agent::start_logging(RULES, CALM);
    let mut actor = Actor::start(&agent.runtime_dir());
    assert_eq!(actor.ask("take work 6"), "taken 6 refused 0");
    let pid = i32::try_from(actor.pid()).ok().and_then(Pid::from_raw);
    let pid = pid.expect("it is a process");
    kill_process(pid, Signal::STOP).expect("it is ours");
    agent.kill();
    agent.start_again();
    assert_eq!(agent.inflight("work"), 0);
    kill_process(pid, Signal::CONT).expect("it is ours");
    agent.wait_for_inflight("work", 6, SOON);
    wait_for_seats(&agent, 1);
    assert_eq!(actor.ask("take work 6"), "taken 4 refused 2");
    // What was taken before goes back first.
    assert_eq!(actor.ask("give 10"), "held 0");
    agent.wait_for_inflight("work", 0, SOON);
}

#[test]
fn field_b13_a_forged_ledger_is_told_from_the_genuine_one_whoever_comes_first() {
    if !user::are_at_hand() {
        return;
    }
    let mut agent = Agent::start_logging(RULES, &format!("{CALM}{OPEN}"));
    agent.open_directory();
    let [mut first, mut second] = ten_held(&agent);
    assert_eq!(first.ask("try hourly 60"), "passed 50 refused 10 qps");
    agent.kill();
    let directory = agent.runtime_dir();
    let [liar, _other] = user::TWO;
    let lies = std::thread::scope(|scope| {
        let lying = scope.spawn(|| act_as(liar, || lie(&directory)));
        agent.start_again();
        lying.join().expect("it says why it fails")
    });
    assert_ne!(lies.welcome.seat, 1, "it has no seat of somebody else");
    wait_for_seats(&agent, 2 + usize::from(lies.welcome.seat != NO_SEAT));
    assert_eq!(
        agent.log().matches("are taken up").count(),
        1,
        "{}",
        agent.log()
    );
    for actor in [&mut first, &mut second] {
        assert_eq!(actor.ask("try hourly 1"), "passed 0 refused 1 qps");
        assert_eq!(actor.ask("try work 1"), "passed 0 refused 1 concurrency");
    }
    assert_eq!(agent.inflight("work"), 10);
    assert!(refused(&agent, "forged") >= 1, "{}", agent.log());
    assert!(
        agent.log().contains("made what was handed back"),
        "{}",
        agent.log()
    );
}

/// Hands back pages that it made itself, until somebody listens.
fn lie(directory: &std::path::Path) -> RawService {
    let (_board, board) = memfd::create(MemoryKind::Board, 4096).expect("there is memory");
    let (_ledger, ledger) = memfd::create(MemoryKind::Ledger, 4096).expect("there is memory");
    let again = || RawService::again(directory, (1, 1), [&board, &ledger]).ok();
    until::found("an agent that answers", LATE, again).0
}

#[test]
fn field_b13_the_genuine_board_with_a_forged_ledger_counts_for_nothing() {
    if !user::are_at_hand() {
        return;
    }
    let mut agent = Agent::start_logging(RULES, &format!("{CALM}{OPEN}"));
    agent.open_directory();
    let directory = agent.runtime_dir();
    let [liar, _other] = user::TWO;
    let own = act_as(liar, || {
        RawService::hello(&directory).expect("the agent serves")
    });
    agent.kill();
    agent.start_again();
    let words = usize::try_from(own.welcome.ledger_words).expect("it is mapped here");
    let [board, _ledger] = own.files.as_slice() else {
        panic!("a seat comes with two files");
    };
    let seat = (own.welcome.seat, own.welcome.seat_generation);
    act_as(liar, || {
        let (_page, forged) = memfd::create(MemoryKind::Ledger, words).expect("there is memory");
        RawService::again(&directory, seat, [board, &forged]).expect("it is served all the same");
    });
    assert_eq!(refused(&agent, "forged"), 1, "{}", agent.log());
    assert_eq!(agent.inflight("work"), 0);
}

#[test]
fn field_b13_each_tenant_gets_its_own_pages_back() {
    if !user::are_at_hand() {
        return;
    }
    let [blue, _other] = user::TWO;
    let config = format!("{CALM}{OPEN}[[tenant]]\nname = \"blue\"\nuid = {blue}\n");
    let mut agent = Agent::start_logging(RULES, &config);
    agent.open_directory();
    let mut root = Actor::start(&agent.runtime_dir());
    let mut own = Actor::start_as(blue, &agent.runtime_dir());
    assert_eq!(root.ask("take work 6"), "taken 6 refused 0");
    assert_eq!(own.ask("take work 3"), "taken 3 refused 0");
    assert_eq!(own.ask("try hourly 60"), "passed 50 refused 10 qps");
    agent.kill();
    agent.start_again();
    wait_for_seats(&agent, 2);
    for tenant in ["default", "blue"] {
        assert_eq!(
            pages(&agent, tenant)["begun"],
            "taken_up",
            "{}",
            agent.log()
        );
    }
    assert_eq!(root.ask("take work 9"), "taken 4 refused 5");
    assert_eq!(own.ask("take work 9"), "taken 7 refused 2");
    assert_eq!(own.ask("try hourly 1"), "passed 0 refused 1 qps");
    assert_eq!(root.ask("try hourly 1"), "passed 1 refused 0 none");
}

#[test]
fn field_b13_a_service_that_knows_no_again_gets_a_new_seat_and_the_others_keep_theirs() {
    let mut agent = Agent::start_logging(RULES, CALM);
    let [mut first, mut second] = ten_held(&agent);
    let older = RawService::hello(&agent.runtime_dir()).expect("the agent serves");
    assert_ne!(older.welcome.seat, NO_SEAT);
    agent.kill();
    agent.start_again();
    let again = RawService::hello(&agent.runtime_dir()).expect("the agent serves");
    wait_for_seats(&agent, 2 + usize::from(again.welcome.seat != NO_SEAT));
    assert_eq!(pages(&agent, "default")["begun"], "taken_up");
    for actor in [&mut first, &mut second] {
        assert_eq!(actor.ask("try work 1"), "passed 0 refused 1 concurrency");
    }
    assert_eq!(first.ask("give 6"), "held 0");
    agent.wait_for_inflight("work", 4, SOON);
    for reason in ["unknown", "forged", "no_pages", "stranger", "many"] {
        assert_eq!(refused(&agent, reason), 0, "{reason}");
    }
}
