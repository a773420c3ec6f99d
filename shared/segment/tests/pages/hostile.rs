//! Whatever stands in a ledger, a decision ends, does not panic and stays inside the pages.

use std::num::NonZeroU64;

use crate::exact::{breaker, flow, param};
use crate::fixture::{Fixture, SECOND, Scripted};
use proptest::prelude::*;
use tidegate_abi::board::Needs;
use tidegate_abi::decision::{LossMode, Mode, Outcome};
use tidegate_abi::geometry::Geometry;
use tidegate_limits::authority::OriginListMode;
use tidegate_limits::breaker::Breaker;
use tidegate_limits::breaker::trip::BreakerTrip;
use tidegate_limits::quirks::Quirks;
use tidegate_segment::board::{
    Board, BoardRule, FlowLimit, FlowRule, OriginTest, ParamLimit, ParamRule, PoolSpan,
    ResourceRecord, RuleKind, Subject, WarmUpNumbers,
};
use tidegate_segment::gate::{Arg, Gate, GateVerdict, Request, Step};
use tidegate_segment::lane::Lane;
use tidegate_segment::ledger::Ledger;
use tidegate_segment::page::Page;
use tidegate_segment::sync::Ordering;

fn record() -> ResourceRecord {
    ResourceRecord {
        needs: Needs(Needs::QPS | Needs::CONCURRENCY | Needs::OBSERVED_QPS),
        qps_limit: 5,
        concurrency_limit: 5,
        observed_qps_limit: 2,
        ..ResourceRecord::default()
    }
}

/// One rule of each kind and behavior, each with a line of state of its own.
fn every_kind() -> Vec<BoardRule> {
    let warm_up = WarmUpNumbers {
        count: 10.0,
        period_s: 5,
        cold_factor: 3,
    };
    let (window_ns, max_wait_ns) = (10 * SECOND, SECOND);
    let mut rules = vec![
        param(ParamLimit::Strict { duration_s: 1 }, 5),
        param(ParamLimit::Concurrency, 5),
        param(
            ParamLimit::Pace {
                duration_s: 1,
                max_wait_ms: 500,
            },
            5,
        ),
        param(
            ParamLimit::Bucket {
                burst: 1,
                duration_s: 1,
            },
            5,
        ),
    ];
    let limit = 5;
    let limits = [
        FlowLimit::Qps(limit),
        FlowLimit::Concurrency(limit),
        FlowLimit::Window { limit, window_ns },
        FlowLimit::Strict { limit, window_ns },
        FlowLimit::Pace {
            count: 10.0,
            max_wait_ns,
        },
        FlowLimit::WarmUp(warm_up),
        FlowLimit::WarmUpPace {
            warm_up,
            max_wait_ns,
        },
    ];
    rules.extend(limits.map(flow));
    rules.push(breaker());
    let lines = (0..).zip(rules);
    lines
        .map(|(state, rule)| BoardRule { state, ..rule })
        .collect()
}

/// A ledger of the fixture's geometry whose words after the header are `words`, over and over.
fn ledger_of(geometry: Geometry, words: &[u64]) -> Ledger {
    let page = Page::private(geometry.ledger().words);
    let ledger = Ledger::create(page, geometry).unwrap();
    let header = geometry.ledger().scopes.start();
    for (word, value) in page.words().iter().skip(header).zip(words.iter().cycle()) {
        word.store(*value, Ordering::Relaxed);
    }
    ledger
}

/// A rule of any kind with any numbers, also such as no configuration gives.
fn any_rule() -> impl Strategy<Value = BoardRule> {
    let numbers = (
        any::<u32>(),
        any::<u32>(),
        any::<u64>(),
        any::<f64>(),
        any::<i32>(),
    );
    let span = || (0_u32..64, 0_u32..64).prop_map(|(start, length)| PoolSpan { start, length });
    let spans = (
        span(),
        prop_oneof![
            span(),
            Just(PoolSpan {
                start: u32::MAX,
                length: u32::MAX
            })
        ],
    );
    let kinds = (0_u8..13, 0_u8..3, 0_u8..3, any::<bool>(), any::<bool>());
    (numbers, spans, kinds, 0_u32..20).prop_map(|(numbers, spans, kinds, state)| {
        let (kind, subject, origin, quirky, observes) = kinds;
        let aimed = (subject, origin);
        BoardRule {
            number: 0,
            mode: if observes {
                Mode::Observe
            } else {
                Mode::Enforce
            },
            state,
            quirks: if quirky {
                Quirks::Sentinel
            } else {
                Quirks::None
            },
            kind: any_kind(kind, aimed, numbers, spans),
        }
    })
}

