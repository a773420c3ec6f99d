//! The doors against who is not to come in, who comes too often, and who wants to be something else.

#![cfg(test)]

use std::fs::{self, Permissions};
use std::io::{ErrorKind, IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::Mode;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, recv, send, sendmsg, socket_with,
};
use rustix::process::{Pid, Signal, kill_process, umask};
use tempfile::TempDir;
use tidegate_abi::VERSION;
use tidegate_abi::message::{FRAME_MAX, FaultCode, Message};
use tidegate_agent::door::socket_path::{Access, place};
use tidegate_client::{Client, OnMissingAgent};
use tidegate_segment::clock::monotonic_ns;
use tidegate_segment::os::way::TrustedPath;
use tidegate_tests::actor::Actor;
use tidegate_tests::agent::{Agent, CALM, ONE_SEAT};
use tidegate_tests::program::Program;
use tidegate_tests::skip;
use tidegate_tests::until::{self, SOON};
use tidegate_tests::user::{self, act_as};

const OTHER: u32 = user::TWO[0];

/// How often a socket is made while another user tries to connect.
const STARTS: usize = 200;

/// A directory that everybody can reach.
fn open_directory() -> TempDir {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    set_mode(directory.path(), 0o755);
    directory
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("the path is ours");
}

fn packets() -> OwnedFd {
    let flags = SocketFlags::CLOEXEC;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("a socket")
}

fn connected(path: &Path) -> Option<OwnedFd> {
    let socket = packets();
    let address = SocketAddrUnix::new(path).expect("the path is short");
    connect(&socket, &address).ok().map(|()| socket)
}

#[test]
fn field_b1_nobody_else_connects_at_any_moment_of_a_start() {
    if !user::are_at_hand() {
        return;
    }
    let directory = open_directory();
    umask(Mode::empty());
    let way = TrustedPath::make(directory.path()).expect("the directory is ours");
    let path = way.path().join("gate.sock");
    // The other user acts with the group of the test, which is root's.
    let access = Access {
        group: None,
        mode: 0o600,
    };
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let others = scope.spawn(|| {
            act_as(OTHER, || {
                let mut came_in = 0;
                let mut tries = 0_u64;
                while !ended.load(Ordering::Relaxed) || tries == 0 {
                    came_in += usize::from(connected(&path).is_some());
                    tries += 1;
                }
                came_in
            })
        });
        for _start in 0..STARTS {
            let kind = (SocketType::SEQPACKET, 16);
            let listener = place(&way, "gate.sock", kind, &access).expect("a place");
            assert!(connected(&path).is_some(), "its own user comes in");
            drop(listener);
        }
        ended.store(true, Ordering::Relaxed);
        let came_in = others.join().expect("it tries to the end");
        assert_eq!(came_in, 0, "times another user came in, in {STARTS} starts");
    });
}

fn run_in(directory: &Path) -> Output {
    Program::Tidegate
        .command()
        .args(["run", "--runtime-dir"])
        .arg(directory)
        .output()
        .expect("the agent runs")
}

fn client_of(directory: &Path) -> String {
    let builder = Client::builder().runtime_dir(directory);
    let connected = builder.on_missing_agent(OnMissingAgent::Fail).connect();
    connected.expect_err("nobody is to be believed").to_string()
}

fn asked_by_command(directory: &Path) -> String {
    let mut status = Program::Tidegate.command();
    let status = status.args(["status", "--runtime-dir"]).arg(directory);
    let output = status.output().expect("the command runs");
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Everything that is about a directory refuses this one, in words that hold these.
fn refused_everywhere(directory: &Path, words: &str) {
    let output = run_in(directory);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{}", directory.display());
    for told in [told, client_of(directory), asked_by_command(directory)] {
        // Lines are broken where they are long.
        let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains(words), "{}: {told}", directory.display());
    }
}

