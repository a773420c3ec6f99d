//! Limits hold over processes and threads: never exceeded, never left unused.

#![cfg(test)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use tidegate_segment::clock::monotonic_ns;
use tidegate_tests::actor::Actor;
use tidegate_tests::agent::{Agent, CALM, ONE_SEAT};
use tidegate_tests::program::Program;
use tidegate_tests::shared_count::SharedCount;
use tidegate_tests::spans::{BUCKET_NS, Spans};
use tidegate_tests::until::SOON;

const LIMIT: u64 = 100;
const QPS_RULE: &str = "[[flow]]\nresource = \"order\"\ngrade = \"qps\"\ncount = 100\n";
const CONCURRENCY_RULE: &str =
    "[[flow]]\nresource = \"order\"\ngrade = \"concurrency\"\ncount = 30\n";

/// No window has more than the limit, and each has at least 99 % of it.
fn check(spans: &Spans, first: u64, last: u64) {
    let windows = spans.windows(first, last);
    assert!(windows.len() >= 4, "too short an offer: {spans}");
    for (least, most) in windows {
        assert!(least <= LIMIT, "{least} admitted in one window: {spans}");
        assert!(
            most >= LIMIT - 1,
            "only {most} admitted in one window: {spans}"
        );
    }
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
    check(&all, first, last);
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

/// A running guarded HTTP server.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(agent: &Agent) -> Self {
        let mut child = Program::GuardedHttp
            .command()
            .arg("--runtime-dir")
            .arg(agent.runtime_dir())
            .args(["--resource", "order", "--workers", "8"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut address).unwrap();
        let address = address.trim().to_owned();
        Self { child, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Sends one request after the other until `end`, and counts what was admitted.
fn send(address: &str, end: Instant) -> (Spans, u64) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut spans, mut sent) = (Spans::default(), 0);
    let mut answer = [0; 1024];
    while Instant::now() < end {
        let before_ns = monotonic_ns();
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        let length = stream.read(&mut answer).unwrap();
        sent += 1;
        if answer[..length].starts_with(b"HTTP/1.1 200") {
            spans.admitted(before_ns, monotonic_ns());
        } else {
            assert!(answer[..length].starts_with(b"HTTP/1.1 429"));
        }
    }
    (spans, sent)
}

#[test]
fn alone_two_http_servers_behind_one_qps_rule_admit_exactly_its_count() {
    let agent = Agent::start(QPS_RULE, CALM);
    let servers = [0, 1].map(|_server| Server::start(&agent));
    let end = Instant::now() + Duration::from_secs(5);
    let first = monotonic_ns() / BUCKET_NS + 1;
    let (mut all, mut sent) = (Spans::default(), 0);
    std::thread::scope(|scope| {
        let senders: Vec<_> = (0..6)
            .map(|sender| {
                let address = &servers[sender % 2].address;
                scope.spawn(move || send(address, end))
            })
            .collect();
        for sender in senders {
            let (spans, count) = sender.join().unwrap();
            all.add(&spans);
            sent += count;
        }
    });
    let last = monotonic_ns() / BUCKET_NS - 1;
    assert!(sent >= 10_000, "only {sent} requests were offered");
    check(&all, first, last);
}
