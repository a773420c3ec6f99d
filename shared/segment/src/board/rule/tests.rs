//! A rule reads back as it was written.

use tidegate_abi::rule::WORDS;
use tidegate_limits::breaker::trip::BreakerTrip;

use super::*;
use crate::sync::Word;

const SPAN: PoolSpan = PoolSpan {
    start: 3,
    length: 2,
};
const WARM_UP: WarmUpNumbers = WarmUpNumbers {
    count: 2.5,
    period_s: 10,
    cold_factor: 3,
};

fn breaker(trip: BreakerTrip) -> RuleKind {
    let breaker = Breaker {
        trip,
        min_requests: 5,
        recovery_ns: 7,
        lease_ns: 9,
        quirks: Quirks::Sentinel,
    };
    RuleKind::Degrade {
        breaker,
        interval_ns: NonZeroU64::new(11).unwrap(),
    }
}

fn flow(origin: OriginTest, subject: Subject, limit: FlowLimit) -> RuleKind {
    RuleKind::Flow(FlowRule {
        origin,
        subject,
        limit,
    })
}

fn param(limit: ParamLimit) -> RuleKind {
    RuleKind::Param(ParamRule {
        index: -2,
        limit,
        count: 4,
        items: SPAN,
        sets: SPAN,
    })
}

fn kinds() -> Vec<RuleKind> {
    let any = |limit| flow(OriginTest::Any, Subject::Direct, limit);
    let (limit, window_ns, max_wait_ns) = (3, 4, 6);
    vec![
        RuleKind::Authority {
            list: OriginListMode::Allow,
            origins: SPAN,
        },
        RuleKind::Authority {
            list: OriginListMode::Deny,
            origins: SPAN,
        },
        breaker(BreakerTrip::SlowRatio {
            max_rt_ns: 1,
            ratio: 0.5,
        }),
        breaker(BreakerTrip::ErrorRatio(0.25)),
        breaker(BreakerTrip::ErrorCount(3.0)),
        any(FlowLimit::Concurrency(3)),
        flow(OriginTest::Is(77), Subject::Relate(5), FlowLimit::Qps(9)),
        flow(
            OriginTest::Other(SPAN),
            Subject::Chain(8),
            FlowLimit::Qps(9),
        ),
        any(FlowLimit::Window { limit, window_ns }),
        any(FlowLimit::Strict { limit, window_ns }),
        any(FlowLimit::Pace {
            count: 0.5,
            max_wait_ns,
        }),
        any(FlowLimit::WarmUp(WARM_UP)),
        any(FlowLimit::WarmUpPace {
            warm_up: WARM_UP,
            max_wait_ns,
        }),
        param(ParamLimit::Bucket {
            burst: 2,
            duration_s: 3,
        }),
        param(ParamLimit::Strict { duration_s: 3 }),
        param(ParamLimit::Pace {
            duration_s: 3,
            max_wait_ms: 8,
        }),
        param(ParamLimit::Concurrency),
    ]
}

#[test]
fn every_kind_reads_back_as_it_was_written() {
    for kind in kinds() {
        for mode in [Mode::Enforce, Mode::Observe] {
            let rule = BoardRule {
                number: 17,
                mode,
                state: 23,
                quirks: Quirks::Sentinel,
                kind,
            };
            let line: [Word; WORDS] = rule.words().map(Word::new);
            assert_eq!(BoardRule::load(&line), Some(rule));
        }
    }
}

#[test]
fn words_that_are_no_rule_are_none() {
    let nothing: [Word; WORDS] = [0; WORDS].map(Word::new);
    assert_eq!(BoardRule::load(&nothing), None);
    let noise: [Word; WORDS] = [u64::MAX; WORDS].map(Word::new);
    assert_eq!(BoardRule::load(&noise), None);
}
