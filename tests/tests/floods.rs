//! Floods against the sockets, and what they cost the agent in memory.

#![cfg(test)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::skip;
use tidegate_tests::until::{self, SOON};
use tidegate_tests::user::{self, act_as};

const OPEN: &str = "[socket]\nmode = \"0666\"\n";

/// Connections that one process may have to the HTTP socket, about.
const CONNECTIONS: usize = 250;
/// A head that is just short enough, and never ends.
const HEAD_BYTES: usize = 16_000;

/// Requests of each user: more than it gets names and permits.
const REQUESTS: usize = 20_000;
/// Requests that are sent before their answers are read.
const AT_ONCE: usize = 100;

const MIB: u64 = 1 << 20;

/// Memory of a group in which the agent loads its programs.
const GROUP_OF_PROGRAMS_BYTES: u64 = 24 * MIB;

/// Memory of a group in which something else leaves no room for them, and how much that takes.
const CROWDED_BYTES: u64 = 64 * MIB;
const CROWD_BYTES: u64 = 50 * MIB;

/// Memory of the group that the agent lives in. The text of a debug build alone fills half of what a release build needs.
const GROUP_BYTES: u64 = if cfg!(debug_assertions) {
    64 * MIB
} else {
    24 * MIB
};

fn users() -> [u32; 3] {
    let [one, other] = user::TWO;
    [one, other, 0]
}

fn resident_bytes(agent: &Agent) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", agent.pid()));
    let status = status.expect("the agent runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    let kib: u64 = number
        .and_then(|number| number.parse().ok())
        .expect("a number");
    kib * 1024
}

/// Connections that have sent a long head and not its end.
fn long_heads(http: &Path) -> Vec<UnixStream> {
    let mut head = b"GET /healthz HTTP/1.1\r\nhost: a\r\nx-long: ".to_vec();
    head.resize(HEAD_BYTES, b'x');
    let one = || {
        let mut stream = UnixStream::connect(http).ok()?;
        stream.set_write_timeout(Some(SOON)).ok()?;
        stream.write_all(&head).ok().map(|()| stream)
    };
    (0..CONNECTIONS).filter_map(|_one| one()).collect()
}

#[test]
fn alone_field_b4_long_heads_of_hundreds_of_connections_fit_into_64_mib() {
    if !user::are_at_hand() {
        return;
    }
    let agent = Agent::start("", &format!("{CALM}{OPEN}"));
    agent.open_directory();
    let http = agent.runtime_dir().join("http.sock");
    let before = resident_bytes(&agent);
    let held: Vec<_> = users().map(|uid| act_as(uid, || long_heads(&http))).into();
    let open: usize = held.iter().map(Vec::len).sum();
    assert!(open >= 700, "{open} connections");
    // All that was sent before has been read by the time that others are answered.
    for _answer in 0..20 {
        assert_eq!(agent.ask_http("GET", "/healthz", "").status, 200);
    }
    let after = resident_bytes(&agent);
    assert!(after <= 64 * MIB, "{before} bytes, then {after}");
}

/// A group with so much memory; it is taken away when it is dropped.
struct Memory(PathBuf);

impl Memory {
    /// `None`, after saying so, where this user cannot make one.
    fn of(bytes: u64) -> Option<Self> {
        let group = format!(
            "/sys/fs/cgroup/memory/tidegate-test-{bytes}-{}",
            std::process::id()
        );
        let group = PathBuf::from(group);
        let limit = group.join("memory.limit_in_bytes");
        if fs::create_dir(&group).is_err() || fs::write(limit, bytes.to_string()).is_err() {
            skip::skip("needs root and cgroup v1 under /sys/fs/cgroup/memory");
            return None;
        }
        Some(Self(group))
    }

    /// A command that runs what its further arguments name in the group.
    fn command(&self) -> Command {
        let mut command = Command::new("sh");
        let join = "echo $$ >\"$1/cgroup.procs\" || exit 1; shift; exec \"$@\"";
        command.args(["-c", join, "sh"]).arg(&self.0);
        command
    }

    /// Processes of the group that were killed for want of memory.
    fn kills(&self) -> u64 {
        let control = fs::read_to_string(self.0.join("memory.oom_control"));
        let control = control.expect("the group is there");
        let line = control
            .lines()
            .find_map(|line| line.strip_prefix("oom_kill "));
        line.and_then(|count| count.parse().ok())
            .expect("the kernel counts them")
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // A group left behind does no harm, and a failing test should say why it failed.
        let _tidy: std::io::Result<()> = fs::remove_dir(&self.0);
    }
}

