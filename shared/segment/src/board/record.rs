//! A rule record: what the decision on one resource needs, in one cache line.

use tidegate_abi::board::{Needs, record as field, short};

use super::short::Short;
use super::{BoardRule, halves, split};
use crate::sync::{Ordering, Word};

/// Where a resource is: its slot and the generation of the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot {
    /// Number of the slot.
    pub index: u32,
    /// Generation; a slot that is given to another resource gets a new one.
    pub generation: u16,
}

impl Slot {
    /// The slot whose node counts all inbound requests together, for system rules.
    pub const INBOUND: Self = Self {
        index: 1,
        generation: 1,
    };
    /// The slot that resources share for which there is no room.
    pub const OVERFLOW: Self = Self {
        index: 0,
        generation: 1,
    };
}

/// What a decision on a resource needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResourceRecord {
    /// Which of the rest is in force.
    pub needs: Needs,
    /// Generation of the slot.
    pub generation: u16,
    /// First of the resource's rules in the table.
    pub rules_first: u32,
    /// Number of its rules in the table.
    pub rules: u32,
    /// Most passes in a window.
    pub qps_limit: u32,
    /// The rule with that limit.
    pub qps_rule: u32,
    /// Most requests in flight.
    pub concurrency_limit: u32,
    /// The rule with that limit.
    pub concurrency_rule: u32,
    /// Most passes in a window, for the rule that only observes.
    pub observed_qps_limit: u32,
    /// The rule with that limit.
    pub observed_qps_rule: u32,
    /// Most requests in flight, for the rule that only observes.
    pub observed_concurrency_limit: u32,
    /// The rule with that limit.
    pub observed_concurrency_rule: u32,
}

/// The part of a record that the express way of a decision reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// What is in force.
    pub needs: Needs,
    /// Generation of the slot.
    pub generation: u16,
    /// Most passes in a window.
    pub qps_limit: u32,
    /// The breaker's line of state, in a short record.
    pub breaker_state: u32,
}

impl Head {
    /// Reads what is in force alone; as for the whole.
    #[inline(always)]
    pub(super) fn needs(line: &[Word; field::WORDS]) -> Needs {
        Needs(split(line[field::HEAD].load(Ordering::Relaxed)).0)
    }

    /// Reads the words of a record that it takes; as for the whole.
    #[inline(always)]
    pub(super) fn load(line: &[Word; field::WORDS]) -> Self {
        let [head, qps, ..] = line;
        let (needs, generation) = split(head.load(Ordering::Relaxed));
        Self {
            needs: Needs(needs),
            generation: (generation & 0xffff) as u16,
            qps_limit: split(qps.load(Ordering::Relaxed)).0,
            breaker_state: split(line[short::BREAKER].load(Ordering::Relaxed)).0,
        }
    }
}

impl ResourceRecord {
    /// Reads the words of a record one by one; the caller checks that no writer was at them.
    #[inline(always)]
    pub(super) fn load(line: &[Word; field::WORDS]) -> Self {
        // Relaxed: the generation around this read orders it, see `Board::record`.
        let [
            head,
            qps,
            concurrency,
            rule_numbers,
            observed_qps,
            observed_concurrency,
            observed_rules,
            _zero,
        ] = line;
        let (needs, generation) = split(head.load(Ordering::Relaxed));
        let (qps_rule, concurrency_rule) = split(rule_numbers.load(Ordering::Relaxed));
        let (qps_limit, rules_first) = split(qps.load(Ordering::Relaxed));
        let (concurrency_limit, rules) = split(concurrency.load(Ordering::Relaxed));
        let mut record = Self {
            needs: Needs(needs),
            generation: (generation & 0xffff) as u16,
            rules_first,
            rules,
            qps_limit,
            qps_rule,
            concurrency_limit,
            concurrency_rule,
            ..Self::default()
        };
        if record
            .needs
            .any(Needs::OBSERVED_QPS | Needs::OBSERVED_CONCURRENCY)
        {
            let rules = split(observed_rules.load(Ordering::Relaxed));
            (record.observed_qps_rule, record.observed_concurrency_rule) = rules;
            record.observed_qps_limit = split(observed_qps.load(Ordering::Relaxed)).0;
            record.observed_concurrency_limit =
                split(observed_concurrency.load(Ordering::Relaxed)).0;
        }
        record
    }

    /// The words of a record whose rules in the table are these.
    pub(super) fn words_with(&self, rules: &[BoardRule]) -> [u64; field::WORDS] {
        let plain = self.words();
        match Short::of(self, rules) {
            Some(short) => short.words(plain),
            None => plain,
        }
    }

    /// The words of a record.
    fn words(&self) -> [u64; field::WORDS] {
        [
            halves(self.needs.0, u32::from(self.generation)),
            halves(self.qps_limit, self.rules_first),
            halves(self.concurrency_limit, self.rules),
            halves(self.qps_rule, self.concurrency_rule),
            u64::from(self.observed_qps_limit),
            u64::from(self.observed_concurrency_limit),
            halves(self.observed_qps_rule, self.observed_concurrency_rule),
            0,
        ]
    }
}
