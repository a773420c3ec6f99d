//! Services that ask for each request they get, seen by their clients.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use tidegate_segment::clock::monotonic_ns;
use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::program::Program;
use tidegate_tests::spans::{BUCKET_NS, Spans};

use super::{QPS_RULE, check_windows};

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
    check_windows(&all, first, last);
}
