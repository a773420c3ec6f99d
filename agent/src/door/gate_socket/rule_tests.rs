//! Everything that rules look at comes through a frame of the gate socket.

use std::time::{Duration, Instant};

use tidegate_abi::argument::{Arg, ArgumentKind, natural_hash, text_hash};
use tidegate_abi::decision::{Direction, Outcome, Reason, RefusalKind};
use tidegate_abi::message::{
    ArgsBuffer, EnterAnswer, EnterRequest, FaultCode, Message, Part, TOKEN,
};

use super::tests::{Door, Peer};
use crate::host::bounds::TURNS;
use crate::host::tests::agent_that_waits;

impl Peer {
    /// Who refused; `None` if the request is admitted.
    async fn refusal(&self, ask: EnterRequest<'_>) -> Option<(RefusalKind, Reason)> {
        self.enter(ask, |answer| match answer {
            EnterAnswer::Admitted { .. } => None,
            EnterAnswer::Refused { kind, reason, .. } => Some((kind, reason)),
        })
        .await
    }
}

#[tokio::test]
async fn each_value_of_an_argument_has_its_own_limit() {
    let door = Door::plain();
    door.rules("[[param]]\nresource = \"a\"\nindex = -1\ncount = 1\nwindow = \"1h\"");
    let peer = door.greeted().await;
    let ask = |args: &[Arg<'_>]| {
        let buffer = ArgsBuffer::of(args);
        let peer = &peer;
        async move {
            let args = buffer.args();
            peer.refusal(EnterRequest {
                args,
                ..EnterRequest::of("a")
            })
            .await
        }
    };
    let refused = Some((RefusalKind::Param, Reason::Qps));
    let (seven, text) = (natural_hash(7), text_hash(ArgumentKind::Text, "7"));
    assert_eq!(ask(&[Arg::One(seven)]).await, None);
    assert_eq!(ask(&[Arg::One(seven)]).await, refused);
    assert_eq!(
        ask(&[Arg::One(text)]).await,
        None,
        "another type, another value"
    );
    let list = [natural_hash(8), seven];
    assert_eq!(ask(&[Arg::None, Arg::Many(&list)]).await, refused);
    assert_eq!(
        ask(&[Arg::One(natural_hash(8))]).await,
        refused,
        "8 has passed in the list"
    );
    assert_eq!(
        ask(&[Arg::One(seven), Arg::None]).await,
        None,
        "the last one is nothing"
    );
    assert_eq!(ask(&[]).await, None);
}

#[tokio::test]
async fn contexts_origins_and_the_direction_of_a_frame_are_looked_at() {
    let door = Door::plain();
    door.rules(
        r#"
        [[flow]]
        resource = "a"
        count = 0
        strategy = "chain"
        reference = "checkout"
        [[authority]]
        resource = "b"
        origins = ["shop"]
        [[system]]
        qps = 0
        "#,
    );
    let peer = door.greeted().await;
    let out = |resource| EnterRequest {
        direction: Direction::Out,
        ..EnterRequest::of(resource)
    };
    let in_checkout = EnterRequest {
        context: "checkout",
        ..out("a")
    };
    let flow = Some((RefusalKind::Flow, Reason::Qps));
    assert_eq!(peer.refusal(in_checkout).await, flow);
    assert_eq!(peer.refusal(out("a")).await, None);
    let of_shop = EnterRequest {
        origin: "shop",
        ..out("b")
    };
    let of_stranger = EnterRequest {
        origin: "stranger",
        ..of_shop
    };
    let authority = Some((RefusalKind::Authority, Reason::Origin));
    assert_eq!(peer.refusal(of_shop).await, None);
    assert_eq!(peer.refusal(of_stranger).await, authority);
    let system = Some((RefusalKind::System, Reason::Qps));
    assert_eq!(peer.refusal(EnterRequest::of("a")).await, system);
}

