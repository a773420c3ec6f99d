//! The agent's side for tests: real pages and a real socket, and nothing but what a test asks for.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, accept_with, bind, listen, recv, send, sendmsg, socket_with,
};
use tidegate_abi::decision::{LossMode, Outcome};
use tidegate_abi::geometry::Geometry;
use tidegate_abi::message::{
    EnterAnswer, EnterRequest, FRAME_MAX, FaultCode, HELLO_MAP, Message, NO_SEAT, Part, TOKEN,
    Welcome,
};
use tidegate_segment::board::{
    Board, BoardSettings, Process, ResourceRecord, Slot, Writers, create,
};
use tidegate_segment::clock::monotonic_ns;
use tidegate_segment::gate::{Gate, GateVerdict, Pass, Request, Step};
use tidegate_segment::lane::Lane;
use tidegate_segment::ledger::Ledger;
use tidegate_segment::os::memfd::{self, MemoryKind};
use tidegate_segment::sync::Ordering;

use crate::test_rules::qps;

/// What the agent answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Answers {
    /// Every message.
    #[default]
    All,
    /// Every message, but has no permits for those who ask over the socket.
    Busy,
    /// No message: it has no place for a connection, says so and ends it at once.
    TurnedAway,
    /// No message, though it takes them all.
    None,
}

/// How the agent behaves.
#[derive(Debug, Clone, Default)]
pub(crate) struct Behaviour {
    /// What it answers.
    pub(crate) answers: Answers,
    /// What its clock is ahead, ns.
    pub(crate) ahead_ns: u64,
    /// Its version, if another one than ours.
    pub(crate) version: Option<u32>,
    /// Gives no seats.
    pub(crate) no_seats: bool,
    /// Sends the ledger in the place of the board, which lacks the board's seal.
    pub(crate) unsealed_board: bool,
    /// Another service has written over the ledger.
    pub(crate) spoiled_ledger: bool,
}

/// One life of an agent.
pub(crate) struct TestAgent {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    stop: OwnedFd,
    listener: OwnedFd,
}

pub(crate) struct State {
    pub(crate) manners: Behaviour,
    pub(crate) board: Board,
    pub(crate) writers: Writers,
    pub(crate) ledger: Ledger,
    files: [OwnedFd; 2],
    words: [usize; 2],
    seats: u32,
    connections: usize,
    /// Decides for those without a seat.
    gate: Gate,
    held: Vec<HeldPermit>,
    tokens: u128,
}

/// A permit of a connection.
struct HeldPermit {
    connection: RawFd,
    token: [u8; TOKEN],
    pass: Pass,
}

impl TestAgent {
    /// Serves `gate.sock` in a directory, with these resources and rules.
    pub(crate) fn start(dir: &Path, manners: Behaviour, rules: &[(&str, ResourceRecord)]) -> Self {
        let mut state = State::new(manners);
        state.writers.rules.add("overflow", &qps(1), &[]).unwrap();
        for (name, record) in rules {
            state.writers.rules.add(name, record, &[]).unwrap();
        }
        let path = dir.join("gate.sock");
        if path.exists() {
            std::fs::remove_file(&path).unwrap();
        }
        let flags = SocketFlags::CLOEXEC;
        let listener =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&listener, 16).unwrap();
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            stop: eventfd(0, EventfdFlags::CLOEXEC).unwrap(),
            listener,
        });
        let served = Arc::clone(&shared);
        let thread = Some(std::thread::spawn(move || served.serve()));
        Self { shared, thread }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap()
    }

    /// Requests in flight on a resource.
    pub(crate) fn inflight(&self, name: &str) -> u32 {
        let state = self.state();
        let slot = state.find(name).unwrap();
        state.ledger.node_inflight(&state.board, slot)
    }

    /// Connections open now.
    pub(crate) fn connections(&self) -> usize {
        self.state().connections
    }

    /// Ends as if killed: the pages stay with those who have them, the sockets close.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        rustix::io::write(&self.shared.stop, &1_u64.to_ne_bytes()).unwrap();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for TestAgent {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.end();
        }
    }
}

fn turn_away(connection: &OwnedFd) {
    let code = FaultCode::Busy;
    let text = "connections: all 2 are taken";
    let frame = Message::Fault { code, text }.encode();
    send(connection, frame.bytes(), SendFlags::NOSIGNAL).unwrap();
}