#[test]
fn field_b2_a_directory_of_somebody_else_is_refused_by_agent_client_and_command() {
    if !user::are_at_hand() {
        return;
    }
    let sticky = open_directory();
    set_mode(sticky.path(), 0o1777);
    // As `/tmp/tidegate` that was made beforehand, with an agent that gives verdicts.
    let theirs = sticky.path().join("tidegate");
    let listener = act_as(OTHER, || {
        fs::create_dir(&theirs).expect("everybody may make one there");
        UnixListener::bind(theirs.join("http.sock")).expect("the directory is theirs")
    });
    refused_everywhere(&theirs, &format!("belongs to user {OTHER}"));
    refused_everywhere(&theirs.join("deeper"), &format!("belongs to user {OTHER}"));

    let link = sticky.path().join("link");
    let own = open_directory();
    act_as(OTHER, || std::os::unix::fs::symlink(own.path(), &link)).expect("a link");
    refused_everywhere(&link, &format!("belongs to user {OTHER}"));

    let open = sticky.path().join("open");
    fs::create_dir(&open).expect("the directory is ours");
    set_mode(&open, 0o777);
    refused_everywhere(&open, "others may write there (mode 777)");
    drop(listener);
}

#[test]
fn field_b2_who_listens_is_looked_at_where_all_may_make_sockets() {
    if !user::are_at_hand() {
        return;
    }
    let sticky = open_directory();
    set_mode(sticky.path(), 0o1777);
    let path = sticky.path().join("gate.sock");
    let _listener = act_as(OTHER, || {
        let socket = packets();
        let address = SocketAddrUnix::new(&path).expect("the path is short");
        rustix::net::bind(&socket, &address).expect("everybody may make one there");
        rustix::net::listen(&socket, 8).expect("it listens");
        socket
    });
    let told = client_of(sticky.path());
    assert!(
        told.contains(&format!("user {OTHER} listens there")),
        "{told}"
    );
}

#[test]
fn field_b2_an_agent_with_a_user_of_its_own_is_believed_where_root_gave_it_the_directory() {
    if !user::are_at_hand() || skip::tool("setpriv", "--version").is_none() {
        return;
    }
    let above = open_directory();
    let given = above.path().join("tidegate");
    fs::create_dir(&given).expect("the directory is ours");
    chown(&given, Some(OTHER), Some(OTHER)).expect("root gives it");
    let config = above.path().join("tidegate.toml");
    fs::write(
        &config,
        "[http]\nmetrics_enabled = false\n[ebpf]\nenabled = false\n[socket]\nmode = \"0666\"\n",
    )
    .expect("the directory is ours");
    let mut agent = Command::new("setpriv");
    let ids = [format!("--reuid={OTHER}"), format!("--regid={OTHER}")];
    let mut agent = agent
        .args(ids)
        .arg("--clear-groups")
        .arg(Program::Tidegate.path())
        .arg("run")
        .arg("--config")
        .arg(&config)
        .arg("--runtime-dir")
        .arg(&given)
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the agent starts");
    let gate = given.join("gate.sock");
    until::holds("an agent that serves", SOON, || connected(&gate).is_some());
    for uid in [0, user::TWO[1]] {
        let is_connected = act_as(uid, || {
            let client = Client::builder().runtime_dir(&given).connect();
            client.expect("there is room").status().connected
        });
        assert!(is_connected, "as user {uid}");
    }
    agent.kill().expect("the agent can be killed");
    agent.wait().expect("the agent can be waited for");
}

fn hello() -> tidegate_abi::message::Frame {
    let hello = Message::Hello {
        version: VERSION,
        flags: 0,
        now_ns: monotonic_ns(),
    };
    hello.encode()
}

/// The fault that comes on a connection; `None` if it is served.
fn fault(socket: &OwnedFd) -> Option<(FaultCode, String)> {
    let mut bytes = [0; FRAME_MAX];
    let (length, _whole) = recv(socket, &mut bytes[..], RecvFlags::empty()).expect("an answer");
    match Message::decode(bytes.get(..length)?) {
        Ok(Message::Fault { code, text }) => Some((code, text.to_owned())),
        Ok(_welcome) => None,
        Err(error) => panic!("{error:?}"),
    }
}

/// An agent with files for 32 connections to each socket: 16 of a user, 8 of a process.
fn with_few_files() -> Agent {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 256; exec \"$@\"", "sh"]);
    Agent::start_by(command, CALM)
}

