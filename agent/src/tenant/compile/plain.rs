//! The short way: a record that holds all there is to a resource with plain limits.
//!
//! A record has one limit of passes a second and one in flight, for all callers. A rule that fits is a
//! [`Limit`]; a rule that paces, warms up or looks at origins, contexts or other resources is not.

use std::time::Duration;

use tidegate_abi::board::Needs;
use tidegate_abi::decision::Mode;
use tidegate_limits::window::COUNT_MAX;
use tidegate_segment::board::ResourceRecord;

use crate::rule::flow::{Behavior, Flow, Grade, LimitOrigin, Strategy};
use crate::rule::{Body, Rule};

/// The window of a node's passes.
pub(super) const SECOND: Duration = Duration::from_secs(1);

/// What a plain rule limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Passes in a window of one second.
    Qps,
    /// Requests in flight.
    Concurrency,
}

/// A plain rule: one number that a node's record can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// What is limited.
    pub quantity: Quantity,
    /// Whether it refuses or observes.
    pub mode: Mode,
    /// The most that is allowed.
    pub most: u32,
    /// Number of the rule in its set.
    pub rule: u32,
}

impl Limit {
    /// The plain limit of a rule; `None` if a record cannot hold the rule.
    pub fn of(rule: &Rule, number: u32) -> Option<Self> {
        let Body::Flow(flow) = &rule.body else {
            return None;
        };
        let quantity = quantity(flow)?;
        Some(Self {
            quantity,
            mode: rule.mode,
            most: flow.count.whole(),
            rule: number,
        })
    }
}

fn quantity(flow: &Flow) -> Option<Quantity> {
    let direct = flow.limit_origin == LimitOrigin::Default && flow.strategy == Strategy::Direct;
    match flow.grade {
        Grade::Concurrency => Some(Quantity::Concurrency),
        Grade::Qps {
            window: SECOND,
            strict: false,
            behavior: Behavior::Reject,
        } => Some(Quantity::Qps),
        Grade::Qps { .. } => None,
    }
    .filter(|_quantity| direct)
}

/// The record that holds the least limit of each quantity, in force and observed.
///
/// A limit of [`COUNT_MAX`] or more does not limit and is left out. Of equal limits the first rule
/// is named. The slot's generation is filled in by the writer.
pub fn record_of(limits: impl IntoIterator<Item = Limit>) -> ResourceRecord {
    let mut record = ResourceRecord::default();
    for limit in limits {
        if limit.most < COUNT_MAX {
            take(&mut record, limit);
        }
    }
    record
}

fn take(record: &mut ResourceRecord, limit: Limit) {
    let (need, most, rule) = match (limit.quantity, limit.mode) {
        (_, Mode::Off) => return,
        (Quantity::Qps, Mode::Enforce) => (Needs::QPS, &mut record.qps_limit, &mut record.qps_rule),
        (Quantity::Concurrency, Mode::Enforce) => (
            Needs::CONCURRENCY,
            &mut record.concurrency_limit,
            &mut record.concurrency_rule,
        ),
        (Quantity::Qps, Mode::Observe) => (
            Needs::OBSERVED_QPS,
            &mut record.observed_qps_limit,
            &mut record.observed_qps_rule,
        ),
        (Quantity::Concurrency, Mode::Observe) => (
            Needs::OBSERVED_CONCURRENCY,
            &mut record.observed_concurrency_limit,
            &mut record.observed_concurrency_rule,
        ),
    };
    if !record.needs.any(need) || limit.most < *most {
        (*most, *rule) = (limit.most, limit.rule);
        record.needs.0 |= need;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(quantity: Quantity, mode: Mode, most: u32, rule: u32) -> Limit {
        Limit {
            quantity,
            mode,
            most,
            rule,
        }
    }

    #[test]
    fn the_least_limit_of_each_quantity_is_in_the_record() {
        let record = record_of([
            limit(Quantity::Qps, Mode::Enforce, 100, 0),
            limit(Quantity::Qps, Mode::Enforce, 50, 1),
            limit(Quantity::Qps, Mode::Enforce, 50, 2),
            limit(Quantity::Concurrency, Mode::Enforce, 7, 3),
            limit(Quantity::Qps, Mode::Observe, 10, 4),
            limit(Quantity::Concurrency, Mode::Observe, 0, 5),
        ]);
        let needs =
            Needs::QPS | Needs::CONCURRENCY | Needs::OBSERVED_QPS | Needs::OBSERVED_CONCURRENCY;
        assert_eq!(record.needs, Needs(needs));
        assert_eq!((record.qps_limit, record.qps_rule), (50, 1));
        assert_eq!((record.concurrency_limit, record.concurrency_rule), (7, 3));
        let observed_qps = (record.observed_qps_limit, record.observed_qps_rule);
        assert_eq!(observed_qps, (10, 4));
        let observed = (
            record.observed_concurrency_limit,
            record.observed_concurrency_rule,
        );
        assert_eq!(observed, (0, 5));
    }

    #[test]
    fn rules_that_are_off_or_do_not_limit_leave_no_trace() {
        let record = record_of([
            limit(Quantity::Qps, Mode::Off, 1, 0),
            limit(Quantity::Qps, Mode::Enforce, COUNT_MAX, 1),
            limit(Quantity::Concurrency, Mode::Observe, u32::MAX, 2),
        ]);
        assert_eq!(record, ResourceRecord::default());
    }

    #[test]
    fn a_limit_of_zero_refuses_everything() {
        let record = record_of([limit(Quantity::Qps, Mode::Enforce, 0, 9)]);
        assert_eq!(record.needs, Needs(Needs::QPS));
        assert_eq!((record.qps_limit, record.qps_rule), (0, 9));
    }
}
