//! The real agent, in a directory of its own.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::Program;
use crate::until::{self, SOON};

/// Configuration under which no scope ever limits anything, whatever else the machine runs: for tests
/// of rules.
pub const CALM: &str = "
[cpu]
enabled = false
[load]
enabled = false
[law.entry]
least_requests = 1000000.0
[law.tight]
slack_requests = 1000000.0
[law.cold]
entry_per_cpu = 1000000.0
tight_per_cpu = 1000000.0
";

/// A configuration beside [`CALM`] with a seat for one service: the second to connect gets none.
pub const ONE_SEAT: &str = "
[pages]
max_seats = 2
";

/// File in an agent's directory that takes its log, where there is one.
const LOG: &str = "log";

/// What came back over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpReply {
    /// Status code; 0 where there was none.
    pub status: u16,
    /// Body.
    pub body: String,
}

/// A running agent; it is killed when it is dropped, and its directory goes with it.
#[derive(Debug)]
pub struct Agent {
    dir: TempDir,
    child: Child,
}

impl Agent {
    /// Starts an agent on these rules (a file of `rules.d`) and with these lines added to its
    /// configuration, and waits until it serves.
    ///
    /// # Panics
    /// If it does not.
    pub fn start(rules: &str, config: &str) -> Self {
        Self::start_in(temporary(), rules, config)
    }

    /// The same, by a command that runs the program that its further arguments name, such as `setpriv`.
    ///
    /// # Panics
    /// If it does not serve.
    pub fn start_by(mut command: Command, config: &str) -> Self {
        command.arg(Program::Tidegate.path());
        Self::start_with(command, temporary(), "", config)
    }

    /// Both: by a command, and with its log in a file.
    ///
    /// # Panics
    /// If it does not serve.
    #[expect(clippy::expect_used, reason = "a test ends here")]
    pub fn start_logging_by(mut command: Command, config: &str) -> Self {
        let dir = temporary();
        fs::write(dir.path().join(LOG), "").expect("the directory is ours");
        command.arg(Program::Tidegate.path());
        Self::start_with(command, dir, "", config)
    }

    /// The same, with its log in a file for [`Agent::log`].
    ///
    /// # Panics
    /// If it does not serve.
    #[expect(clippy::expect_used, reason = "a test ends here")]
    pub fn start_logging(rules: &str, config: &str) -> Self {
        let dir = temporary();
        fs::write(dir.path().join(LOG), "").expect("the directory is ours");
        Self::start_in(dir, rules, config)
    }

    /// The same, with a log that takes nothing, as on a full disk.
    ///
    /// # Panics
    /// If it does not serve.
    #[expect(clippy::expect_used, reason = "a test ends here")]
    pub fn start_with_full_log(rules: &str, config: &str) -> Self {
        let dir = temporary();
        std::os::unix::fs::symlink("/dev/full", dir.path().join(LOG))
            .expect("the directory is ours");
        Self::start_in(dir, rules, config)
    }

