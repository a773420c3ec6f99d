use std::os::fd::OwnedFd;
use std::path::Path;

use tidegate_abi::decision::{Class, Direction, Outcome, Reason, RefusalKind};
use tidegate_abi::message::{
    Answer, Ask, FRAME_MAX, FaultCode, HELLO_MAP, Message, NO_SEAT, TOKEN, Welcome,
};
use tidegate_segment::board::Board;
use tidegate_segment::clock::monotonic_ns;
use tidegate_segment::os::memfd::{self, Kind};
use tokio_seqpacket::ancillary::OwnedAncillaryMessage;

use super::*;
use crate::door::tests::{context, settings};
use crate::tenant::limit::tests::limits;

const DEADLINE: Duration = Duration::from_secs(5);

/// A gate socket in a directory of its own.
struct Door {
    directory: tempfile::TempDir,
    context: Arc<Context>,
}

impl Door {
    fn open(change: impl FnOnce(&mut Settings)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut settings = settings(directory.path());
        change(&mut settings);
        let context = context();
        let socket = GateSocket::open(&settings).unwrap();
        tokio::spawn(socket.serve(Arc::clone(&context)));
        Self { directory, context }
    }

    fn plain() -> Self {
        Self::open(|_settings| {})
    }

    fn rules(&self, toml: &str) {
        let directory = self.context.tenant.directory();
        let published = directory.publish(limits(toml), monotonic_ns()).unwrap();
        assert_eq!(published.unplaced, []);
    }

    fn path(&self) -> std::path::PathBuf {
        self.directory.path().join(FILE_NAME)
    }

    async fn connect(&self) -> Peer {
        Peer::connect(&self.path()).await
    }

    /// A connection after its hello.
    async fn greeted(&self) -> Peer {
        let peer = self.connect().await;
        peer.say(&hello(0)).await;
        peer.hear(|message| assert!(matches!(message, Message::Welcome(_)), "{message:?}"))
            .await;
        peer
    }