type Numbers = (u32, u32, u64, f64, i32);

fn any_kind(
    kind: u8,
    aimed: (u8, u8),
    numbers: Numbers,
    (items, sets): (PoolSpan, PoolSpan),
) -> RuleKind {
    let (a, b, c, number, index) = numbers;
    let duration_s = b;
    let param = |limit| {
        RuleKind::Param(ParamRule {
            index,
            limit,
            count: a,
            items,
            sets,
        })
    };
    match kind {
        0 => param(ParamLimit::Bucket {
            burst: b,
            duration_s,
        }),
        1 => param(ParamLimit::Strict { duration_s }),
        2 => param(ParamLimit::Pace {
            duration_s,
            max_wait_ms: a,
        }),
        3 => param(ParamLimit::Concurrency),
        4 => RuleKind::Authority {
            list: OriginListMode::Deny,
            origins: items,
        },
        5 => RuleKind::Degrade {
            breaker: Breaker {
                trip: BreakerTrip::ErrorRatio(number),
                min_requests: a,
                recovery_ns: c,
                lease_ns: c,
                quirks: Quirks::None,
            },
            interval_ns: NonZeroU64::new(c).unwrap_or(NonZeroU64::MIN),
        },
        flow => {
            let (subject, origin) = aimed;
            RuleKind::Flow(FlowRule {
                origin: [OriginTest::Any, OriginTest::Is(c), OriginTest::Other(items)]
                    [usize::from(origin)],
                subject: [Subject::Direct, Subject::Relate(a), Subject::Chain(0)]
                    [usize::from(subject)],
                limit: any_limit(flow, numbers),
            })
        }
    }
}

fn any_limit(kind: u8, (limit, period_s, long_ns, count, _index): Numbers) -> FlowLimit {
    let (window_ns, max_wait_ns) = (long_ns, long_ns);
    let warm_up = WarmUpNumbers {
        count,
        period_s,
        cold_factor: limit,
    };
    match kind {
        6 => FlowLimit::Qps(limit),
        7 => FlowLimit::Concurrency(limit),
        8 => FlowLimit::Window { limit, window_ns },
        9 => FlowLimit::Strict { limit, window_ns },
        10 => FlowLimit::Pace { count, max_wait_ns },
        11 => FlowLimit::WarmUp(warm_up),
        _ => FlowLimit::WarmUpPace {
            warm_up,
            max_wait_ns,
        },
    }
}