    /// What it has logged so far; nothing unless it was started so.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join(LOG)).unwrap_or_default()
    }

    fn start_in(dir: TempDir, rules: &str, config: &str) -> Self {
        Self::start_with(Program::Tidegate.command(), dir, rules, config)
    }

    #[expect(clippy::expect_used, reason = "a test ends here")]
    fn start_with(command: Command, dir: TempDir, rules: &str, config: &str) -> Self {
        let rules_dir = dir.path().join("rules.d");
        fs::create_dir(&rules_dir).expect("the directory is ours");
        fs::write(rules_dir.join("test.toml"), rules).expect("the directory is ours");
        write_config(dir.path(), config);
        let child = spawn(command, dir.path());
        let agent = Self { dir, child };
        agent.wait_until_it_serves();
        agent
    }

    /// Gives it other rules, in the place of those it was started with. It finds them by itself.
    ///
    /// # Panics
    /// If they cannot be written.
    #[expect(clippy::expect_used, reason = "a test ends here")]
    pub fn write_rules(&self, rules: &str) {
        let new = self.dir.path().join("new.toml");
        fs::write(&new, rules).expect("the directory is ours");
        let place = self.rules_dir().join("test.toml");
        fs::rename(new, place).expect("the directory is ours");
    }

    /// Gives it another configuration with its next reload, in the place of the one it was started with.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write_config(&self, config: &str) {
        write_config(self.dir.path(), config);
    }

    /// The directory of its rules.
    pub fn rules_dir(&self) -> PathBuf {
        self.dir.path().join("rules.d")
    }

    /// Tells it to read its configuration and its rules again.
    ///
    /// # Panics
    /// If it is gone.
    pub fn reload(&self) {
        self.signal(Signal::HUP);
    }

    /// Its runtime directory.
    pub fn runtime_dir(&self) -> PathBuf {
        self.dir.path().join("run")
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it without a warning.
    ///
    /// # Panics
    /// If it cannot be killed.
    #[expect(clippy::expect_used, reason = "a test ends here")]
    pub fn kill(&mut self) {
        self.child.kill().expect("the agent can be killed");
        self.child.wait().expect("the agent can be waited for");
    }

    /// Starts it anew after [`Agent::kill`] and waits until it serves.
    ///
    /// # Panics
    /// If it does not.
    pub fn start_again(&mut self) {
        self.child = spawn(Program::Tidegate.command(), self.dir.path());
        self.wait_until_it_serves();
    }

    /// Kills it and starts it anew at once, while the kernel still takes the old one apart.
    ///
    /// # Panics
    /// If the new one does not serve.
    #[expect(clippy::expect_used, reason = "a test ends here")]
    pub fn kill_and_start_at_once(&mut self) {
        self.child.kill().expect("the agent can be killed");
        let new = spawn(Program::Tidegate.command(), self.dir.path());
        let mut old = std::mem::replace(&mut self.child, new);
        old.wait().expect("the agent can be waited for");
        self.wait_until_it_serves();
    }

    /// Stops it where it stands, until [`Agent::go_on`].
    ///
    /// # Panics
    /// If it is gone.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        let stat = format!("/proc/{}/stat", self.child.id());
        until::holds("a stopped agent", SOON, || {
            let stat = fs::read_to_string(&stat).unwrap_or_default();
            stat.rsplit(')')
                .next()
                .is_some_and(|rest| rest.starts_with(" T"))
        });
    }

    /// Lets it go on.
    ///
    /// # Panics
    /// If it is gone.
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    #[expect(clippy::expect_used, reason = "a test ends here")]
    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("the agent is there");
    }

    fn wait_until_it_serves(&self) {
        until::holds("an agent that serves", SOON, || self.serves());
    }

    /// Whether both of its sockets take connections.
    pub fn serves(&self) -> bool {
        let sockets = ["gate.sock", "http.sock"].map(|name| self.runtime_dir().join(name));
        let [gate, http] = sockets;
        takes_packets(&gate) && UnixStream::connect(&http).is_ok()
    }

    /// The answer to a GET over its HTTP socket.
    ///
    /// # Panics
    /// If it does not answer with 200 and JSON.
    #[expect(clippy::expect_used, reason = "a test ends here")]
    pub fn get(&self, path: &str) -> Value {
        let answer = self.ask_http("GET", path, "");
        assert_eq!(answer.status, 200, "GET {path}: {}", answer.body);
        serde_json::from_str(&answer.body).expect("the body is JSON")
    }

    /// Asks over its HTTP socket.
    ///
    /// # Panics
    /// If it does not answer.
    #[expect(clippy::expect_used, reason = "a test ends here")]
    pub fn ask_http(&self, method: &str, path: &str, body: &str) -> HttpReply {
        let mut stream = UnixStream::connect(self.runtime_dir().join("http.sock"))
            .expect("the agent takes connections");
        stream
            .set_read_timeout(Some(SOON))
            .expect("a timeout can be set");
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: tidegate\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream
            .write_all(request.as_bytes())
            .expect("the agent reads");
        let mut answer = String::new();
        stream
            .read_to_string(&mut answer)
            .expect("the agent answers");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        HttpReply {
            status: status.unwrap_or(0),
            body: body.to_owned(),
        }
    }

    /// Lets every user reach its directory, whatever the sockets in it let them do.
    ///
    /// # Panics
    /// If the directory is gone.
    #[expect(clippy::expect_used, reason = "a test ends here")]
    pub fn open_directory(&self) {
        let all = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.dir.path(), all).expect("the directory is ours");
    }

    /// Requests in flight on a resource, as `status` says; 0 if it names none.
    ///
    /// # Panics
    /// If the agent does not answer.
    pub fn inflight(&self, resource: &str) -> u64 {
        let status = self.get("/v1/status");
        let resources = status.get("resources").and_then(Value::as_array);
        resources
            .into_iter()
            .flatten()
            .find(|found| found.get("name").and_then(Value::as_str) == Some(resource))
            .and_then(|found| found.get("inflight").and_then(Value::as_u64))
            .unwrap_or(0)
    }

    /// Waits until so many are in flight on a resource, and returns how long that took.
    ///
    /// # Panics
    /// If that does not come within `limit`.
    pub fn wait_for_inflight(&self, resource: &str, count: u64, limit: Duration) -> Duration {
        let begin = std::time::Instant::now();
        loop {
            let seen = self.inflight(resource);
            if seen == count {
                return begin.elapsed();
            }
            assert!(
                begin.elapsed() <= limit,
                "{resource}: {seen} in flight after {limit:?}, {count} expected"
            );
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.kill();
    }
}

#[expect(clippy::expect_used, reason = "a test ends here")]
fn temporary() -> TempDir {
    tempfile::tempdir().expect("there is room for a directory")
}

#[expect(clippy::expect_used, reason = "a test ends here")]
fn write_config(dir: &Path, config: &str) {
    // Programs in the kernel slow the whole machine a little, and few tests look at them.
    let ebpf = if config.contains("[ebpf]") {
        ""
    } else {
        "[ebpf]\nenabled = false\n"
    };
    // A port is needed by few tests, and there is one of each number.
    let http = if config.contains("[http]") {
        ""
    } else {
        "[http]\nmetrics_enabled = false\n"
    };
    let rules_dir = dir.join("rules.d");
    let config = format!(
        "{http}{ebpf}[rules]\ndir = \"{}\"\n{config}",
        rules_dir.display()
    );
    fs::write(dir.join("tidegate.toml"), config).expect("the directory is ours");
}

#[expect(clippy::expect_used, reason = "a test ends here")]
fn spawn(mut command: Command, dir: &Path) -> Child {
    // A file that is there already takes the log; otherwise it is the test's own.
    let log = fs::OpenOptions::new().append(true).open(dir.join(LOG));
    command
        .arg("run")
        .arg("--config")
        .arg(dir.join("tidegate.toml"))
        .arg("--runtime-dir")
        .arg(dir.join("run"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log.map_or_else(|_none| Stdio::inherit(), Stdio::from))
        .spawn()
        .expect("the agent starts")
}

/// Whether a SEQPACKET socket at this path takes connections.
fn takes_packets(path: &Path) -> bool {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
    let address = SocketAddrUnix::new(path);
    matches!((socket, address), (Ok(socket), Ok(address)) if connect(&socket, &address).is_ok())
}
