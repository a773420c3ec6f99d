//! The words of a rule record.

use core::num::NonZeroU64;

use tidegate_abi::decision::{Mode, RefusalKind};
use tidegate_abi::rule::{self as field, behavior, flag, origin, subject, trip};
use tidegate_limits::authority::OriginListMode;
use tidegate_limits::breaker::Breaker;
use tidegate_limits::breaker::trip::BreakerTrip;
use tidegate_limits::quirks::Quirks;

use super::{
    BoardRule, FlowLimit, FlowRule, OriginTest, ParamLimit, ParamRule, PoolSpan, RuleKind, Subject,
    WarmUpNumbers,
};
use crate::board::{halves, split};
use crate::sync::{Word, peek};

impl BoardRule {
    /// Reads a record; the caller checks that no writer was at it. `None` if it is none.
    #[inline]
    pub(in crate::board) fn load(line: &[Word; field::WORDS]) -> Option<Self> {
        // Relaxed: the generation around this read orders it, see `View::rule`.
        let head = peek(line, field::HEAD);
        let [kind, mode, flags, _zero, ..] = head.to_le_bytes();
        let reader = Fields { line, flags };
        Some(Self {
            number: split(head).1,
            mode: Mode::from_u8(mode)?,
            state: split(peek(line, field::STATE)).0,
            quirks: reader.quirks(),
            kind: reader.kind(RefusalKind::from_u8(kind)?)?,
        })
    }

    /// The words of the record.
    pub(in crate::board) fn words(&self) -> [u64; field::WORDS] {
        let mut words = Words([0; field::WORDS]);
        let mut flags = if self.quirks.wanted() {
            flag::QUIRKS
        } else {
            0
        };
        match self.kind {
            RuleKind::Authority { list, origins } => {
                flags |= if list == OriginListMode::Deny {
                    flag::DENY
                } else {
                    0
                };
                words.put(field::SPAN, origins.word());
            }
            RuleKind::Param(param) => words.put_param(param),
            RuleKind::Flow(flow) => words.put_flow(flow),
            RuleKind::Degrade {
                breaker,
                interval_ns,
            } => {
                words.put_breaker(breaker);
                words.put(field::degrade::INTERVAL_NS, interval_ns.get());
            }
        }
        let head = u32::from_le_bytes([self.refusal_kind() as u8, self.mode as u8, flags, 0]);
        words.put(field::HEAD, halves(head, self.number));
        words.put(field::STATE, u64::from(self.state));
        words.0
    }
}

impl PoolSpan {
    const fn word(self) -> u64 {
        halves(self.start, self.length)
    }
    const fn of(word: u64) -> Self {
        let (start, length) = split(word);
        Self { start, length }
    }
}

/// Reads the fields of a record.
#[derive(Clone, Copy)]
struct Fields<'a> {
    line: &'a [Word; field::WORDS],
    flags: u8,
}