/// A request for a permit under a long name that begins so.
fn request(name: &str) -> String {
    let body = format!("{{\"resource\":\"{name:x<200}\"}}");
    let length = body.len();
    format!("POST /v1/enter HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// Asks for a permit under a new name each time, on one connection; the answers that gave one.
fn ask_for_all(http: &Path, uid: u32) -> usize {
    let mut stream = UnixStream::connect(http).expect("the agent listens");
    stream
        .set_read_timeout(Some(SOON))
        .expect("a time can be set");
    let mut admitted = 0;
    for first in (0..REQUESTS).step_by(AT_ONCE) {
        let requests: Vec<String> = (first..first + AT_ONCE)
            .map(|number| request(&format!("{uid}-{number}-")))
            .collect();
        stream
            .write_all(requests.concat().as_bytes())
            .expect("the agent reads");
        let mut answers = String::new();
        while answers.matches("HTTP/1.1 ").count() < AT_ONCE || !answers.trim_end().ends_with('}') {
            let mut more = vec![0; 65_536];
            let bytes = stream.read(&mut more).expect("the agent answers");
            assert!(bytes > 0, "the agent ended the connection");
            answers.push_str(&String::from_utf8_lossy(
                more.get(..bytes).unwrap_or_default(),
            ));
        }
        admitted += answers.matches("\"admitted\":true").count();
    }
    admitted
}

#[test]
fn alone_field_b4_floods_of_names_and_permits_live_in_24_mib() {
    if !user::are_at_hand() {
        return;
    }
    let Some(memory) = Memory::of(GROUP_BYTES) else {
        return;
    };
    let agent = Agent::start_by(memory.command(), &format!("{CALM}{OPEN}"));
    agent.open_directory();
    let http = agent.runtime_dir().join("http.sock");
    let [one, other] = user::TWO;
    for uid in [one, other, 0] {
        let admitted = act_as(uid, || ask_for_all(&http, uid));
        assert!(admitted <= 16_384, "{admitted} permits of user {uid}");
    }
    assert_eq!(memory.kills(), 0);
    assert_eq!(agent.ask_http("GET", "/healthz", "").status, 200);
    drop(agent);
}

#[test]
fn alone_field_b4_an_agent_loads_its_programs_in_24_mib() {
    let Some(memory) = Memory::of(GROUP_OF_PROGRAMS_BYTES) else {
        return;
    };
    let agent = Agent::start_by(
        memory.command(),
        &format!("{CALM}{OPEN}[ebpf]\nenabled = true\n"),
    );
    until::holds("the programs are loaded, or not", SOON, || {
        assert_eq!(memory.kills(), 0);
        let status = agent.get("/v1/status").to_string();
        !status.contains("kernel programs are being loaded")
    });
    assert_eq!(memory.kills(), 0);
    drop(agent);
}

#[test]
fn alone_field_b4_an_agent_without_memory_for_its_programs_says_so_and_lives() {
    let Some(memory) = Memory::of(CROWDED_BYTES) else {
        return;
    };
    // What is written in shared memory counts for the group for as long as the file is there.
    let crowd = tempfile::NamedTempFile::new_in("/dev/shm").expect("there is shared memory");
    let fill = format!("head -c {CROWD_BYTES} /dev/zero >\"$1\"");
    let mut filled = memory.command();
    filled.args(["sh", "-c", &fill, "sh"]).arg(crowd.path());
    assert!(filled.status().expect("sh runs").success());
    let agent = Agent::start_by(
        memory.command(),
        &format!("{CALM}{OPEN}[ebpf]\nenabled = true\n"),
    );
    until::holds("the programs are looked at", SOON, || {
        let status = agent.get("/v1/status").to_string();
        !status.contains("kernel programs are being loaded")
    });
    let status = agent.get("/v1/status");
    let ebpf = status["agent"]["ebpf"].to_string();
    assert_eq!(status["agent"]["ebpf"]["rung"], "files", "{ebpf}");
    assert!(
        ebpf.contains(
            "the agent's group has no memory for kernel programs (they need 20 MiB, and "
        ) || ebpf.contains("need CAP_BPF")
            || ebpf.contains("need Linux 5.8"),
        "{ebpf}"
    );
    assert_eq!(memory.kills(), 0);
    drop(agent);
}
