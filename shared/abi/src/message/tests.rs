extern crate std;

use super::*;

const ASK: EnterRequest<'static> = EnterRequest {
    resource: "order-create",
    origin: "web",
    count: 3,
    class: Class::Critical,
    direction: Direction::In,
    prioritized: true,
    context: "checkout",
    args: Args::NONE,
    wait_at_most_ms: 250,
    waits_itself: true,
};

const HELD: Message<'static> = Message::Held {
    token: [5; TOKEN],
    wait_us: 500_000,
};

const AGAIN: Message<'static> = Message::Again(Again {
    version: 1,
    seat: 2,
    seat_generation: 3,
    now_ns: 9,
});

fn samples() -> [Message<'static>; 16] {
    [
        Message::Hello {
            version: 1,
            flags: HELLO_MAP,
            now_ns: 7,
        },
        AGAIN,
        Message::Welcome(Welcome {
            version: 1,
            seat: 2,
            seat_generation: 3,
            scope: 4,
            board_words: 5,
            ledger_words: 6,
            board_generation: 7,
            now_ns: 8,
        }),
        Message::Resolve {
            name: "order-create",
        },
        Message::Resolved {
            slot: 9,
            generation: 1,
            overflow: 0,
        },
        Message::Enter(ASK),
        Message::Verdict(EnterAnswer::Admitted {
            token: [7; TOKEN],
            waited_ms: 12,
        }),
        Message::Verdict(EnterAnswer::Refused {
            kind: RefusalKind::Flow,
            reason: Reason::Qps,
            retry: true,
            rule: 4,
            retry_after_ms: 500,
            value: 100,
            limit: 99,
            id: "orders",
        }),
        Message::Exit {
            token: [9; TOKEN],
            outcome: Outcome::Error,
        },
        Message::Exited,
        Message::Fault {
            code: FaultCode::Order,
            text: "a second hello",
        },
        Message::ResolvePart {
            part: Part::Context,
            resource: "order-create",
            name: "checkout",
        },
        Message::Rule { number: 4 },
        Message::Ruled { id: "orders" },
        HELD,
        Message::Resume { token: [5; TOKEN] },
    ]
}

#[test]
fn a_message_reads_back_as_it_was_written() {
    for message in samples() {
        assert_eq!(Message::decode(message.encode().bytes()), Ok(message));
    }
}

#[test]
fn an_enter_carries_all_that_rules_look_at() {
    let values = [7, u64::MAX];
    let buffer = ArgsBuffer::of(&[
        crate::argument::Arg::None,
        crate::argument::Arg::Many(&values),
    ]);
    let ask = EnterRequest {
        args: buffer.args(),
        ..ASK
    };
    let frame = Message::Enter(ask).encode();
    assert_eq!(Message::decode(frame.bytes()), Ok(Message::Enter(ask)));
}

#[test]
fn the_longest_enter_fits_into_a_frame() {
    let name = "x".repeat(crate::NAME_MAX);
    let values = [u64::MAX; VALUES_MAX];
    let args = ArgsBuffer::of(&[crate::argument::Arg::Many(&values)]);
    let ask = EnterRequest {
        resource: &name,
        origin: &name,
        context: &name,
        args: args.args(),
        ..ASK
    };
    let frame = Message::Enter(ask).encode();
    assert_eq!(Message::decode(frame.bytes()), Ok(Message::Enter(ask)));
}

#[test]
fn a_cut_or_grown_frame_is_refused() {
    for message in samples() {
        let frame = message.encode();
        for cut in 0..frame.bytes().len() {
            assert_eq!(
                Message::decode(&frame.bytes()[..cut]),
                Err(FrameFault::Short)
            );
        }
        let length = frame.bytes().len();
        let mut grown = [0; FRAME_MAX];
        grown[..length].copy_from_slice(frame.bytes());
        assert_eq!(Message::decode(&grown[..=length]), Err(FrameFault::Long));
    }
}

#[test]
fn unknown_kinds_and_values_are_named() {
    let exit = Message::Exit {
        token: [0; TOKEN],
        outcome: Outcome::Ok,
    };
    let mut frame = exit.encode().bytes().to_vec();
    frame[HEADER + TOKEN] = 99;
    assert_eq!(Message::decode(&frame), Err(FrameFault::Value("outcome")));
    frame[0] = 77;
    assert_eq!(Message::decode(&frame), Err(FrameFault::Kind(77)));
}
