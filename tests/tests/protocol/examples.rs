//! Worked examples: hashes, packed words, whole frames.

use std::fmt::Write as _;

use tidegate_abi::VERSION;
use tidegate_abi::argument::{Arg, ArgumentKind, natural_hash, text_hash};
use tidegate_abi::board::{CalmWord, ClockWord, ScopeWord, SeatWord, name_hash};
use tidegate_abi::decision::{Class, Direction, Outcome, Reason, RefusalKind, ScopeState};
use tidegate_abi::ledger::CellWord;
use tidegate_abi::message::{
    Again, ArgsBuffer, EnterAnswer, EnterRequest, FaultCode, HELLO_MAP, Message, NO_SEAT, Part,
    TOKEN, Welcome,
};
use tidegate_limits::window::{BucketLength, Window};
use tidegate_segment::clock::Calibration;

use crate::tables;

pub(crate) fn blocks() -> Vec<(&'static str, String)> {
    vec![
        ("hash vectors", hashes()),
        ("clock vectors", clock()),
        ("scope word vectors", scope_words()),
        ("seat word vectors", seat_words()),
        ("calm word vectors", calm_words()),
        ("cell word vectors", cell_words()),
        ("window word vectors", window_words()),
        ("frame examples", frames()),
    ]
}

fn table(head: &str, rows: impl IntoIterator<Item = (String, u64)>) -> String {
    let mut table = format!("| {head} | word |\n|---|---|\n");
    for (what, word) in rows {
        writeln!(table, "| {what} | `{word:#018x}` |").expect("a string grows");
    }
    table
}

fn hashes() -> String {
    let names = ["a", "order-create", "__other__", "größe"];
    table(
        "name",
        names.map(|name| (format!("`{name}`"), name_hash(name.as_bytes()))),
    )
}

fn clock() -> String {
    // 3 GHz: a third of a ns for each count. The counter began a second before the clock.
    let word = ClockWord {
        base_ns: 1_000_000_000_u64.wrapping_neg(),
        place: 2,
    };
    let calibration = Calibration {
        base_ns: word.pack(),
        mult: 0x5555_5555,
    };
    let mut table = format!(
        "`CLOCK` = `{:#x}`: place 2, where the rate is `{:#x}`:\n\n| counter | ns |\n|---:|---:|\n",
        calibration.base_ns, calibration.mult
    );
    for counter in [3_000_000_003_u64, 3_003_000_000, 1_000_000_000_000_000] {
        writeln!(table, "| {counter} | {} |", calibration.at(counter)).expect("a string grows");
    }
    table
}

fn scope_words() -> String {
    let overload = ScopeWord {
        state: ScopeState::Overload,
        short: true,
        near: true,
        observe: false,
        entry: 400,
        tight: 100,
    };
    let observed = ScopeWord {
        observe: true,
        ..overload
    };
    table(
        "scope",
        [
            ("healthy, no limits".to_owned(), ScopeWord::OPEN.pack()),
            (
                "overload, short, near, entry 400, tight 100".to_owned(),
                overload.pack(),
            ),
            ("the same, observed".to_owned(), observed.pack()),
        ],
    )
}

fn seat_words() -> String {
    table(
        "seat",
        [(true, 1), (false, 0x00ab_cdef)].map(|(live, generation)| {
            let what = if live { "live" } else { "revoked" };
            let word = SeatWord { live, generation };
            (format!("{what}, generation {generation:#x}"), word.pack())
        }),
    )
}

fn calm_words() -> String {
    table(
        "calm",
        [(1, 0), (0x00ab_cdef, 86_400_000_000_000)].map(|(generation, until_ns)| {
            let word = CalmWord {
                generation,
                until_ns,
            };
            (
                format!("generation {generation:#x}, until {until_ns} ns"),
                word.pack(),
            )
        }),
    )
}

fn cell_words() -> String {
    table(
        "cell",
        [(1, 1, 3), (0x00ab_cdef, 0, CellWord::COUNT_MASK)].map(|(seat, slot, inflight)| {
            let what =
                format!("seat generation {seat:#x}, slot generation {slot}, count {inflight}");
            (
                what,
                CellWord {
                    seat,
                    slot,
                    inflight,
                }
                .pack(),
            )
        }),
    )
}

fn window_words() -> String {
    let bucket = BucketLength::HALF_SECOND;
    let mut word = 0;
    table(
        "step, buckets of 500 ms, limit 5",
        [
            (100_000_200_000_000, 3),
            (100_000_600_000_000, 2),
            (100_001_100_000_000, 1),
        ]
        .map(|(now_ns, count)| {
            let window = Window::at(word, bucket.epoch(now_ns));
            word = window.try_add(count, 5).expect("there is room").word();
            (format!("count {count} more at {now_ns} ns"), word)
        }),
    )
}

/// Two examples of hello and enter, one of each other frame.
fn messages() -> Vec<(&'static str, Message<'static>)> {
    let token = *b"0123456789abcdef";
    assert_eq!(token.len(), TOKEN);
    let mut all = asked(token);
    all.extend(answered(token));
    all.extend(of_turns(token));
    all.extend(of_parts_and_rules());
    all.push(("watched", Message::Watched));
    all
}