#[tokio::test]
async fn a_prioritized_frame_borrows_and_says_how_long_it_was_held() {
    let door = Door::plain();
    door.rules("[[flow]]\nresource = \"a\"\ncount = 2");
    let peer = door.greeted().await;
    let ask = EnterRequest {
        prioritized: true,
        ..EnterRequest::of("a")
    };
    // Within two turns of the window one finds it full, in the middle of a bucket.
    let deadline = Instant::now() + Duration::from_secs(5);
    while Instant::now() < deadline {
        let waited = peer.enter(ask, |answer| match answer {
            EnterAnswer::Admitted { waited_ms, .. } => waited_ms,
            EnterAnswer::Refused { .. } => 0,
        });
        if waited.await > 0 {
            return;
        }
    }
    panic!("nothing was borrowed");
}

#[tokio::test]
async fn a_paced_frame_is_held_until_its_turn() {
    let door = Door::plain();
    door.rules(
        "[[flow]]\nresource = \"a\"\ncount = 20\nbehavior = \"pace\"\nmax_queueing_time = \"2s\"",
    );
    let peer = door.greeted().await;
    let begin = Instant::now();
    let mut waited = Vec::new();
    for _turn in 0..4 {
        let one = peer.enter(EnterRequest::of("a"), |answer| match answer {
            EnterAnswer::Admitted { waited_ms, .. } => waited_ms,
            refused @ EnterAnswer::Refused { .. } => panic!("{refused:?}"),
        });
        waited.push(one.await);
    }
    // One each 50 ms: the last of four cannot be let in before 150 ms.
    assert!(begin.elapsed().as_millis() >= 150, "{waited:?}");
    assert_eq!(waited.first(), Some(&0));
    assert!(waited.iter().skip(1).all(|ms| *ms <= 50), "{waited:?}");
}

/// Turns are ten seconds apart: none comes within a test.
const SLOW: &str =
    "[[flow]]\nresource = \"a\"\ncount = 0.1\nbehavior = \"pace\"\nmax_queueing_time = \"1h\"";

const ITSELF: EnterRequest<'static> = EnterRequest {
    waits_itself: true,
    ..EnterRequest::of("a")
};

/// The token and the wait of a request that is held.
async fn held(peer: &Peer) -> ([u8; TOKEN], u32) {
    peer.hear(|message| {
        let Message::Held { token, wait_us } = message else {
            panic!("{message:?}")
        };
        (token, wait_us)
    })
    .await
}

#[tokio::test]
async fn a_caller_that_waits_itself_is_told_how_long_and_keeps_the_connection() {
    let door = Door::plain();
    door.rules(SLOW);
    let peer = door.greeted().await;
    let first = peer.enter(ITSELF, |answer| {
        matches!(answer, EnterAnswer::Admitted { .. })
    });
    assert!(first.await);
    peer.say(&Message::Enter(ITSELF)).await;
    let (token, wait_us) = held(&peer).await;
    assert!((9_000_000..=10_000_000).contains(&wait_us), "{wait_us}");
    // Others are served meanwhile, and who comes back too early is told again.
    peer.admitted("b").await;
    peer.say(&Message::Resume { token }).await;
    let (again, left_us) = held(&peer).await;
    assert!(again == token && left_us <= wait_us, "{left_us}");
    let exit = Message::Exit {
        token,
        outcome: Outcome::Ignore,
    };
    peer.say(&exit).await;
    peer.hear(|message| assert_eq!(message, Message::Exited))
        .await;
    for gone in [Message::Resume { token }, exit] {
        peer.say(&gone).await;
        assert_eq!(peer.fault().await.0, FaultCode::Permit);
    }
    let counts = door.counts("a");
    let refused: u64 = counts.refused.iter().sum();
    assert_eq!((counts.inflight, counts.passed, refused), (1, 1, 1));
}

#[tokio::test]
async fn a_caller_is_refused_at_once_where_its_turn_is_further_away_than_it_waits() {
    let door = Door::plain();
    door.rules(SLOW);
    let peer = door.greeted().await;
    peer.admitted("a").await;
    for waits_itself in [false, true] {
        let ask = EnterRequest {
            wait_at_most_ms: 5_000,
            waits_itself,
            ..EnterRequest::of("a")
        };
        let queue = Some((RefusalKind::Flow, Reason::Queue));
        assert_eq!(peer.refusal(ask).await, queue);
    }
}