impl Shared {
    fn serve(&self) {
        let mut connections: Vec<OwnedFd> = Vec::new();
        loop {
            let mut fds = vec![self.stop.as_fd(), self.listener.as_fd()];
            fds.extend(connections.iter().map(|connection| connection.as_fd()));
            let ready = wait_all(&fds);
            if ready[0] {
                return;
            }
            let heard: Vec<usize> = (0..connections.len()).filter(|at| ready[at + 2]).collect();
            for at in heard.into_iter().rev() {
                if !self.answer(&connections[at]) {
                    let ended = connections.remove(at);
                    self.state.lock().unwrap().end(&ended);
                }
            }
            if ready[1] {
                let connection = accept_with(&self.listener, SocketFlags::CLOEXEC).unwrap();
                if self.state.lock().unwrap().manners.answers == Answers::TurnedAway {
                    turn_away(&connection);
                } else {
                    connections.push(connection);
                }
            }
            self.state.lock().unwrap().connections = connections.len();
        }
    }

    /// Answers one message; `false` at the end of the connection.
    fn answer(&self, connection: &OwnedFd) -> bool {
        let mut bytes = [0; FRAME_MAX];
        let Ok((_, length)) = recv(connection, &mut bytes[..], RecvFlags::empty()) else {
            return false;
        };
        if length == 0 {
            return false;
        }
        let mut state = self.state.lock().unwrap();
        if state.manners.answers == Answers::None {
            return true;
        }
        let answer = match Message::decode(&bytes[..length]).unwrap() {
            Message::Hello { flags, .. } => return state.welcome(connection, flags),
            Message::Again(_) => {
                // As one that is older than the frame.
                let code = FaultCode::Frame;
                let text = "no frame of this kind";
                let fault = Message::Fault { code, text }.encode();
                let _sent = send(connection, fault.bytes(), SendFlags::NOSIGNAL);
                return false;
            }
            Message::Resolve { name } => state.resolve(name),
            Message::Enter(ask) => state.enter(connection, ask),
            Message::Exit { token, outcome } => state.exit(connection, token, outcome),
            Message::ResolvePart {
                part,
                resource,
                name,
            } => state.resolve_part(part, resource, name),
            Message::Rule { number: 0 } => Message::Ruled { id: "first" },
            Message::Rule { .. } => Message::Ruled { id: "" },
            Message::Watch { .. } => Message::Watched,
            other @ (Message::Welcome(_)
            | Message::Ruled { .. }
            | Message::Resolved { .. }
            | Message::Verdict(_)
            | Message::Exited
            | Message::Watched
            | Message::Held { .. }
            | Message::Resume { .. }
            | Message::Fault { .. }) => panic!("{other:?}"),
        };
        send(connection, answer.encode().bytes(), SendFlags::NOSIGNAL).is_ok()
    }
}

impl State {
    fn new(manners: Behaviour) -> Self {
        let geometry = Geometry::new(16, 8, 4, 2).unwrap();
        let words = [geometry.board().words, geometry.ledger().words];
        let (board_page, board_file) = memfd::create(MemoryKind::Board, words[0]).unwrap();
        let (ledger_page, ledger_file) = memfd::create(MemoryKind::Ledger, words[1]).unwrap();
        let settings = BoardSettings {
            generation: 1,
            time_to_live_ns: 1_000_000_000,
            grace_ns: 1_000_000_000,
            loss_mode: LossMode::Open,
        };
        let (board, mut writers) = create(board_page, geometry, settings).unwrap();
        let ledger = Ledger::create(ledger_page, geometry).unwrap();
        if manners.spoiled_ledger {
            ledger_page.words()[0].store(0, Ordering::Relaxed);
        }
        let own_generation = writers.seats.seat(0, this_process()).unwrap();
        writers
            .tick
            .beat(monotonic_ns().wrapping_add(manners.ahead_ns));
        Self {
            manners,
            board,
            writers,
            ledger,
            files: [board_file, ledger_file],
            words,
            seats: 0,
            connections: 0,
            gate: Gate::new(board, ledger, 0, own_generation),
            held: Vec::new(),
            tokens: 0,
        }
    }

    pub(crate) fn find(&self, name: &str) -> Option<Slot> {
        let mut buffer = [0; 256];
        (0..self.board.resources_used()).find_map(|index| {
            let (slot, found) = self.board.name(index, &mut buffer)?;
            (found == name).then_some(slot)
        })
    }

