//! A running agent: start, questions, reload, end, as the service manager sees them.

use std::fs;
use std::io::{PipeReader, PipeWriter, Write as _};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::{err, out, tidegate};

/// Far more than any step takes on a busy machine.
const DEADLINE: Duration = Duration::from_mins(1);

const CONFIG: &str = "[http]\nmetrics_enabled = false\n[rules]\ndir = \"rules.d\"\n";

/// An agent that tells this test what it would tell a service manager.
struct Agent {
    home: TempDir,
    process: Child,
    told: UnixDatagram,
}

fn home(rule: &str) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("rules.d")).unwrap();
    fs::write(home.path().join("c.toml"), CONFIG).unwrap();
    write_rule(home.path(), rule);
    home
}

fn write_rule(home: &Path, rule: &str) {
    fs::write(home.join("rules.d/a.toml"), rule).unwrap();
}

fn limit(count: &str) -> String {
    format!("[[flow]]\nresource = \"a\"\ngrade = \"qps\"\ncount = {count}\n")
}

impl Agent {
    /// Starts one and waits until it is ready.
    fn start(rule: &str) -> Self {
        Self::start_with(rule, Stdio::null())
    }

    /// The same with this for its log.
    fn start_with(rule: &str, log: Stdio) -> Self {
        let home = home(rule);
        let notify = home.path().join("notify");
        let told = UnixDatagram::bind(&notify).unwrap();
        told.set_read_timeout(Some(DEADLINE)).unwrap();
        let process = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .args(["run", "--config", "c.toml", "--runtime-dir", "."])
            .current_dir(home.path())
            .env("NOTIFY_SOCKET", &notify)
            .env("WATCHDOG_USEC", "200000")
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let agent = Self {
            home,
            process,
            told,
        };
        agent.wait_for("READY=1");
        agent
    }

    /// Waits until the agent tells the service manager this.
    fn wait_for(&self, state: &str) {
        let mut buffer = [0; 256];
        loop {
            let length = self.told.recv(&mut buffer).expect(state);
            let message = String::from_utf8_lossy(&buffer[..length]);
            if message.lines().any(|line| line == state) {
                return;
            }
        }
    }

    fn tell(&self, signal: Signal) {
        let pid = i32::try_from(self.process.id()).unwrap();
        kill(Pid::from_raw(pid), signal).unwrap();
    }

    fn ask(&self, arguments: &[&str]) -> std::process::Output {
        let arguments = [arguments, &["--runtime-dir", "."]].concat();
        tidegate(self.home.path(), &arguments)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.process.kill().unwrap_or_default();
        let _status = self.process.wait();
    }
}

#[test]
fn an_agent_answers_reloads_and_ends() {
    let mut agent = Agent::start(&limit("0"));
    assert_eq!(agent.ask(&["enter", "b"]).status.code(), Some(0));
    let refused = agent.ask(&["enter", "a", "--json"]);
    assert_eq!(refused.status.code(), Some(3), "{}", err(&refused));
    let answer: serde_json::Value = serde_json::from_str(&out(&refused)).unwrap();
    assert_eq!(answer["kind"], "flow");

    // It ticks from here on.
    agent.wait_for("WATCHDOG=1");
    let status = agent.ask(&["status", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&out(&status)).unwrap();
    for key in ["agent", "scopes", "resources", "clients"] {
        assert!(!status[key].is_null(), "{key} is missing in {status}");
    }
    let text = out(&agent.ask(&["status"]));
    assert!(text.contains("\nhost "), "{text}");

    write_rule(agent.home.path(), &limit("1000"));
    agent.tell(Signal::SIGHUP);
    agent.wait_for("RELOADING=1");
    agent.wait_for("READY=1");
    assert_eq!(agent.ask(&["enter", "a"]).status.code(), Some(0));

    write_rule(agent.home.path(), &limit("-1"));
    agent.tell(Signal::SIGHUP);
    agent.wait_for("READY=1");
    let kept = agent.ask(&["enter", "a"]);
    assert_eq!(kept.status.code(), Some(0), "the last good rules stay");

    agent.tell(Signal::SIGTERM);
    agent.wait_for("STOPPING=1");
    assert!(agent.process.wait().unwrap().success());
    for socket in ["gate.sock", "http.sock"] {
        assert!(!agent.home.path().join(socket).exists(), "{socket} is left");
    }
}

/// A pipe that has no room, and that nobody reads while the first half is held.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    while writer.write_all(&[b'.'; 4096]).is_ok() {}
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
    (reader, writer)
}

#[test]
fn an_agent_whose_log_nobody_reads_serves_reloads_and_ends() {
    let (_unread, log) = full_pipe();
    let mut agent = Agent::start_with(&limit("0"), log.into());
    write_rule(agent.home.path(), &limit("1000"));
    agent.tell(Signal::SIGHUP);
    agent.wait_for("RELOADING=1");
    agent.wait_for("READY=1");
    assert_eq!(agent.ask(&["enter", "a"]).status.code(), Some(0));
    agent.tell(Signal::SIGTERM);
    assert!(agent.process.wait().unwrap().success());
}

#[test]
fn an_agent_ends_though_connections_are_silent_or_wait_for_their_turn() {
    let pacing = "[[flow]]\nresource = \"a\"\ncount = 0.1\nbehavior = \"pace\"\nmax_queueing_time = \"1m\"\n";
    let mut agent = Agent::start(pacing);
    let socket = agent.home.path().join("http.sock");
    let mut connections: Vec<UnixStream> = (0..3)
        .map(|_connection| UnixStream::connect(&socket).unwrap())
        .collect();
    for connection in connections.iter_mut().skip(1) {
        let body = r#"{"resource":"a"}"#;
        let length = body.len();
        let head =
            format!("POST /v1/enter HTTP/1.1\r\nHost: t\r\nContent-Length: {length}\r\n\r\n");
        connection.write_all((head + body).as_bytes()).unwrap();
    }
    agent.tell(Signal::SIGTERM);
    assert!(agent.process.wait().unwrap().success());
}

#[test]
fn a_second_agent_does_not_take_the_sockets_of_the_first() {
    let agent = Agent::start(&limit("1"));
    let second = agent.ask(&["run", "--config", "c.toml"]);
    assert_eq!(second.status.code(), Some(1));
    let text = err(&second);
    assert!(text.contains("an agent runs already"), "{text}");
    assert_eq!(agent.ask(&["enter", "b"]).status.code(), Some(0));
}

#[test]
fn a_strict_agent_does_not_start_on_bad_rules() {
    let home = home(&limit("-1"));
    let arguments = [
        "run",
        "--strict",
        "--config",
        "c.toml",
        "--runtime-dir",
        ".",
    ];
    let output = tidegate(home.path(), &arguments);
    assert_eq!(output.status.code(), Some(2));
    let text = err(&output);
    assert!(text.contains("a.toml:4:9: flow[0].count = -1"), "{text}");
}