#[test]
fn field_b8_who_is_over_a_bound_hears_why_is_counted_and_comes_in_later() {
    let agent = with_few_files();
    let path = agent.runtime_dir().join("gate.sock");
    let mut served = Vec::new();
    let told = loop {
        let socket = connected(&path).expect("the agent listens");
        send(&socket, hello().bytes(), SendFlags::NOSIGNAL).expect("the agent reads");
        match fault(&socket) {
            None => served.push(socket),
            Some(told) => break told,
        }
        assert!(served.len() <= 8, "a process has a quarter");
    };
    assert_eq!(told.0, FaultCode::Busy);
    assert!(
        told.1.contains("connections to gate.sock: process"),
        "{}",
        told.1
    );

    let client = Client::builder().runtime_dir(agent.runtime_dir()).connect();
    let client = client.expect("there is room");
    let status = client.status();
    assert!(!status.connected);
    let why = status.last_error.expect("it was told");
    assert!(why.contains("connections to gate.sock: process"), "{why}");

    // Another process is served meanwhile, and told of those who were not.
    let mut other = Actor::start(&agent.runtime_dir());
    assert_eq!(other.ask("door"), "shm");
    let counted = agent.get("/v1/status");
    let counted = counted["agent"]["turned_away"]["connections to gate.sock"].as_u64();
    assert!(counted >= Some(2), "{counted:?}");
    let metrics = agent.ask_http("GET", "/metrics", "").body;
    let line = "tidegate_turned_away_total{bound=\"connections to gate.sock\",share=\"process\"} ";
    assert!(metrics.contains(line), "{metrics}");

    drop(served);
    until::holds("a client that comes in", SOON, || client.status().connected);
}

#[test]
fn field_b8_who_gets_no_seat_is_served_and_the_agent_tells_why() {
    let agent = Agent::start("", &format!("{CALM}{ONE_SEAT}"));
    let mut first = Actor::start(&agent.runtime_dir());
    assert_eq!(first.ask("door"), "shm");
    let mut second = Actor::start(&agent.runtime_dir());
    assert_eq!(second.ask("door"), "socket");
    let status = agent.get("/v1/status");
    let told = status["clients"].to_string();
    assert!(
        told.contains("all seats are taken; raise pages.max_seats"),
        "{told}"
    );
    let metrics = agent.ask_http("GET", "/metrics", "").body;
    assert!(
        metrics.contains("tidegate_seats_refused_total{share=\"all\"} 1"),
        "{metrics}"
    );
}

#[test]
fn field_b3_a_user_with_all_its_connections_leaves_the_sockets_to_others() {
    if !user::are_at_hand() {
        return;
    }
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 256; exec \"$@\"", "sh"]);
    let agent = Agent::start_by(command, &format!("{CALM}[socket]\nmode = \"0666\"\n"));
    agent.open_directory();
    let [gate, http] = ["gate.sock", "http.sock"].map(|name| agent.runtime_dir().join(name));
    let held = act_as(OTHER, || {
        let packets: Vec<_> = (0..200).filter_map(|_one| connected(&gate)).collect();
        let streams: Vec<_> = (0..200)
            .filter_map(|_one| UnixStream::connect(&http).ok())
            .collect();
        (packets, streams)
    });
    assert_eq!(agent.ask_http("GET", "/healthz", "").status, 200);
    let mut service = Actor::start(&agent.runtime_dir());
    assert_eq!(service.ask("door"), "shm");
    assert_eq!(service.ask("try order 1"), "passed 1 refused 0 none");
    drop(held);
}

/// Sends a question on a connection of its own, and reads nothing.
fn asked(socket: &Path, method: &str, path: &str, body: &str) -> UnixStream {
    let mut stream = UnixStream::connect(socket).expect("the agent takes connections");
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nhost: tidegate\r\ncontent-length: {length}\r\n\r\n");
    let question = format!("{head}{body}");
    match stream.write_all(question.as_bytes()) {
        // Over a bound: the agent has answered and closed before it was asked.
        Err(closed) if closed.kind() == ErrorKind::BrokenPipe => {}
        written => written.expect("the agent reads"),
    }
    stream
}

/// Asks for reports on many connections, most of them long, and reads none.
fn ask_for_reports(http: &Path) -> Vec<UnixStream> {
    let paths = ["/metrics", "/v1/status", "/v1/resources", "/metrics"];
    let paths = paths.iter().cycle().take(160);
    paths.map(|path| asked(http, "GET", path, "")).collect()
}

