//! A short record: the numbers of a resource's rules in its record, where those are a QPS limit and a
//! breaker at most. Most resources that have rules of the table have these, and their decisions then read
//! one cache line of the board.

use tidegate_abi::board::{Needs, record, short as field};
use tidegate_abi::decision::Mode;
use tidegate_abi::rule::trip;
use tidegate_limits::breaker::tally::{BreakerTally, Interval};
use tidegate_limits::breaker::trip::BreakerTrip;
use tidegate_limits::breaker::{Breaker, stays_closed};

use super::{BoardRule, FlowLimit, OriginTest, ResourceRecord, RuleKind, Subject, halves, split};
use crate::sync::{Word, peek};

const REQUESTS_MASK: u32 = (1 << 22) - 1;

/// What a record says of its rules besides where they are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Short {
    /// The QPS rule: its limit, number and line of state.
    qps: Option<(u32, u32, u32)>,
    breaker: ShortBreaker,
    number: u32,
}

/// What the end of a request takes of a breaker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShortBreaker {
    /// Its line of state.
    pub state: u32,
    /// Interval of its tally.
    pub interval: Interval,
    min_requests: u32,
    trip: u32,
    max_rt_ns: u64,
    threshold: f64,
}

impl Short {
    /// The short form of a record with these rules, if it has one. Rules that observe, look at origins or
    /// other nodes, or have Sentinel's quirks have none, nor has a resource that others look at.
    pub(super) fn of(record: &ResourceRecord, rules: &[BoardRule]) -> Option<Self> {
        if record.needs.0 & !(Needs::RULES | Needs::COUNTED) != 0 {
            return None;
        }
        let in_force = |rule: &BoardRule| rule.mode == Mode::Enforce && !rule.quirks.wanted();
        if !rules.iter().all(in_force) {
            return None;
        }
        let (qps, last) = match rules {
            [only] => (None, only),
            [first, last] => (Some((plain_qps(first)?, first.number, first.state)), last),
            _ => return None,
        };
        // The window of a resource without a limit is kept only where another rule looks at it.
        if qps.is_none() && record.needs.any(Needs::COUNTED) {
            return None;
        }
        Some(Self {
            qps,
            breaker: ShortBreaker::of(last)?,
            number: last.number,
        })
    }

    /// The words of the record, from those that it would have otherwise.
    pub(super) fn words(&self, plain: [u64; record::WORDS]) -> [u64; record::WORDS] {
        let [head, qps_limit, rules, ..] = plain;
        let (limit, number, state) = self.qps.unwrap_or_default();
        let needs = Needs::SHORT | if self.qps.is_some() { Needs::QPS } else { 0 };
        let breaker = &self.breaker;
        let numbers = breaker.min_requests | breaker.trip << 22;
        let shift = u32::from(breaker.interval.shift) << 24;
        [
            head | u64::from(needs),
            halves(limit, split(qps_limit).1),
            halves(state, split(rules).1),
            halves(number, self.number),
            halves(breaker.state, numbers | shift),
            breaker.max_rt_ns,
            breaker.interval.factor,
            breaker.threshold.to_bits(),
        ]
    }
}

/// The limit of a flow rule that holds every caller to passes in the resource's own window.
const fn plain_qps(rule: &BoardRule) -> Option<u32> {
    let RuleKind::Flow(flow) = rule.kind else {
        return None;
    };
    let FlowLimit::Qps(limit) = flow.limit else {
        return None;
    };
    match (flow.origin, flow.subject) {
        (OriginTest::Any, Subject::Direct) => Some(limit),
        (OriginTest::Any | OriginTest::Is(_) | OriginTest::Other(_), _) => None,
    }
}

impl ShortBreaker {
    fn of(rule: &BoardRule) -> Option<Self> {
        let RuleKind::Degrade {
            breaker: Breaker {
                trip, min_requests, ..
            },
            interval_ns,
        } = rule.kind
        else {
            return None;
        };
        let (max_rt_ns, threshold, trip) = match trip {
            BreakerTrip::SlowRatio { max_rt_ns, ratio } => (max_rt_ns, ratio, trip::SLOW_RATIO),
            BreakerTrip::ErrorRatio(ratio) => (u64::MAX, ratio, trip::ERROR_RATIO),
            BreakerTrip::ErrorCount(count) => (u64::MAX, count, trip::ERROR_COUNT),
        };
        (min_requests <= REQUESTS_MASK).then_some(Self {
            state: rule.state,
            interval: Interval::new(interval_ns)?,
            min_requests,
            trip,
            max_rt_ns,
            threshold,
        })
    }

    /// Reads the words of a short record; the caller checks that no writer was at them.
    #[inline(always)]
    pub(super) fn load(line: &[Word; record::WORDS]) -> Self {
        // Relaxed: the generation around this read orders it, see `Board::short_breaker`.
        let word = |field: usize| peek(line, field);
        let (state, numbers) = split(word(field::BREAKER));
        Self {
            state,
            interval: Interval {
                factor: word(field::INTERVAL),
                shift: (numbers >> 24 & 0x7f) as u8,
            },
            min_requests: numbers & REQUESTS_MASK,
            trip: numbers >> 22 & 3,
            max_rt_ns: word(field::MAX_RT_NS),
            threshold: f64::from_bits(word(field::THRESHOLD)),
        }
    }

    /// Whether a call counts as bad.
    #[inline(always)]
    pub const fn is_bad(&self, rt_ns: u64, is_error: bool) -> bool {
        rt_ns > self.max_rt_ns || (is_error && self.trip != trip::SLOW_RATIO)
    }

    /// Whether the breaker, if it is closed, stays so with this tally.
    pub fn stays_closed(&self, tally: BreakerTally) -> bool {
        stays_closed(self.opens(), self.min_requests, tally)
    }

    /// What opened it and its threshold, as whole numbers, see [`BreakerTrip::shown`].
    pub fn shown(&self, value: f64) -> (u32, u32) {
        self.opens().shown(value)
    }

    const fn opens(&self) -> BreakerTrip {
        match self.trip {
            trip::SLOW_RATIO => BreakerTrip::SlowRatio {
                max_rt_ns: self.max_rt_ns,
                ratio: self.threshold,
            },
            trip::ERROR_RATIO => BreakerTrip::ErrorRatio(self.threshold),
            _ => BreakerTrip::ErrorCount(self.threshold),
        }
    }
}
