//! A real Prometheus scrapes a real agent, and alerts fire and resolve. It has the rules as they are shipped, but for
//! their times, which are seconds in the place of minutes.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::{skip, until};

use super::RULES;

/// Some seconds as a rule, also on a machine that has much to do.
const LIMIT: Duration = Duration::from_secs(90);

/// What the load asks for: one resource is shut by its own rule, of the other the system rule takes one in flight.
const SHARP: &str = "[[flow]]\nresource = \"shut\"\ncount = 0\n[[system]]\nqps = 1.0\n";

/// A server with a directory of its own; it is killed when it is dropped.
struct Server {
    _dir: TempDir,
    address: SocketAddr,
    child: Child,
}

/// The shipped rules with short times.
fn quick_rules() -> String {
    let lines = RULES.lines().map(|line| {
        let line = line.replace("[5m]", "[5s]").replace("[2m]", "[5s]");
        match line.split_once("for: ") {
            Some((before, _time)) if before.trim().is_empty() => format!("{before}for: 1s\n"),
            _ => format!("{line}\n"),
        }
    });
    lines.collect()
}

/// An address of this host that nobody listens on.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there are ports");
    listener.local_addr().expect("it is bound")
}

impl Server {
    /// Starts one that scrapes this target. `None`, after saying so, where there is no Prometheus.
    fn start(target: &str) -> Option<Self> {
        let mut command = skip::tool("prometheus", "--version")?;
        let dir = tempfile::tempdir().expect("there is room");
        let write = |name: &str, text: &str| {
            fs::write(dir.path().join(name), text).expect("the directory is ours");
        };
        write("tidegate.rules.yml", &quick_rules());
        write(
            "prometheus.yml",
            &format!(
                "global:\n  scrape_interval: 500ms\n  scrape_timeout: 500ms\n  evaluation_interval: 500ms\n\
                 rule_files: [tidegate.rules.yml]\nscrape_configs:\n  - job_name: tidegate\n    \
                 static_configs:\n      - targets: [\"{target}\"]\n"
            ),
        );
        let address = free_address();
        let child = command
            .arg(format!(
                "--config.file={}",
                dir.path().join("prometheus.yml").display()
            ))
            .arg(format!(
                "--storage.tsdb.path={}",
                dir.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=error")
            .stdin(Stdio::null())
            .spawn()
            .expect("Prometheus starts");
        Some(Self {
            _dir: dir,
            address,
            child,
        })
    }

    /// What it answers to a GET; `None` while it does not.
    fn get(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(until::SOON)).ok()?;
        // The old version of HTTP: the answer comes in one piece.
        let question = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        stream.write_all(question.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (_head, body) = answer.split_once("\r\n\r\n")?;
        serde_json::from_str(body).ok()
    }

    /// Names of the alerts that fire; `None` while it does not answer.
    fn firing(&self) -> Option<Vec<String>> {
        let answer = self.get("/api/v1/alerts")?;
        let alerts = answer["data"]["alerts"].as_array()?;
        let firing = alerts.iter().filter(|alert| alert["state"] == "firing");
        let names = firing.filter_map(|alert| alert["labels"]["alertname"].as_str());
        Some(names.map(str::to_owned).collect())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _killed = self.child.kill();
        let _ended = self.child.wait();
    }
}

#[test]
fn alone_a_real_prometheus_sees_overload_and_refusals_begin_and_end() {
    let port = free_address();
    let config = format!("[http]\nmetrics_listen = \"{port}\"\n{CALM}");
    let agent = Agent::start(SHARP, &config);
    let Some(server) = Server::start(&port.to_string()) else {
        return;
    };
    let ask = || {
        for resource in ["shut", "open"] {
            let body = format!("{{\"resource\":\"{resource}\",\"direction\":\"in\"}}");
            agent.ask_http("POST", "/v1/enter", &body);
        }
    };
    let both = |firing: &[String]| {
        ["TidegateOverload", "TidegateRefusals"].map(|name| firing.iter().any(|one| one == name))
    };
    until::holds("a server that answers and fires nothing", LIMIT, || {
        server.firing().is_some_and(|firing| firing.is_empty())
    });
    until::holds("both alerts fire under load", LIMIT, || {
        ask();
        server
            .firing()
            .is_some_and(|firing| both(&firing) == [true, true])
    });
    until::holds("both alerts resolve without load", LIMIT, || {
        server
            .firing()
            .is_some_and(|firing| both(&firing) == [false, false])
    });
    // It asks for OpenMetrics, and has understood what it got: when a count began is told there alone.
    let answer = server.get("/api/v1/query?query=tidegate_ticks_created");
    let created = answer.is_some_and(|answer| answer["data"]["result"][0]["value"][1].is_string());
    assert!(created, "the server was told in OpenMetrics");
}