#[tokio::test]
async fn nobody_waits_over_the_socket_for_longer_than_max_wait() {
    let agent = agent_that_waits(Duration::from_secs(2));
    let door = Door::of(agent, |_settings| {});
    door.rules(SLOW);
    let peer = door.greeted().await;
    peer.admitted("a").await;
    for waits_itself in [false, true] {
        let ask = EnterRequest {
            wait_at_most_ms: u32::MAX,
            waits_itself,
            ..EnterRequest::of("a")
        };
        let queue = Some((RefusalKind::Flow, Reason::Queue));
        assert_eq!(peer.refusal(ask).await, queue, "{waits_itself}");
    }
}

#[tokio::test]
async fn a_connection_that_ends_gives_up_what_waits_on_it() {
    let door = Door::plain();
    door.rules(&format!(
        "{SLOW}\n[[flow]]\nresource = \"a\"\ngrade = \"concurrency\"\ncount = 9"
    ));
    let peer = door.greeted().await;
    peer.enter(ITSELF, |_admitted| ()).await;
    peer.say(&Message::Enter(ITSELF)).await;
    held(&peer).await;
    drop(peer);
    door.until_inflight("a", 0).await;
}

#[tokio::test]
async fn an_origin_gets_a_node_where_a_rule_wants_one_and_the_resources_own_elsewhere() {
    let door = Door::plain();
    door.rules("[[flow]]\nid = \"shops\"\nresource = \"a\"\nlimit_origin = \"other\"\ncount = 2");
    let peer = door.greeted().await;
    let resolve = |part, resource, name| {
        let peer = &peer;
        async move {
            peer.say(&Message::ResolvePart {
                part,
                resource,
                name,
            })
            .await;
            peer.hear(|message| {
                let Message::Resolved { slot, overflow, .. } = message else {
                    panic!("{message:?}")
                };
                (slot, overflow)
            })
            .await
        }
    };
    let own = door.slot("a");
    let (shop, none) = resolve(Part::Origin, "a", "shop").await;
    assert_ne!(shop, own);
    assert_eq!(none, 0);
    assert_eq!(resolve(Part::Origin, "a", "shop").await, (shop, 0));
    assert_eq!(resolve(Part::Context, "a", "shop").await, (own, 1));
    let (unruled, none) = resolve(Part::Origin, "b", "shop").await;
    assert_eq!((unruled, none), (door.slot("b"), 1));
    for (number, expected) in [(0, "shops"), (7, "")] {
        peer.say(&Message::Rule { number }).await;
        peer.hear(|message| assert_eq!(message, Message::Ruled { id: expected }))
            .await;
    }
}

#[tokio::test]
async fn field_b3_turns_of_a_process_are_bounded() {
    let door = Door::of(agent_that_waits(Duration::from_hours(1)), |_settings| {});
    // Far apart, so that none comes while the others ask.
    door.rules(
        "[[flow]]\nresource = \"a\"\ncount = 0.6\nbehavior = \"pace\"\nmax_queueing_time = \"1h\"",
    );
    let most = TURNS / 4;
    let peers = [door.greeted().await, door.greeted().await];
    peers[0].enter(ITSELF, |_admitted| ()).await;
    for turn in 0..most {
        let peer = &peers[turn % 2];
        peer.say(&Message::Enter(ITSELF)).await;
        held(peer).await;
    }
    peers[1].say(&Message::Enter(ITSELF)).await;
    let (code, text) = peers[1].fault().await;
    assert_eq!(code, FaultCode::Busy);
    assert!(
        text.contains("requests that wait for their turn: process"),
        "{text}"
    );
    // Whose connection ends gives all of its turns back.
    let [first, second] = peers;
    drop(first);
    door.until_inflight("a", 0).await;
    second.say(&Message::Enter(ITSELF)).await;
    held(&second).await;
}