    /// Waits until the resource has this many requests in flight.
    async fn until_inflight(&self, resource: &str, inflight: u64) {
        let tenant = &self.context.tenant;
        let slot = tenant.directory().resolve(resource).slot;
        let reached = async {
            while tenant.seats().node_counts(slot).inflight != inflight {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(DEADLINE, reached).await.unwrap();
    }
}

struct Peer(UnixSeqpacket);

impl Peer {
    async fn connect(path: &Path) -> Self {
        Self(UnixSeqpacket::connect(path).await.unwrap())
    }

    async fn say(&self, message: &Message<'_>) {
        self.send(message.encode().bytes()).await;
    }

    async fn send(&self, bytes: &[u8]) {
        self.0.send(bytes).await.unwrap();
    }

    async fn hear<T>(&self, with: impl FnOnce(Message<'_>) -> T) -> T {
        let mut buffer = [0; FRAME_MAX];
        let heard = tokio::time::timeout(DEADLINE, self.0.recv(&mut buffer)).await;
        let length = heard.unwrap().unwrap().bytes_read();
        with(Message::decode(&buffer[..length]).unwrap())
    }

    async fn fault(&self) -> (FaultCode, String) {
        self.hear(|message| {
            let Message::Fault { code, text } = message else {
                panic!("{message:?}")
            };
            (code, text.to_owned())
        })
        .await
    }

    async fn is_closed(&self) -> bool {
        let mut buffer = [0; FRAME_MAX];
        let heard = tokio::time::timeout(DEADLINE, self.0.recv(&mut buffer)).await;
        heard.unwrap().map_or(0, |info| info.bytes_read()) == 0
    }

    async fn enter(&self, ask: Ask<'_>) -> Answer {
        self.say(&Message::Enter(ask)).await;
        self.hear(|message| {
            let Message::Verdict(answer) = message else {
                panic!("{message:?}")
            };
            answer
        })
        .await
    }

    async fn admitted(&self, resource: &str) -> [u8; TOKEN] {
        match self.enter(ask(resource)).await {
            Answer::Admitted { token, .. } => token,
            refused @ Answer::Refused { .. } => panic!("{refused:?}"),
        }
    }
}

fn hello(flags: u32) -> Message<'static> {
    Message::Hello {
        version: tidegate_abi::VERSION,
        flags,
        now_ns: monotonic_ns(),
    }
}

fn ask(resource: &str) -> Ask<'_> {
    Ask {
        resource,
        origin: "",
        count: 1,
        class: Class::Normal,
        direction: Direction::In,
    }
}

#[tokio::test]
async fn a_service_that_maps_gets_a_seat_and_both_pages() {
    let door = Door::plain();
    let peer = door.connect().await;
    peer.say(&hello(HELLO_MAP)).await;
    let (mut buffer, mut ancillary) = ([0; FRAME_MAX], [0; 128]);
    let received = peer.0.recv_with_ancillary(&mut buffer, &mut ancillary);
    let (info, descriptors) = received.await.unwrap();
    let Ok(Message::Welcome(Welcome {
        seat,
        seat_generation,
        board_words,
        ledger_words,
        board_generation,
        ..
    })) = Message::decode(&buffer[..info.bytes_read()])
    else {
        panic!("a welcome");
    };
    let mut files: Vec<OwnedFd> = Vec::new();
    for message in descriptors.into_messages() {
        if let OwnedAncillaryMessage::FileDescriptors(received) = message {
            files.extend(received);
        }
    }
    let [board, ledger] = files.try_into().unwrap();
    let words = |words: u64| usize::try_from(words).unwrap();
    let page = memfd::open(Kind::Board, &board, words(board_words)).unwrap();
    memfd::open(Kind::Ledger, &ledger, words(ledger_words)).unwrap();
    let board = Board::open(page).unwrap();
    assert_eq!(board.generation(), board_generation);
    let info = board.seat_info(seat).unwrap();
    assert_eq!(
        (info.word.live, info.word.generation),
        (true, seat_generation)
    );
    assert_eq!(info.pid, std::process::id());
    let clients = door.context.tenant.clients().list();
    assert_eq!(clients.len(), 1);
    assert_eq!(clients[0].who.pid, std::process::id());
}

#[tokio::test]
async fn without_a_free_seat_the_service_is_served_over_the_socket() {
    let door = Door::plain();
    let mut peers = Vec::new();
    for expected in [1, 2, 3, NO_SEAT] {
        let peer = door.connect().await;
        peer.say(&hello(HELLO_MAP)).await;
        let seat = peer.hear(|message| {
            let Message::Welcome(welcome) = message else {
                panic!("{message:?}")
            };
            welcome.seat
        });
        assert_eq!(seat.await, expected);
        peers.push(peer);
    }
    peers[3].admitted("a").await;
}

#[tokio::test]
async fn rules_hold_over_the_socket_and_permits_come_back_by_exit() {
    let door = Door::plain();
    door.rules("[[flow]]\nresource = \"a\"\ngrade = \"concurrency\"\ncount = 1");
    let peer = door.greeted().await;
    let token = peer.admitted("a").await;
    let Answer::Refused {
        kind,
        reason,
        retry,
        rule,
        retry_after_ms,
    } = peer.enter(ask("a")).await
    else {
        panic!("refused");
    };
    assert_eq!(
        (kind, reason, retry, rule),
        (RefusalKind::Flow, Reason::Concurrency, true, 0)
    );
    assert!(retry_after_ms > 0);
    let outcome = Outcome::Ok;
    peer.say(&Message::Exit { token, outcome }).await;
    peer.hear(|message| assert_eq!(message, Message::Exited))
        .await;
    peer.admitted("a").await;
}

#[tokio::test]
async fn permits_end_with_their_connection() {
    let door = Door::plain();
    let (first, second) = (door.greeted().await, door.greeted().await);
    for _permit in 0..3 {
        first.admitted("a").await;
    }
    second.admitted("a").await;
    door.until_inflight("a", 4).await;
    drop(first);
    door.until_inflight("a", 1).await;
    assert_eq!(door.context.tenant.clients().count(), 1);
}

#[tokio::test]
async fn a_name_is_resolved_to_its_slot() {
    let door = Door::plain();
    let peer = door.greeted().await;
    let mut slots = Vec::new();
    for name in ["a", "b", "a", "__other__"] {
        peer.say(&Message::Resolve { name }).await;
        let slot = peer.hear(|message| {
            let Message::Resolved { slot, overflow, .. } = message else {
                panic!("{message:?}")
            };
            (slot, overflow)
        });
        slots.push(slot.await);
    }
    assert_eq!(slots, [(2, 0), (3, 0), (2, 0), (0, 1)]);
}

#[tokio::test]
async fn a_bad_first_frame_is_told_and_ends_the_connection() {
    let door = Door::plain();
    let unknown_version = Message::Hello {
        version: 99,
        flags: 0,
        now_ns: 0,
    };
    let cases = [
        (
            unknown_version,
            FaultCode::Version,
            "version 99 is not spoken here, version 1 is; upgrade the older of client and agent",
        ),
        (
            hello(6),
            FaultCode::Value,
            "flags = 0x6; allowed are 0 and 1 (map the pages)",
        ),
        (
            Message::Resolve { name: "a" },
            FaultCode::Order,
            "the first frame of a connection is a hello; this one is not",
        ),
    ];
    for (message, code, text) in cases {
        let peer = door.connect().await;
        peer.say(&message).await;
        assert_eq!(peer.fault().await, (code, text.to_owned()));
        assert!(peer.is_closed().await);
    }
}

/// Sends frames that are wrong one after the other over one connection, which holds a permit all the
/// while.
#[tokio::test]
async fn a_bad_frame_is_told_and_nothing_is_lost() {
    let door = Door::plain();
    let peer = door.greeted().await;
    let token = peer.admitted("a").await;
    for (frame, code, text) in bad_frames().into_iter().chain(bad_values()) {
        peer.send(&frame).await;
        assert_eq!(peer.fault().await, (code, text.to_owned()));
    }
    door.until_inflight("a", 1).await;
    let outcome = Outcome::Ok;
    peer.say(&Message::Exit { token, outcome }).await;
    peer.hear(|message| assert_eq!(message, Message::Exited))
        .await;
    door.until_inflight("a", 0).await;
    peer.say(&Message::Exit { token, outcome }).await;
    assert_eq!(
        peer.fault().await,
        (
            FaultCode::Permit,
            "this connection holds no such permit; it was given back already, or another holds it"
                .to_owned()
        )
    );
}

type BadFrame = (Vec<u8>, FaultCode, &'static str);

fn frame(message: Message<'_>) -> Vec<u8> {
    message.encode().bytes().to_vec()
}

fn resolve(name: &str) -> Vec<u8> {
    frame(Message::Resolve { name })
}

fn enter(ask: Ask<'_>) -> Vec<u8> {
    frame(Message::Enter(ask))
}

/// The frame with another byte at a place.
fn with(mut frame: Vec<u8>, at: usize, byte: u8) -> Vec<u8> {
    frame[at] = byte;
    frame
}

const NAME_LENGTH: usize = 8;
const NAME: usize = 10;
const CLASS: usize = 12;

fn bad_frames() -> Vec<BadFrame> {
    let mut cut = resolve("abc");
    cut.pop();
    let mut grown = resolve("abc");
    grown.push(0);
    let code = FaultCode::Frame;
    let kinds =
        "there is no frame of kind 77; a service sends 1 (hello), 3 (resolve), 5 (enter), 7 (exit)";
    let theirs = "this frame is the agent's to send; a service sends hello, resolve, enter, exit";
    vec![
        (with(resolve("a"), 0, 77), code, kinds),
        (
            vec![0; FRAME_MAX + 1],
            code,
            "the frame is longer than 1024 bytes; no frame is",
        ),
        (
            cut,
            code,
            "the frame is shorter than its length or its fields say",
        ),
        (
            grown,
            code,
            "the frame is longer than its length or its fields say",
        ),
        (
            frame(hello(0)),
            FaultCode::Order,
            "a second hello; a connection begins once, connect anew instead",
        ),
        (frame(Message::Exited), FaultCode::Order, theirs),
    ]
}

fn bad_values() -> Vec<BadFrame> {
    let none = Ask {
        count: 0,
        ..ask("a")
    };
    let huge = Ask {
        count: 1 << 24,
        ..ask("a")
    };
    let bad_origin = Ask {
        origin: "a\u{7}",
        ..ask("a")
    };
    let long = with(resolve(&"x".repeat(255)), NAME_LENGTH + 1, 1);
    let text =
        "name is not UTF-8 or longer than 255 bytes; allowed is UTF-8 text of at most 255 bytes";
    [
        (resolve(""), "name is empty; a name has 1 to 255 bytes"),
        (with(resolve("abc"), NAME, 0xff), text),
        (long, text),
        (
            resolve("a\nb"),
            "name holds a control character; a name is printable UTF-8 text",
        ),
        (enter(none), "count = 0; allowed is 1 to 16777215"),
        (enter(huge), "count = 16777216; allowed is 1 to 16777215"),
        (
            enter(ask("")),
            "resource is empty; a name has 1 to 255 bytes",
        ),
        (
            enter(bad_origin),
            "origin holds a control character; a name is printable UTF-8 text",
        ),
        (
            with(enter(ask("a")), CLASS, 9),
            "class holds a number that is none of its values",
        ),
    ]
    .map(|(frame, text)| (frame, FaultCode::Value, text))
    .to_vec()
}

#[tokio::test]
async fn another_connection_cannot_give_a_permit_back() {
    let door = Door::plain();
    let (first, second) = (door.greeted().await, door.greeted().await);
    let token = first.admitted("a").await;
    let outcome = Outcome::Ok;
    second.say(&Message::Exit { token, outcome }).await;
    assert_eq!(second.fault().await.0, FaultCode::Permit);
    door.until_inflight("a", 1).await;
}

#[tokio::test]
async fn a_client_that_says_nothing_is_let_go() {
    let door = Door::open(|settings| settings.hello_deadline = Duration::from_millis(20));
    let peer = door.connect().await;
    assert_eq!(
        peer.fault().await,
        (
            FaultCode::Order,
            "no hello came within 20ms; the connection ends".to_owned()
        )
    );
    assert!(peer.is_closed().await);
}

#[tokio::test]
async fn a_connection_over_the_bound_is_told_so() {
    let door = Door::open(|settings| settings.connections_max = 1);
    let first = door.greeted().await;
    let second = door.connect().await;
    assert_eq!(
        second.fault().await,
        (
            FaultCode::Busy,
            "1 connections are open, more are not served; close some, or connect later".to_owned()
        )
    );
    assert!(second.is_closed().await);
    first.admitted("a").await;
}

#[tokio::test]
async fn a_thousand_connections_at_once_are_served() {
    crate::door::open_files::raise_limit();
    let door = Door::plain();
    let mut peers = Vec::new();
    for _peer in 0..1000 {
        peers.push(door.connect().await);
    }
    for peer in &peers {
        peer.say(&hello(0)).await;
        peer.say(&Message::Enter(ask("a"))).await;
    }
    for peer in &peers {
        peer.hear(|message| assert!(matches!(message, Message::Welcome(_))))
            .await;
        peer.hear(|message| assert!(matches!(message, Message::Verdict(_))))
            .await;
    }
    door.until_inflight("a", 1000).await;
    drop(peers);
    door.until_inflight("a", 0).await;
}

#[tokio::test]
async fn a_second_agent_is_refused_and_names_the_first() {
    let door = Door::plain();
    let settings = settings(door.directory.path());
    let error = GateSocket::open(&settings).unwrap_err().to_string();
    let own = std::process::id();
    assert_eq!(
        error,
        format!(
            "{}: an agent runs already (pid {own}); stop it, or use another --runtime-dir",
            door.path().display()
        )
    );
}
