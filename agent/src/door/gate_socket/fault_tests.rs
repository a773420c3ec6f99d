//! What a peer that is wrong hears, and what of it is lost: nothing.

use std::time::Duration;

use tidegate_abi::decision::Outcome;
use tidegate_abi::message::{EnterRequest, FRAME_MAX, FaultCode, Message, Part};

use super::tests::{Door, hello};

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
    for (frame, code, text) in all_bad() {
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

fn all_bad() -> impl Iterator<Item = BadFrame> {
    let all = [bad_frames(), bad_values(), bad_parts()];
    all.into_iter().flatten()
}

type BadFrame = (Vec<u8>, FaultCode, &'static str);

fn frame(message: Message<'_>) -> Vec<u8> {
    message.encode().bytes().to_vec()
}

fn resolve(name: &str) -> Vec<u8> {
    frame(Message::Resolve { name })
}

fn enter(ask: EnterRequest<'_>) -> Vec<u8> {
    frame(Message::Enter(ask))
}

fn part(resource: &str, name: &str) -> Vec<u8> {
    let part = Part::Origin;
    frame(Message::ResolvePart {
        part,
        resource,
        name,
    })
}

/// The frame with another byte at a place.
fn with(mut frame: Vec<u8>, at: usize, byte: u8) -> Vec<u8> {
    frame[at] = byte;
    frame
}

const NAME_LENGTH: usize = 8;
const NAME: usize = 10;
const CLASS: usize = 12;
const PRIORITIZED: usize = 14;
/// Where the number of the arguments is in an enter for `a`, without origin and context.
const ARGS: usize = 27;

fn bad_frames() -> Vec<BadFrame> {
    let mut cut = resolve("abc");
    cut.pop();
    let mut grown = resolve("abc");
    grown.push(0);
    let code = FaultCode::Frame;
    let kinds = "there is no frame of kind 77; a service sends 1 (hello), 3 (resolve), 5 (enter), 7 (exit), \
         10 (resolve_part), 11 (rule), 13 (watch), 16 (resume), 17 (again)";
    let theirs = "this frame is the agent's to send; a service sends hello, resolve, resolve_part, rule, enter, exit, watch, resume";
    vec![
        (with(resolve("a"), 0, 77), code, kinds),
        (
            vec![0; FRAME_MAX + 1],
            code,
            "the frame is longer than 1344 bytes; no frame is",
        ),
        (
            cut,
            code,
            "the frame of 12 bytes is shorter than its length or its fields say; shared/PROTOCOL.md has the fields of each",
        ),
        (
            grown,
            code,
            "the frame of 14 bytes is longer than its length or its fields say; shared/PROTOCOL.md has the fields of each",
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
    let none = EnterRequest {
        count: 0,
        ..EnterRequest::of("a")
    };
    let huge = EnterRequest {
        count: 1 << 24,
        ..EnterRequest::of("a")
    };
    let bad_origin = EnterRequest {
        origin: "a\u{7}",
        ..EnterRequest::of("a")
    };
    let bad_context = EnterRequest {
        context: "a\u{7f}",
        ..EnterRequest::of("a")
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
            enter(EnterRequest::of("")),
            "resource is empty; a name has 1 to 255 bytes",
        ),
        (
            enter(bad_origin),
            "origin holds a control character; a name is printable UTF-8 text",
        ),
        (
            with(enter(EnterRequest::of("a")), CLASS, 9),
            "class holds a number that is none of its values; allowed are 1 (critical), 2 (normal), 3 (sheddable), 4 (probe)",
        ),
        (
            with(enter(EnterRequest::of("a")), PRIORITIZED, 2),
            "prioritized holds a number that is none of its values; allowed are 0 and 1",
        ),
        (
            enter(bad_context),
            "context holds a control character; a name is printable UTF-8 text",
        ),
        (
            with(enter(EnterRequest::of("a")), ARGS, 17),
            "args are more than can be; allowed are 16 arguments with 64 values together",
        ),
    ]
    .map(|(frame, text)| (frame, FaultCode::Value, text))
    .to_vec()
}

fn bad_parts() -> Vec<BadFrame> {
    [
        (
            part("a", "b\u{1f}c"),
            "origin holds a control character; a name is printable UTF-8 text",
        ),
        (
            part("a\u{1f}b", "c"),
            "resource holds a control character; a name is printable UTF-8 text",
        ),
        (
            with(part("a", "b"), NAME_LENGTH, 3),
            "part holds a number that is none of its values; allowed are 1 (origin), 2 (context)",
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
    let door = Door::open(1, |settings| {
        settings.hello_deadline = Duration::from_millis(20);
    });
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
async fn a_listener_over_the_bound_is_refused_and_nothing_is_lost() {
    let door = Door::plain();
    let peer = door.greeted().await;
    for cookie in 0..16 {
        peer.say(&Message::Watch { cookie }).await;
        peer.hear(|message| assert_eq!(message, Message::Watched))
            .await;
    }
    peer.say(&Message::Watch { cookie: 16 }).await;
    assert_eq!(
        peer.fault().await,
        (
            FaultCode::Busy,
            "16 listeners are watched for this connection, more are not".to_owned()
        )
    );
    peer.admitted("a").await;
}

#[tokio::test]
async fn a_connection_over_the_bound_is_told_so() {
    let door = Door::open(1, |_settings| {});
    let first = door.greeted().await;
    let second = door.connect().await;
    assert_eq!(
        second.fault().await,
        (
            FaultCode::Busy,
            "connections to gate.sock: all 1 are taken; try again later".to_owned()
        )
    );
    assert!(second.is_closed().await);
    first.admitted("a").await;
}