#[test]
fn field_b3_who_asks_for_reports_and_reads_none_leaves_the_sockets_to_others() {
    if !user::are_at_hand() {
        return;
    }
    let agent = Agent::start("", &format!("{CALM}[socket]\nmode = \"0666\"\n"));
    agent.open_directory();
    let http = agent.runtime_dir().join("http.sock");
    act_as(OTHER, || {
        for number in 0..600 {
            let name = format!("{number}{}", "n".repeat(100));
            let body = format!("{{\"resource\":\"{name}\"}}");
            let mut stream = asked(&http, "POST", "/v1/enter", &body);
            stream.read_exact(&mut [0; 12]).expect("the agent answers");
        }
    });
    let mut unread = Vec::new();
    for _round in 0..2 {
        unread.extend(act_as(OTHER, || ask_for_reports(&http)));
        // Each of these has a deadline of its own.
        let entered = agent.ask_http("POST", "/v1/enter", "{\"resource\":\"order\"}");
        assert_eq!(entered.status, 200, "{}", entered.body);
        let mut service = Actor::start(&agent.runtime_dir());
        assert_eq!(service.ask("door"), "shm");
    }
    assert_eq!(agent.ask_http("GET", "/v1/status", "").status, 200);
}

#[test]
fn field_b11_an_agent_that_is_ready_has_scopes() {
    let agent = Agent::start("", CALM);
    until::holds("an agent that is ready", SOON, || {
        let ready = agent.ask_http("GET", "/readyz", "");
        if ready.status == 200 {
            let status = agent.get("/v1/status");
            let scopes = status["scopes"].as_array().map_or(0, Vec::len);
            assert!(scopes > 0, "{status}");
        }
        ready.status == 200
    });
}

#[test]
fn field_b14_a_signal_that_a_service_waits_for_is_not_taken_from_it() {
    let agent = Agent::start("", CALM);
    let mut service = Actor::start(&agent.runtime_dir());
    assert_eq!(service.ask("door"), "shm");
    assert_eq!(service.ask("deaf"), "deaf");
    let pid = i32::try_from(service.pid()).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process id"), Signal::TERM).expect("it is there");
    assert_eq!(service.hear(), "waits");
}

fn open_files(agent: &Agent) -> usize {
    let files = fs::read_dir(format!("/proc/{}/fd", agent.pid()));
    files.expect("the agent runs").count()
}

/// A frame with so many files that nobody asked for.
fn send_with_files(socket: &OwnedFd, frame: &[u8], files: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(files)));
    let sent = sendmsg(
        socket,
        &[IoSlice::new(frame)],
        &mut ancillary,
        SendFlags::NOSIGNAL,
    );
    sent.expect("the agent reads");
}

#[test]
fn field_b3_files_that_come_with_frames_are_not_kept() {
    let agent = Agent::start("", CALM);
    let socket = connected(&agent.runtime_dir().join("gate.sock")).expect("the agent listens");
    send(&socket, hello().bytes(), SendFlags::NOSIGNAL).expect("the agent reads");
    assert_eq!(fault(&socket), None);
    let before = open_files(&agent);
    let file = fs::File::open("/dev/null").expect("it is there");
    let files = [file.as_fd(); 64];
    let question = Message::Resolve { name: "order" }.encode();
    for _frame in 0..100 {
        send_with_files(&socket, question.bytes(), &files);
        assert_eq!(fault(&socket), None);
    }
    let after = open_files(&agent);
    assert!(after <= before + 16, "{before} files, then {after}");
}

#[test]
fn half_a_question_and_a_slow_one_keep_nobody_waiting() {
    let agent = Agent::start("", CALM);
    let http = agent.runtime_dir().join("http.sock");
    let mut slow: Vec<UnixStream> = Vec::new();
    for _one in 0..200 {
        let mut stream = UnixStream::connect(&http).expect("the agent listens");
        stream
            .write_all(b"POST /v1/enter HTTP/1.1\r\nhost: a\r\ncontent-length: 90\r\n\r\n{\"reso")
            .expect("the agent reads");
        slow.push(stream);
    }
    assert_eq!(
        agent
            .ask_http("POST", "/v1/enter", "{\"resource\":\"a\"}")
            .status,
        200
    );
    for stream in &mut slow {
        stream
            .write_all(b"u")
            .expect("the agent waits for the rest");
    }
    assert_eq!(agent.ask_http("GET", "/healthz", "").status, 200);
    let mut last = slow.pop().expect("there are many");
    drop(slow);
    last.shutdown(std::net::Shutdown::Write)
        .expect("it is open");
    let mut answer = String::new();
    last.set_read_timeout(Some(SOON))
        .expect("a time can be set");
    last.read_to_string(&mut answer).expect("the agent ends it");
}