impl Fields<'_> {
    #[inline]
    fn word(self, field: usize) -> u64 {
        peek(self.line, field)
    }
    #[inline]
    fn double(self, field: usize) -> f64 {
        f64::from_bits(self.word(field))
    }
    #[inline]
    fn low(self, field: usize) -> u32 {
        split(self.word(field)).0
    }
    #[inline]
    fn high(self, field: usize) -> u32 {
        split(self.word(field)).1
    }

    #[inline]
    const fn quirks(self) -> Quirks {
        if self.flags & flag::QUIRKS != 0 {
            Quirks::Sentinel
        } else {
            Quirks::None
        }
    }

    #[inline]
    fn kind(self, kind: RefusalKind) -> Option<RuleKind> {
        Some(match kind {
            RefusalKind::Authority => RuleKind::Authority {
                list: if self.flags & flag::DENY != 0 {
                    OriginListMode::Deny
                } else {
                    OriginListMode::Allow
                },
                origins: PoolSpan::of(self.word(field::SPAN)),
            },
            RefusalKind::Param => RuleKind::Param(self.param()?),
            RefusalKind::Flow => RuleKind::Flow(self.flow()?),
            RefusalKind::Degrade => RuleKind::Degrade {
                breaker: self.breaker()?,
                interval_ns: NonZeroU64::new(self.word(field::degrade::INTERVAL_NS))?,
            },
            RefusalKind::System => return None,
        })
    }

    #[inline]
    fn breaker(self) -> Option<Breaker> {
        let threshold = self.double(field::degrade::THRESHOLD);
        let trip = match self.high(field::BEHAVIOR) {
            trip::SLOW_RATIO => BreakerTrip::SlowRatio {
                max_rt_ns: self.word(field::degrade::MAX_RT_NS),
                ratio: threshold,
            },
            trip::ERROR_RATIO => BreakerTrip::ErrorRatio(threshold),
            trip::ERROR_COUNT => BreakerTrip::ErrorCount(threshold),
            _ => return None,
        };
        Some(Breaker {
            trip,
            min_requests: self.low(field::BEHAVIOR),
            recovery_ns: self.word(field::degrade::RECOVERY_NS),
            lease_ns: self.word(field::degrade::LEASE_NS),
            quirks: self.quirks(),
        })
    }

    fn flow(self) -> Option<FlowRule> {
        let origin = match self.low(field::flow::WHO) {
            origin::ANY => OriginTest::Any,
            origin::IS => OriginTest::Is(self.word(field::flow::ORIGIN)),
            origin::OTHER => OriginTest::Other(PoolSpan::of(self.word(field::SPAN))),
            _ => return None,
        };
        let reference = self.word(field::flow::REFERENCE);
        let subject = match self.high(field::flow::WHO) {
            subject::DIRECT => Subject::Direct,
            subject::RELATE => Subject::Relate(split(reference).0),
            subject::CHAIN => Subject::Chain(reference),
            _ => return None,
        };
        Some(FlowRule {
            origin,
            subject,
            limit: self.flow_limit()?,
        })
    }

    fn flow_limit(self) -> Option<FlowLimit> {
        let limit = self.low(field::LIMIT);
        let window_ns = self.word(field::flow::WINDOW_NS);
        let max_wait_ns = self.word(field::flow::MAX_WAIT_NS);
        Some(match self.low(field::BEHAVIOR) {
            behavior::CONCURRENCY => FlowLimit::Concurrency(limit),
            behavior::QPS => FlowLimit::Qps(limit),
            behavior::WINDOW => FlowLimit::Window { limit, window_ns },
            behavior::STRICT => FlowLimit::Strict { limit, window_ns },
            behavior::PACE => FlowLimit::Pace {
                count: self.double(field::flow::COUNT),
                max_wait_ns,
            },
            behavior::WARM_UP => FlowLimit::WarmUp(self.warm_up()),
            behavior::WARM_UP_PACE => FlowLimit::WarmUpPace {
                warm_up: self.warm_up(),
                max_wait_ns,
            },
            _ => return None,
        })
    }

    fn warm_up(self) -> WarmUpNumbers {
        WarmUpNumbers {
            count: self.double(field::flow::COUNT),
            period_s: self.low(field::flow::WARM_UP),
            cold_factor: self.high(field::flow::WARM_UP),
        }
    }

    fn param(self) -> Option<ParamRule> {
        let duration_s = self.low(field::param::DURATION);
        let extra = self.high(field::param::DURATION);
        let limit = match self.low(field::BEHAVIOR) {
            behavior::BUCKET => ParamLimit::Bucket {
                burst: extra,
                duration_s,
            },
            behavior::STRICT => ParamLimit::Strict { duration_s },
            behavior::PACE => ParamLimit::Pace {
                duration_s,
                max_wait_ms: extra,
            },
            behavior::CONCURRENCY => ParamLimit::Concurrency,
            _ => return None,
        };
        Some(ParamRule {
            index: self.high(field::LIMIT).cast_signed(),
            limit,
            count: self.low(field::LIMIT),
            items: PoolSpan::of(self.word(field::SPAN)),
            sets: PoolSpan::of(self.word(field::param::SETS)),
        })
    }
}

/// A record under construction.
struct Words([u64; field::WORDS]);

impl Words {
    fn put(&mut self, field: usize, value: u64) {
        if let Some(word) = self.0.get_mut(field) {
            *word = value;
        }
    }

