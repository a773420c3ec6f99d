//! How a rule is now, one form for each kind.

use serde_json::{Value, json};
use tidegate_limits::breaker::tally::BreakerTally;
use tidegate_limits::quirks::Quirks;
use tidegate_limits::strict::RuleLimit;
use tidegate_limits::warm_up::WarmUp;
use tidegate_limits::window::{BucketLength, Window};
use tidegate_segment::board::{
    BoardRule as Line, FlowLimit, ParamLimit, RuleKind, Slot, WarmUpNumbers,
};
use tidegate_segment::ledger::RuleState;
use tidegate_segment::sync::Ordering;

use super::ResourceView;
use crate::rule::authority::Listing;
use crate::rule::flow::{Grade, LimitOrigin, Strategy};
use crate::rule::{Body, Flow};
use crate::tenant::directory::part_name;
use crate::tenant::rule_index::{IndexedRule, Part};

const NS_PER_MS: u64 = 1_000_000;

impl ResourceView<'_> {
    /// How a rule is; `line` is what the board has of it, where it is not plain.
    pub(super) fn now(&self, placed: &IndexedRule<'_>, line: Option<&Line>) -> Value {
        match &placed.rule.body {
            Body::Authority(rule) => {
                let list = match rule.listing {
                    Listing::Allow => "allow",
                    Listing::Deny => "deny",
                };
                json!({"list": list, "origins": rule.origins})
            }
            Body::System(_) => self.inbound(),
            Body::Flow(flow) => line.map_or_else(|| self.plain(flow), |line| self.flow(flow, line)),
            Body::Param(_) => line.map_or(Value::Null, |line| self.line(line)),
            Body::Degrade(rule) => {
                let mut now = line.map_or(Value::Null, |line| self.line(line));
                if let Value::Object(now) = &mut now {
                    let (grade, threshold) = rule.trip.told();
                    now.insert("grade".to_owned(), grade.into());
                    now.insert("threshold".to_owned(), threshold.into());
                }
                now
            }
        }
    }

    fn inbound(&self) -> Value {
        let tenant = self.tenant;
        let Some(node) = tenant.ledger().node(Slot::INBOUND.index) else {
            return Value::Null;
        };
        let (load, cpu) = tenant.board().samples();
        json!({
            "passed": node.window(self.now_ns).sum(),
            "inflight": tenant.seats().scope_counts(0).inflight,
            "average_rt_ms": node.average_rt_ms(self.now_ns),
            "load": load,
            "cpu": cpu,
        })
    }

    fn plain(&self, flow: &Flow) -> Value {
        let limit = flow.count.get();
        match flow.grade {
            Grade::Concurrency => json!({"inflight": self.counts.inflight, "limit": limit}),
            Grade::Qps { .. } => json!({"passed": self.passed(self.slot), "limit": limit}),
        }
    }

    fn passed(&self, slot: Slot) -> Option<u32> {
        let node = self.tenant.ledger().node(slot.index)?;
        Some(node.window(self.now_ns).sum())
    }

    /// The node that a flow rule looks at; the resource's own where that has none. A rule for each other
    /// origin looks at one node for each.
    fn subject(&self, flow: &Flow) -> Option<Slot> {
        let part = |part, name: &str| {
            let whole = part_name(self.resource, part, name);
            self.tenant.directory().find(&whole).or(Some(self.slot))
        };
        match (&flow.strategy, &flow.limit_origin) {
            (Strategy::Relate(other), _) => self.tenant.directory().find(other),
            (Strategy::Chain(context), _) => part(Part::Context, context),
            (Strategy::Direct, LimitOrigin::Name(origin)) => part(Part::Origin, origin),
            (Strategy::Direct, LimitOrigin::Default) => Some(self.slot),
            (Strategy::Direct, LimitOrigin::Other) | (Strategy::Nowhere, _) => None,
        }
    }

    fn flow(&self, flow: &Flow, line: &Line) -> Value {
        let RuleKind::Flow(compiled) = line.kind else {
            return Value::Null;
        };
        let Some(state) = self.tenant.ledger().state(line.state) else {
            return Value::Null;
        };
        if flow.strategy == Strategy::Nowhere {
            return Value::Null;
        }
        let Some(slot) = self.subject(flow) else {
            return json!({"each": "origin", "limit": flow.count.get()});
        };
        self.limit(&compiled.limit, slot, state, line.quirks)
    }

    fn limit(&self, limit: &FlowLimit, slot: Slot, state: RuleState, quirks: Quirks) -> Value {
        match *limit {
            FlowLimit::Concurrency(limit) => {
                let inflight = self.tenant.seats().node_counts(slot).inflight;
                json!({"inflight": inflight, "limit": limit})
            }
            FlowLimit::Qps(limit) => json!({"passed": self.passed(slot), "limit": limit}),
            FlowLimit::Window { limit, window_ns } => {
                let bucket = BucketLength::of_window(window_ns);
                let window =
                    bucket.map(|bucket| Window::at(word(state), bucket.epoch(self.now_ns)));
                let ms = window_ns / NS_PER_MS;
                json!({"passed": window.map(Window::sum), "limit": limit, "window_ms": ms})
            }
            FlowLimit::Strict { limit, window_ns } => {
                let strict = RuleLimit::new(limit, window_ns);
                let fits_after_ns =
                    strict.and_then(|strict| strict.fits_after_ns(word(state), self.now_ns, 1));
                let fits_in_ms = fits_after_ns.map(|ns| ns.div_ceil(NS_PER_MS));
                let ms = window_ns / NS_PER_MS;
                json!({"next_fits_in_ms": fits_in_ms, "limit": limit, "window_ms": ms})
            }
            FlowLimit::Pace { count, max_wait_ns } => self.queue(word(state), count, max_wait_ns),
            FlowLimit::WarmUp(numbers) => {
                let rate = warming(numbers, quirks).rate(word(state));
                json!({"passed": self.passed(slot), "limit": rate, "warm_limit": numbers.count})
            }
            FlowLimit::WarmUpPace {
                warm_up,
                max_wait_ns,
            } => {
                let rate = warming(warm_up, quirks).rate(word(state));
                let last = state.second().load(Ordering::Relaxed);
                self.queue(last, rate, max_wait_ns)
            }
        }
    }

    /// Pacing: how far the last turn that was given is ahead.
    fn queue(&self, last_ns: u64, rate: f64, max_wait_ns: u64) -> Value {
        let queued_ms = last_ns.saturating_sub(self.now_ns).div_ceil(NS_PER_MS);
        json!({"queued_ms": queued_ms, "limit_ms": max_wait_ns / NS_PER_MS, "rate": rate})
    }

    fn line(&self, line: &Line) -> Value {
        let Some(state) = self.tenant.ledger().state(line.state) else {
            return Value::Null;
        };
        match line.kind {
            RuleKind::Param(param) => {
                let quantity = match param.limit {
                    ParamLimit::Concurrency => "inflight",
                    ParamLimit::Bucket { .. }
                    | ParamLimit::Strict { .. }
                    | ParamLimit::Pace { .. } => "passed",
                };
                let items = param.items.length / 2;
                json!({"each": "value", "counts": quantity, "limit": param.count, "items": items})
            }
            RuleKind::Degrade {
                breaker,
                interval_ns,
            } => {
                let tally = state.second().load(Ordering::Relaxed);
                let tally = BreakerTally::at(tally, self.now_ns, interval_ns);
                let left_ns = breaker.left_ns(word(state), self.now_ns);
                let changes = state.changes();
                json!({
                    "breaker": breaker.state(word(state), self.now_ns).name(),
                    "left_ms": left_ns.div_ceil(NS_PER_MS),
                    "calls": tally.all(),
                    "bad": tally.bad().min(tally.all()),
                    "opened_by": breaker.trip.possible(state.opened_by()),
                    "opened_total": changes.open,
                    "closed_total": changes.closed,
                    "half_open_total": changes.half_open,
                })
            }
            RuleKind::Authority { .. } | RuleKind::Flow(_) => Value::Null,
        }
    }
}

fn word(state: RuleState) -> u64 {
    state.word().load(Ordering::Relaxed)
}

fn warming(numbers: WarmUpNumbers, quirks: Quirks) -> WarmUp {
    WarmUp::new(numbers.count, numbers.period_s, numbers.cold_factor, quirks)
}