    fn resolve(&self, name: &str) -> Message<'static> {
        let found = self.find(name);
        let slot = found.unwrap_or(Slot::OVERFLOW);
        Message::Resolved {
            slot: slot.index,
            generation: slot.generation,
            overflow: u16::from(found.is_none()),
        }
    }

    fn resolve_part(&self, part: Part, resource: &str, name: &str) -> Message<'static> {
        let separator = match part {
            Part::Origin => '\u{1f}',
            Part::Context => '\u{1e}',
        };
        match self.find(&format!("{resource}{separator}{name}")) {
            Some(slot) => Message::Resolved {
                slot: slot.index,
                generation: slot.generation,
                overflow: 0,
            },
            None => Message::Resolved {
                slot: 0,
                generation: 1,
                overflow: 1,
            },
        }
    }

    fn enter(&mut self, connection: &OwnedFd, ask: EnterRequest<'_>) -> Message<'static> {
        if self.manners.answers == Answers::Busy {
            let (code, text) = (FaultCode::Busy, "busy");
            return Message::Fault { code, text };
        }
        let slot = self.find(ask.resource).unwrap_or(Slot::OVERFLOW);
        let request = Request {
            count: ask.count,
            class: ask.class,
            direction: ask.direction,
            ..Request::default()
        };
        let step = self.gate.enter(&self.board, Lane::SHARED, slot, request);
        let answer = match step {
            Step::Done(GateVerdict::Admitted(pass)) => {
                self.tokens += 1;
                let token = self.tokens.to_le_bytes();
                let connection = connection.as_raw_fd();
                self.held.push(HeldPermit {
                    connection,
                    token,
                    pass,
                });
                EnterAnswer::Admitted {
                    token,
                    waited_ms: 0,
                }
            }
            Step::Done(GateVerdict::Refused(refusal)) => EnterAnswer::Refused {
                kind: refusal.kind,
                reason: refusal.reason,
                retry: refusal.retry,
                rule: refusal.rule,
                retry_after_ms: (refusal.retry_after_ns / 1_000_000).try_into().unwrap(),
                value: refusal.value,
                limit: refusal.limit,
                id: "first",
            },
            stuck @ (Step::Done(GateVerdict::Stale) | Step::Wait(_)) => panic!("{stuck:?}"),
        };
        Message::Verdict(answer)
    }

    fn exit(
        &mut self,
        connection: &OwnedFd,
        token: [u8; TOKEN],
        outcome: Outcome,
    ) -> Message<'static> {
        let connection = connection.as_raw_fd();
        let is_it = |held: &HeldPermit| held.token == token && held.connection == connection;
        let at = self.held.iter().position(is_it).unwrap();
        let pass = self.held.swap_remove(at).pass;
        self.gate.exit(&self.board, Lane::SHARED, pass, outcome);
        Message::Exited
    }

    /// A connection ends, and its permits with it.
    fn end(&mut self, connection: &OwnedFd) {
        let connection = connection.as_raw_fd();
        let ended = self
            .held
            .extract_if(.., |held| held.connection == connection);
        for HeldPermit { pass, .. } in ended {
            self.gate
                .exit(&self.board, Lane::SHARED, pass, Outcome::Ignore);
        }
    }

    /// The number and generation of the next seat, if there is one.
    fn seat(&mut self, flags: u32) -> (u32, u32) {
        if self.manners.no_seats || flags & HELLO_MAP == 0 {
            return (NO_SEAT, 0);
        }
        self.seats += 1;
        let seated = self.writers.seats.seat(self.seats, this_process());
        (self.seats, seated.unwrap())
    }

    fn welcome(&mut self, connection: &OwnedFd, flags: u32) -> bool {
        let (seat, seat_generation) = self.seat(flags);
        let version = self.manners.version;
        let welcome = Welcome {
            version: version.unwrap_or(tidegate_abi::VERSION),
            seat,
            seat_generation,
            scope: 0,
            board_words: self.words[0].try_into().unwrap(),
            ledger_words: self.words[1].try_into().unwrap(),
            board_generation: 1,
            now_ns: monotonic_ns().wrapping_add(self.manners.ahead_ns),
        };
        let mut files = [self.files[0].as_fd(), self.files[1].as_fd()];
        if self.manners.unsealed_board {
            files.reverse();
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if seat != NO_SEAT {
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(&files)));
        }
        let frame = Message::Welcome(welcome).encode();
        let part = [IoSlice::new(frame.bytes())];
        sendmsg(connection, &part, &mut ancillary, SendFlags::NOSIGNAL).is_ok()
    }
}

fn this_process() -> Process {
    let pid = std::process::id();
    let (start, uid, scope) = (0, 0, 0);
    Process {
        pid,
        start,
        uid,
        scope,
    }
}

fn wait_all(fds: &[BorrowedFd<'_>]) -> Vec<bool> {
    let polled = fds.iter().copied();
    let polled = polled.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    let mut polled: Vec<_> = polled.collect();
    poll(&mut polled, None).unwrap();
    polled.iter().map(|fd| !fd.revents().is_empty()).collect()
}
