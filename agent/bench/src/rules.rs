//! What each kind of rule costs, hot, one thread.

use std::num::NonZeroU64;

use tidegate_limits::breaker::Breaker;
use tidegate_limits::breaker::trip::BreakerTrip;
use tidegate_limits::quirks::Quirks;
use tidegate_segment::board::{
    ClockSource, FlowLimit, FlowRule, OriginTest, ParamLimit, ParamRule, PoolSpan, RuleKind,
    Subject, WarmUpNumbers,
};
use tidegate_segment::gate::{Arg, Request};

use crate::figure::{Figure, NoFigure};
use crate::pages::Pages;
use crate::pass::{CALLS, NEVER_REACHED, ROUNDS, expect_none, pass, pass_with};
use crate::timing::{Clocks, Spread, per_call_ns, spread_ns};

const SECOND: NonZeroU64 = match NonZeroU64::new(1_000_000_000) {
    Some(ns) => ns,
    None => NonZeroU64::MIN,
};
const HOUR_NS: u64 = 3_600_000_000_000;

/// Passes a second that nobody reaches, for rules that space or warm up.
const NEVER_REACHED_RATE: f64 = 1e9;

/// Values of the argument that the hot-parameter figure goes through.
const HOT_VALUES: u64 = 64;

/// Resources of the pages; the sets of values go by them.
const RESOURCES: u32 = 64;

/// Measures one resource with one rule, or with those named.
pub(crate) fn figures(clocks: &Clocks) -> Vec<Figure> {
    let figure = |name, how, value| Figure { name, how, value };
    vec![
        figure(
            "flow_degrade_ns",
            "enter and exit with one flow rule and one breaker, hot, one thread",
            ruled_ns(
                clocks.best,
                &[flow(FlowLimit::Qps(NEVER_REACHED)), breaker()],
            ),
        ),
        figure(
            "param_ns",
            "the same with a hot-parameter rule, 64 values in turn",
            param_ns(clocks.best),
        ),
        figure(
            "pace_ns",
            "the same with a rule that spaces passes",
            ruled_ns(
                clocks.best,
                &[flow(FlowLimit::Pace {
                    count: NEVER_REACHED_RATE,
                    max_wait_ns: SECOND.get(),
                })],
            ),
        ),
        figure(
            "warm_up_ns",
            "the same with a flow rule that warms up",
            ruled_ns(clocks.best, &[flow(FlowLimit::WarmUp(WARM_UP))]),
        ),
    ]
}

const WARM_UP: WarmUpNumbers = WarmUpNumbers {
    count: NEVER_REACHED_RATE,
    period_s: 10,
    cold_factor: 3,
};

/// A flow rule for every caller of the resource.
pub(crate) const fn flow(limit: FlowLimit) -> RuleKind {
    RuleKind::Flow(FlowRule {
        origin: OriginTest::Any,
        subject: Subject::Direct,
        limit,
    })
}

/// A breaker that no call trips.
pub(crate) const fn breaker() -> RuleKind {
    RuleKind::Degrade {
        breaker: Breaker {
            trip: BreakerTrip::SlowRatio {
                max_rt_ns: HOUR_NS,
                ratio: 0.5,
            },
            min_requests: 5,
            recovery_ns: HOUR_NS,
            lease_ns: HOUR_NS,
            quirks: Quirks::None,
        },
        interval_ns: SECOND,
    }
}

/// Enter and exit of one resource with these rules.
pub(crate) fn ruled(clock: ClockSource, kinds: &[RuleKind]) -> Result<Spread, NoFigure> {
    let mut pages = Pages::new(RESOURCES, clock)?;
    let slot = pages.ruled("hot", kinds)?;
    let gate = pages.gate(1)?;
    let mut refused = 0;
    let spread = spread_ns(ROUNDS, CALLS, || refused += u64::from(!pass(&gate, slot)));
    expect_none(refused, "passes were refused")?;
    Ok(spread)
}

fn ruled_ns(clock: ClockSource, kinds: &[RuleKind]) -> Result<f64, NoFigure> {
    Ok(ruled(clock, kinds)?.own)
}

fn param_ns(clock: ClockSource) -> Result<f64, NoFigure> {
    let mut pages = Pages::new(RESOURCES, clock)?;
    let rule = RuleKind::Param(ParamRule {
        index: 0,
        limit: ParamLimit::Bucket {
            burst: 0,
            duration_s: 1,
        },
        count: NEVER_REACHED,
        items: PoolSpan::default(),
        sets: PoolSpan {
            start: 0,
            length: RESOURCES,
        },
    });
    let slot = pages.ruled("hot", &[rule])?;
    let gate = pages.gate(1)?;
    let args: Vec<[Arg<'_>; 1]> = (0..HOT_VALUES)
        .map(|value| {
            [Arg::One(tidegate_abi::board::name_hash(
                &value.to_le_bytes(),
            ))]
        })
        .collect();
    let mut turn = args.iter().cycle();
    let mut refused = 0;
    let time_ns = per_call_ns(ROUNDS, CALLS, || {
        let request = Request {
            args: turn.next().map_or(&[], |args| args),
            ..Request::default()
        };
        refused += u64::from(!pass_with(&gate, slot, request));
    });
    expect_none(refused, "passes were refused")?;
    Ok(time_ns)
}