proptest! {
    #[test]
    fn any_bits_are_survived_by_any_rules_at_any_time(
        words in prop::collection::vec(any::<u64>(), 1..64),
        rules in prop::collection::vec(any_rule(), 1..12),
        now_ns in prop_oneof![any::<u64>(), Just(1_000 * SECOND), Just(u64::MAX), Just(0)],
        count: u32,
        values in prop::collection::vec(any::<u64>(), 0..4),
    ) {
        let mut fixture = Fixture::new(LossMode::Open);
        let needs = Needs::RULES | Needs::COUNTED | Needs::SECONDS | Needs::SYSTEM;
        let record = ResourceRecord { needs: Needs(needs), ..ResourceRecord::default() };
        let slot = fixture.writers.rules.add("r", &record, &rules).unwrap();
        let seated = fixture.gate(1, 0);
        let ledger = ledger_of(fixture.board.geometry(), &words);
        let gate = Gate::new(fixture.board, ledger, seated.seat(), 1);
        let clock = Scripted::at(now_ns);
        let args = [Arg::Many(&values), Arg::One(7), Arg::None];
        let request = Request { args: &args, prioritized: true, count, ..Request::default() };
        let mut step = gate.enter(&clock, Lane::SHARED, slot, request);
        // One wait for each value and each rule is the most.
        for _wait in 0..4 * 12 {
            match step {
                Step::Wait(waiting) => step = gate.resume(&clock, Lane::SHARED, &waiting),
                Step::Done(_) => break,
            }
        }
        match step {
            Step::Done(GateVerdict::Admitted(pass)) => gate.exit(&clock, Lane::SHARED, pass, Outcome::Ok),
            Step::Done(_) => {}
            Step::Wait(_) => prop_assert!(false, "a decision ends"),
        }
    }

    #[test]
    fn any_bits_in_the_ledger_are_survived(words in prop::collection::vec(any::<u64>(), 1..64)) {
        let mut fixture = Fixture::new(LossMode::Open);
        let slot = fixture.resource("r", record());
        let seated = fixture.gate(1, 0);
        let ledger = ledger_of(fixture.board.geometry(), &words);
        let gate = Gate::new(fixture.board, ledger, seated.seat(), 1);
        for lane in 0..4 {
            let lane = Lane::numbered(lane);
            if let Step::Done(GateVerdict::Admitted(pass)) = gate.enter(&fixture.clock, lane, slot, Request::default()) {
                gate.exit(&fixture.clock, lane, pass, Outcome::Ok);
            }
        }
        let _counts = ledger.node_counts(&fixture.board, slot);
        let _scopes = ledger.scope_counts(&fixture.board, 0);
        let _one_shot = gate.admit_one_shot(&fixture.clock, 0);
        ledger.clear_seat(1, fixture.board.resources_used());
    }

    #[test]
    fn any_bits_are_survived_by_every_kind_of_rule(words in prop::collection::vec(any::<u64>(), 1..64)) {
        let mut fixture = Fixture::new(LossMode::Open);
        let needs = Needs::RULES | Needs::COUNTED | Needs::SECONDS | Needs::SYSTEM;
        let record = ResourceRecord { needs: Needs(needs), ..ResourceRecord::default() };
        let slot = fixture.writers.rules.add("r", &record, &every_kind()).unwrap();
        let seated = fixture.gate(1, 0);
        let ledger = ledger_of(fixture.board.geometry(), &words);
        let gate = Gate::new(fixture.board, ledger, seated.seat(), 1);
        let args = [Arg::Many(&[1, u64::MAX, 3])];
        let request = Request { args: &args, prioritized: true, ..Request::default() };
        for outcome in [Outcome::Ok, Outcome::Error, Outcome::Ignore] {
            let mut step = gate.enter(&fixture.clock, Lane::SHARED, slot, request);
            // One wait for each value and each rule is the most.
            for _wait in 0..32 {
                match step {
                    Step::Wait(waiting) => step = gate.resume(&fixture.clock, Lane::SHARED, &waiting),
                    Step::Done(_) => break,
                }
            }
            match step {
                Step::Done(GateVerdict::Admitted(pass)) => gate.exit(&fixture.clock, Lane::SHARED, pass, outcome),
                Step::Done(_) => {}
                Step::Wait(_) => prop_assert!(false, "a decision ends"),
            }
        }
    }

    #[test]
    fn any_page_is_taken_or_refused_with_a_reason(words in prop::collection::vec(any::<u64>(), 0..128)) {
        let page = Page::private(words.len());
        for (word, value) in page.words().iter().zip(&words) {
            word.store(*value, Ordering::Relaxed);
        }
        prop_assert!(Board::open(page).is_err());
    }
}

#[test]
fn a_board_says_why_it_is_not_taken() {
    let short = Page::private(4);
    let found = Board::open(short).unwrap_err().to_string();
    assert!(
        found.starts_with("the page begins with 0x0000000000000000"),
        "{found}"
    );

    let geometry = Geometry::new(8, 4, 3, 4).unwrap();
    let page = Page::private(geometry.board().words);
    let words = page.words();
    words[0].store(tidegate_abi::board::MAGIC, Ordering::Relaxed);
    words[1].store(99, Ordering::Relaxed);
    let found = Board::open(page).unwrap_err().to_string();
    assert_eq!(
        found,
        "layout version 99, this program has 1; upgrade the older of the two"
    );
    words[1].store(u64::from(tidegate_abi::VERSION), Ordering::Relaxed);
    let found = Board::open(page).unwrap_err().to_string();
    assert_eq!(found, "resources = 0 is not in 1..=1048576");
    words[2].store(u64::from(u32::MAX) >> 12, Ordering::Relaxed);
    assert!(
        Board::open(page).is_err(),
        "a page that is far too short for its header"
    );
}
