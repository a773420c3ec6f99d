//! A service at the gate socket: seat, slots, decisions, permits.

use std::os::fd::OwnedFd;
use std::path::Path;

use tidegate_abi::decision::{Outcome, Reason, RefusalKind};
use tidegate_abi::message::{
    EnterAnswer, EnterRequest, FRAME_MAX, FaultCode, HELLO_MAP, Message, NO_SEAT, TOKEN, Welcome,
};
use tidegate_segment::board::Board;
use tidegate_segment::clock::monotonic_ns;
use tidegate_segment::ledger::NodeCounts;
use tidegate_segment::os::memfd::{self, MemoryKind};
use tokio_seqpacket::ancillary::OwnedAncillaryMessage;

use super::*;
use crate::door::kind::Door as _;
use crate::door::tests::settings;
use crate::host::tests::agent_for;
use crate::tenant::rule_index::tests::rule_index;

const DEADLINE: Duration = Duration::from_secs(5);

/// A gate socket in a directory of its own.
pub(super) struct Door {
    directory: tempfile::TempDir,
    context: Arc<AgentState>,
}

impl Door {
    pub(super) fn open(connections_max: usize, change: impl FnOnce(&mut DoorSettings)) -> Self {
        Self::of(agent_for(connections_max), change)
    }

    /// A socket of this agent.
    pub(super) fn of(context: Arc<AgentState>, change: impl FnOnce(&mut DoorSettings)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut settings = settings(directory.path());
        change(&mut settings);
        let socket = GateSocket::open(&settings, Arc::clone(&context.bounds)).unwrap();
        tokio::spawn(Box::new(socket).serve(Arc::clone(&context)));
        Self { directory, context }
    }

    pub(super) fn plain() -> Self {
        Self::open(4096, |_settings| {})
    }

    pub(super) fn rules(&self, toml: &str) {
        let directory = self.context.default_tenant().directory();
        let published = directory.publish(rule_index(toml), monotonic_ns()).unwrap();
        assert_eq!(published.unplaced, []);
    }

    pub(super) fn slot(&self, resource: &str) -> u32 {
        self.context
            .default_tenant()
            .directory()
            .resolve(resource)
            .slot
            .index
    }

    fn path(&self) -> std::path::PathBuf {
        self.directory.path().join(FILE_NAME)
    }

    pub(super) async fn connect(&self) -> Peer {
        Peer::connect(&self.path()).await
    }

    /// A connection after its hello.
    pub(super) async fn greeted(&self) -> Peer {
        let peer = self.connect().await;
        peer.say(&hello(0)).await;
        peer.hear(|message| assert!(matches!(message, Message::Welcome(_)), "{message:?}"))
            .await;
        peer
    }

    pub(super) fn counts(&self, resource: &str) -> NodeCounts {
        let tenant = self.context.default_tenant();
        let slot = tenant.directory().resolve(resource).slot;
        tenant.seats().node_counts(slot)
    }

    /// Waits until the resource has this many requests in flight.
    pub(super) async fn until_inflight(&self, resource: &str, inflight: u64) {
        let reached = async {
            while self.counts(resource).inflight != inflight {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(DEADLINE, reached).await.unwrap();
    }
}

pub(super) struct Peer(UnixSeqpacket);

impl Peer {
    async fn connect(path: &Path) -> Self {
        Self(UnixSeqpacket::connect(path).await.unwrap())
    }

    pub(super) async fn say(&self, message: &Message<'_>) {
        self.send(message.encode().bytes()).await;
    }

    pub(super) async fn send(&self, bytes: &[u8]) {
        self.0.send(bytes).await.unwrap();
    }

    pub(super) async fn hear<T>(&self, with: impl FnOnce(Message<'_>) -> T) -> T {
        let mut buffer = [0; FRAME_MAX];
        let heard = tokio::time::timeout(DEADLINE, self.0.recv(&mut buffer)).await;
        let length = heard.unwrap().unwrap().bytes_read();
        with(Message::decode(&buffer[..length]).unwrap())
    }

    pub(super) async fn fault(&self) -> (FaultCode, String) {
        self.hear(|message| {
            let Message::Fault { code, text } = message else {
                panic!("{message:?}")
            };
            (code, text.to_owned())
        })
        .await
    }

    pub(super) async fn is_closed(&self) -> bool {
        let mut buffer = [0; FRAME_MAX];
        let heard = tokio::time::timeout(DEADLINE, self.0.recv(&mut buffer)).await;
        heard.unwrap().map_or(0, |info| info.bytes_read()) == 0
    }

    /// Asks, and hands the verdict to `check`.
    pub(super) async fn enter<T>(
        &self,
        ask: EnterRequest<'_>,
        check: impl FnOnce(EnterAnswer<'_>) -> T,
    ) -> T {
        self.say(&Message::Enter(ask)).await;
        self.hear(|message| {
            let Message::Verdict(answer) = message else {
                panic!("{message:?}")
            };
            check(answer)
        })
        .await
    }

    pub(super) async fn admitted(&self, resource: &str) -> [u8; TOKEN] {
        self.enter(EnterRequest::of(resource), |answer| match answer {
            EnterAnswer::Admitted { token, .. } => token,
            refused @ EnterAnswer::Refused { .. } => panic!("{refused:?}"),
        })
        .await
    }
}

pub(super) fn hello(flags: u32) -> Message<'static> {
    Message::Hello {
        version: tidegate_abi::VERSION,
        flags,
        now_ns: monotonic_ns(),
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
    let page = memfd::open(MemoryKind::Board, &board, words(board_words)).unwrap();
    memfd::open(MemoryKind::Ledger, &ledger, words(ledger_words)).unwrap();
    let board = Board::open(page).unwrap();
    assert_eq!(board.generation(), board_generation);
    let info = board.seat_info(seat).unwrap();
    assert_eq!(
        (info.word.live, info.word.generation),
        (true, seat_generation)
    );
    assert_eq!(info.pid, std::process::id());
    let clients = door.context.default_tenant().clients().list();
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
    door.rules(
        "[[flow]]\nid = \"one at a time\"\nresource = \"a\"\ngrade = \"concurrency\"\ncount = 1",
    );
    let peer = door.greeted().await;
    let token = peer.admitted("a").await;
    peer.enter(EnterRequest::of("a"), |answer| {
        let EnterAnswer::Refused {
            kind,
            reason,
            retry,
            rule,
            retry_after_ms,
            value,
            limit,
            id,
        } = answer
        else {
            panic!("refused");
        };
        assert_eq!(
            (kind, reason, retry, rule),
            (RefusalKind::Flow, Reason::Concurrency, true, 0)
        );
        assert_eq!((value, limit, id), (1, 1, "one at a time"));
        assert!(retry_after_ms > 0);
    })
    .await;
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
    assert_eq!(door.context.default_tenant().clients().count(), 1);
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
async fn a_thousand_connections_at_once_are_served() {
    crate::door::open_files::raise_limit().unwrap();
    let door = Door::plain();
    let mut peers = Vec::new();
    for _peer in 0..1000 {
        peers.push(door.connect().await);
    }
    for peer in &peers {
        peer.say(&hello(0)).await;
        peer.say(&Message::Enter(EnterRequest::of("a"))).await;
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
    let error = GateSocket::open(&settings, Arc::clone(&door.context.bounds))
        .unwrap_err()
        .to_string();
    let own = std::process::id();
    assert_eq!(
        error,
        format!(
            "{}: an agent runs already (pid {own}); stop it, or use another --runtime-dir",
            door.path().display()
        )
    );
}