fn asked(token: [u8; TOKEN]) -> Vec<(&'static str, Message<'static>)> {
    let arguments: &'static ArgsBuffer = Box::leak(Box::new(ArgsBuffer::of(&[
        Arg::None,
        Arg::One(text_hash(ArgumentKind::Text, "x")),
        Arg::Many(&[natural_hash(7), natural_hash(8)]),
    ])));
    let mut asked = greetings();
    asked.extend([
        (
            "resolve `order-create`",
            Message::Resolve {
                name: "order-create",
            },
        ),
        (
            "enter `order-create`, no origin, count 1, normal, in",
            Message::Enter(EnterRequest::of("order-create")),
        ),
        (
            "enter `größe`, origin `web`, count 3, critical, out",
            Message::Enter(EnterRequest {
                origin: "web",
                count: 3,
                class: Class::Critical,
                direction: Direction::Out,
                ..EnterRequest::of("größe")
            }),
        ),
        (
            "enter `a`, prioritized, context `checkout`, arguments: nothing, the text `x`, the list 7, 8",
            Message::Enter(EnterRequest {
                prioritized: true,
                context: "checkout",
                args: arguments.args(),
                ..EnterRequest::of("a")
            }),
        ),
        (
            "exit, ok",
            Message::Exit {
                token,
                outcome: Outcome::Ok,
            },
        ),
        ("watch socket 0x1234", Message::Watch { cookie: 0x1234 }),
    ]);
    asked
}

fn greetings() -> Vec<(&'static str, Message<'static>)> {
    let hello = |flags, now_ns| Message::Hello {
        version: VERSION,
        flags,
        now_ns,
    };
    vec![
        (
            "hello that asks for the pages, now = 1 s",
            hello(HELLO_MAP, 1_000_000_000),
        ),
        ("hello that does not, now = 2 s", hello(0, 2_000_000_000)),
        (
            "again, of one that had seat 7 in generation 3, two descriptors come with it, now = 3 s",
            Message::Again(Again {
                version: VERSION,
                seat: 7,
                seat_generation: 3,
                now_ns: 3_000_000_000,
            }),
        ),
    ]
}

fn of_turns(token: [u8; TOKEN]) -> Vec<(&'static str, Message<'static>)> {
    vec![
        (
            "enter `a`, waits by itself, at most 2 s",
            Message::Enter(EnterRequest {
                wait_at_most_ms: 2_000,
                waits_itself: true,
                ..EnterRequest::of("a")
            }),
        ),
        (
            "held, its turn comes in 1.5 s",
            Message::Held {
                token,
                wait_us: 1_500_000,
            },
        ),
        ("resume", Message::Resume { token }),
    ]
}

fn of_parts_and_rules() -> Vec<(&'static str, Message<'static>)> {
    vec![
        ("exited", Message::Exited),
        (
            "resolved to slot 9",
            Message::Resolved {
                slot: 9,
                generation: 1,
                overflow: 0,
            },
        ),
        (
            "resolve the node of `order-create` for the origin `web`",
            Message::ResolvePart {
                part: Part::Origin,
                resource: "order-create",
                name: "web",
            },
        ),
        ("rule 4", Message::Rule { number: 4 }),
        ("rule 4 is `orders`", Message::Ruled { id: "orders" }),
    ]
}

fn answered(token: [u8; TOKEN]) -> Vec<(&'static str, Message<'static>)> {
    let geometry = tables::example();
    let words = |words: usize| u64::try_from(words).expect("fits");
    let welcome = Welcome {
        version: VERSION,
        seat: 7,
        seat_generation: 3,
        scope: 2,
        board_words: words(geometry.board().words),
        ledger_words: words(geometry.ledger().words),
        board_generation: 0x0123_4567_89ab_cdef,
        now_ns: 1_000_000_500,
    };
    let no_seat = Welcome {
        seat: NO_SEAT,
        seat_generation: 0,
        ..welcome
    };
    vec![
        (
            "welcome to seat 7, two descriptors come with it",
            Message::Welcome(welcome),
        ),
        (
            "welcome without a seat and without descriptors",
            Message::Welcome(no_seat),
        ),
        (
            "verdict, admitted",
            Message::Verdict(EnterAnswer::Admitted {
                token,
                waited_ms: 0,
            }),
        ),
        (
            "verdict, refused by flow rule 4 `orders` (QPS, 100 of 100), try again in 500 ms",
            Message::Verdict(EnterAnswer::Refused {
                kind: RefusalKind::Flow,
                reason: Reason::Qps,
                retry: true,
                rule: 4,
                retry_after_ms: 500,
                value: 100,
                limit: 100,
                id: "orders",
            }),
        ),
        (
            "fault, wrong order",
            Message::Fault {
                code: FaultCode::Order,
                text: "a second hello",
            },
        ),
    ]
}

fn frames() -> String {
    let mut text = String::new();
    for (what, message) in messages() {
        let frame = message.encode();
        assert_eq!(Message::decode(frame.bytes()), Ok(message), "{what}");
        if !text.is_empty() {
            text.push('\n');
        }
        write!(text, "{what}:\n\n```text\n").expect("a string grows");
        for line in frame.bytes().chunks(16) {
            let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(text, "{}", hex.join(" ")).expect("a string grows");
        }
        text.push_str("```\n");
    }
    text
}