    fn put_breaker(&mut self, breaker: Breaker) {
        let (kind, threshold) = match breaker.trip {
            BreakerTrip::SlowRatio { max_rt_ns, ratio } => {
                self.put(field::degrade::MAX_RT_NS, max_rt_ns);
                (trip::SLOW_RATIO, ratio)
            }
            BreakerTrip::ErrorRatio(ratio) => (trip::ERROR_RATIO, ratio),
            BreakerTrip::ErrorCount(count) => (trip::ERROR_COUNT, count),
        };
        self.put(field::BEHAVIOR, halves(breaker.min_requests, kind));
        self.put(field::degrade::THRESHOLD, threshold.to_bits());
        self.put(field::degrade::RECOVERY_NS, breaker.recovery_ns);
        self.put(field::degrade::LEASE_NS, breaker.lease_ns);
    }

    fn put_flow(&mut self, flow: FlowRule) {
        let who = match flow.origin {
            OriginTest::Any => origin::ANY,
            OriginTest::Is(hash) => {
                self.put(field::flow::ORIGIN, hash);
                origin::IS
            }
            OriginTest::Other(named) => {
                self.put(field::SPAN, named.word());
                origin::OTHER
            }
        };
        let (whom, reference) = match flow.subject {
            Subject::Direct => (subject::DIRECT, 0),
            Subject::Relate(slot) => (subject::RELATE, u64::from(slot)),
            Subject::Chain(context) => (subject::CHAIN, context),
        };
        self.put(field::flow::WHO, halves(who, whom));
        self.put(field::flow::REFERENCE, reference);
        let behavior = self.put_flow_limit(flow.limit);
        self.put(field::BEHAVIOR, u64::from(behavior));
    }

    fn put_flow_limit(&mut self, limit: FlowLimit) -> u32 {
        match limit {
            FlowLimit::Concurrency(limit) => {
                self.put(field::LIMIT, u64::from(limit));
                behavior::CONCURRENCY
            }
            FlowLimit::Qps(limit) => {
                self.put(field::LIMIT, u64::from(limit));
                behavior::QPS
            }
            FlowLimit::Window { limit, window_ns } => {
                self.put(field::LIMIT, u64::from(limit));
                self.put(field::flow::WINDOW_NS, window_ns);
                behavior::WINDOW
            }
            FlowLimit::Strict { limit, window_ns } => {
                self.put(field::LIMIT, u64::from(limit));
                self.put(field::flow::WINDOW_NS, window_ns);
                behavior::STRICT
            }
            FlowLimit::Pace { count, max_wait_ns } => {
                self.put(field::flow::COUNT, count.to_bits());
                self.put(field::flow::MAX_WAIT_NS, max_wait_ns);
                behavior::PACE
            }
            FlowLimit::WarmUp(warm_up) => {
                self.put_warm_up(warm_up);
                behavior::WARM_UP
            }
            FlowLimit::WarmUpPace {
                warm_up,
                max_wait_ns,
            } => {
                self.put_warm_up(warm_up);
                self.put(field::flow::MAX_WAIT_NS, max_wait_ns);
                behavior::WARM_UP_PACE
            }
        }
    }

    fn put_warm_up(&mut self, warm_up: WarmUpNumbers) {
        self.put(field::flow::COUNT, warm_up.count.to_bits());
        self.put(
            field::flow::WARM_UP,
            halves(warm_up.period_s, warm_up.cold_factor),
        );
    }

    fn put_param(&mut self, param: ParamRule) {
        let (behavior, duration_s, extra) = match param.limit {
            ParamLimit::Bucket { burst, duration_s } => (behavior::BUCKET, duration_s, burst),
            ParamLimit::Strict { duration_s } => (behavior::STRICT, duration_s, 0),
            ParamLimit::Pace {
                duration_s,
                max_wait_ms,
            } => (behavior::PACE, duration_s, max_wait_ms),
            ParamLimit::Concurrency => (behavior::CONCURRENCY, 0, 0),
        };
        self.put(field::BEHAVIOR, u64::from(behavior));
        self.put(field::param::DURATION, halves(duration_s, extra));
        self.put(
            field::LIMIT,
            halves(param.count, param.index.cast_unsigned()),
        );
        self.put(field::SPAN, param.items.word());
        self.put(field::param::SETS, param.sets.word());
    }
}
