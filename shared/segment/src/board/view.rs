//! One rule set, seen whole.

use tidegate_abi::board::{Needs, header, record, short, system};
use tidegate_abi::rule;
use tidegate_limits::quirks::Quirks;
use tidegate_limits::system::SystemThresholds;

use super::read::TRIES;
use super::{Board, BoardRule, Head, PoolSpan, ResourceRecord, ShortBreaker};
use crate::sync::{Ordering, Word, fence, peek};

/// Words of a copy of the system rules.
const WORDS: usize = 8;

/// The rule set that was in force when the view was taken.
///
/// It stays whole while the agent publishes the next set; only when the agent begins on the one
/// after that (at least 10 ms later) is its copy written. Each read says so: it returns `None` then.
#[derive(Debug, Clone, Copy)]
pub struct View {
    header: &'static [Word],
    generation: u64,
    records: &'static [[Word; record::WORDS]],
    rules: &'static [[Word; rule::WORDS]],
    pool: &'static [Word],
}

/// The rules of a record, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleNames {
    /// What is in force.
    pub needs: Needs,
    /// Most passes in a window.
    pub qps_limit: u32,
    /// Number of the QPS rule.
    pub qps_rule: u32,
    /// Number of the concurrency rule; in a short record, of the breaker.
    pub other_rule: u32,
    /// The QPS rule's line of state, in a short record.
    pub qps_state: u32,
    /// The breaker's line of state, in a short record.
    pub breaker_state: u32,
}

/// The system rules of a set, merged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SystemRules {
    /// The marks.
    pub marks: SystemThresholds,
    /// Number of the rule, for messages.
    pub rule: u32,
    /// Whose behaviour they have where Sentinel has a known defect.
    pub quirks: Quirks,
    /// The words of the rules that only observe, in the pool, see [`View::observed_system`].
    pub observed: PoolSpan,
}

impl Board {
    /// The rule set in force now.
    #[inline(always)]
    pub fn view(&self) -> View {
        // Acquire: pairs with the Release in `RuleWriter::publish`; the copy it names is whole.
        let generation = self.rules_generation();
        let (records, rules, pool) = self.copy(generation);
        View {
            header: self.header(),
            generation,
            records,
            rules,
            pool,
        }
    }

    /// The rule set in force, and the record of a slot in it: what a decision looks at is all of one
    /// set, also where the next one is published in the middle of it.
    #[inline(always)]
    pub(crate) fn view_of(&self, slot: u32) -> Option<(View, ResourceRecord)> {
        (0..TRIES).find_map(|_try| {
            let view = self.view();
            Some((view, view.record(slot)?))
        })
    }
}

impl View {
    /// Generation of the set.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// The record of a slot; `None` if there is no such slot or the set is no longer whole.
    #[inline(always)]
    pub fn record(&self, slot: u32) -> Option<ResourceRecord> {
        let record = ResourceRecord::load(self.records.get(usize::try_from(slot).ok()?)?);
        self.is_whole().then_some(record)
    }

    /// A rule of the table.
    #[inline(always)]
    pub fn rule(&self, index: u32) -> Option<BoardRule> {
        let rule = BoardRule::load(self.rules.get(usize::try_from(index).ok()?)?)?;
        self.is_whole().then_some(rule)
    }

    /// Whether a word is among those of a run of the pool.
    pub fn contains(&self, span: PoolSpan, wanted: u64) -> bool {
        self.run(span)
            .iter()
            .any(|word| word.load(Ordering::Relaxed) == wanted)
    }

    /// Looks a key up in a run of (key, value) pairs; gives the pair's number and value.
    pub fn find(&self, span: PoolSpan, key: u64) -> Option<(u32, u64)> {
        let (pairs, _odd) = self.run(span).as_chunks::<2>();
        (0..).zip(pairs).find_map(|(number, [held, value])| {
            let found = held.load(Ordering::Relaxed) == key;
            found.then(|| (number, value.load(Ordering::Relaxed)))
        })
    }

    /// The words of a run of the pool; `None` if the set is no longer whole.
    pub fn words_of(&self, span: PoolSpan) -> Option<Vec<u64>> {
        let words = self.run(span).iter();
        let words = words.map(|word| word.load(Ordering::Relaxed)).collect();
        self.is_whole().then_some(words)
    }

    fn run(&self, span: PoolSpan) -> &'static [Word] {
        let start = usize::try_from(span.start).unwrap_or(usize::MAX);
        let length = usize::try_from(span.length).unwrap_or(0);
        self.pool
            .get(start..start.saturating_add(length))
            .unwrap_or(&[])
    }

    /// The system rules, if any are set.
    pub fn system(&self) -> Option<SystemRules> {
        let [even, odd] = header::SYSTEM_SETS;
        let start = if self.generation & 1 == 0 { even } else { odd };
        let words = self.header.get(start..)?.first_chunk()?;
        let rules = SystemRules::load(words);
        let any = rules.marks != SystemThresholds::default() || rules.observed.length > 0;
        (any && self.is_whole()).then_some(rules)
    }

    /// The system rules that only observe.
    pub fn observed_system(&self, system: &SystemRules) -> Option<SystemRules> {
        let rules = SystemRules::load(self.run(system.observed).first_chunk()?);
        self.is_whole().then_some(rules)
    }

    /// Whether no writer has begun on this copy.
    #[inline(always)]
    pub fn is_whole(&self) -> bool {
        is_whole(self.header, self.generation)
    }
}

/// Whether no writer has begun on the copy of a generation.
#[inline(always)]
fn is_whole(header: &[Word], generation: u64) -> bool {
    // Acquire fence: pairs with the Release fence with which a writer begins on a copy, so that
    // whoever read a word of a newer set sees here that it was begun.
    fence(Ordering::Acquire);
    peek(header, header::RULES_WRITING).wrapping_sub(generation) <= 1
}

impl Board {
    /// What `load` reads of the record of a slot in the set in force; `None` if there is no such slot or
    /// the set did not stay whole.
    #[inline(always)]
    fn read_record<T>(
        &self,
        slot: u32,
        load: impl FnOnce(&[Word; record::WORDS]) -> T,
    ) -> Option<T> {
        // Acquire: pairs with the Release in `RuleWriter::publish`; the copy it names is whole.
        let generation = self.rules_generation();
        let records = self.records(generation)?;
        let read = load(records.get(usize::try_from(slot).ok()?)?);
        is_whole(self.header(), generation).then_some(read)
    }

    /// What the express way of a decision needs.
    #[inline(always)]
    pub fn head(&self, slot: u32) -> Option<Head> {
        self.read_record(slot, Head::load)
    }

    /// The same with limit and number of the plain concurrency rule, where there is one.
    #[inline(always)]
    pub fn close_look(&self, slot: u32) -> Option<(Head, Option<(u32, u32)>)> {
        self.read_record(slot, |line| {
            let head = Head::load(line);
            let rule = head.needs.any(Needs::CONCURRENCY).then(|| {
                let limit = super::split(peek(line, record::CONCURRENCY_LIMIT)).0;
                (limit, super::split(peek(line, record::RULES)).1)
            });
            (head, rule)
        })
    }

    /// What a refusal by a slot's record says of the rules; `None` as for the head.
    #[inline(always)]
    pub fn names(&self, slot: u32) -> Option<RuleNames> {
        self.read_record(slot, RuleNames::load)
    }

    /// The same with the breaker of a short record.
    #[inline(always)]
    pub fn short_names(&self, slot: u32) -> Option<(RuleNames, ShortBreaker)> {
        let (names, breaker) = self.read_record(slot, |line| {
            (RuleNames::load(line), ShortBreaker::load(line))
        })?;
        names.needs.any(Needs::SHORT).then_some((names, breaker))
    }

    /// What the end of a request takes of the breaker in a short record; `None` also if the record is
    /// not short (any more).
    #[inline(always)]
    pub fn short_breaker(&self, slot: u32) -> Option<ShortBreaker> {
        let (needs, breaker) =
            self.read_record(slot, |line| (Head::needs(line), ShortBreaker::load(line)))?;
        needs.any(Needs::SHORT).then_some(breaker)
    }
}

impl RuleNames {
    #[inline(always)]
    fn load(line: &[Word; record::WORDS]) -> Self {
        let (qps_rule, other_rule) = super::split(peek(line, record::RULES));
        let head = Head::load(line);
        Self {
            needs: head.needs,
            qps_limit: head.qps_limit,
            qps_rule,
            other_rule,
            qps_state: super::split(peek(line, short::QPS_STATE)).0,
            breaker_state: head.breaker_state,
        }
    }
}

impl SystemRules {
    fn load(words: &[Word; WORDS]) -> Self {
        let word = |field: usize| peek(words, field);
        let set = word(system::SET);
        let [qps, concurrency, average_rt_ms, load, cpu] = system::MARKS;
        let mark =
            |bit: u32, field: usize| (set >> bit & 1 != 0).then(|| f64::from_bits(word(field)));
        let (start, length) = super::split(word(system::OBSERVED));
        Self {
            marks: SystemThresholds {
                qps: mark(0, qps),
                concurrency: mark(1, concurrency),
                average_rt_ms: mark(2, average_rt_ms),
                load: mark(3, load),
                cpu: mark(4, cpu),
            },
            rule: super::split(word(system::RULE)).0,
            quirks: if set >> 8 & 1 != 0 {
                Quirks::Sentinel
            } else {
                Quirks::None
            },
            observed: PoolSpan { start, length },
        }
    }

    /// The words of a copy.
    pub fn words(&self) -> [u64; WORDS] {
        let SystemThresholds {
            qps,
            concurrency,
            average_rt_ms,
            load,
            cpu,
        } = self.marks;
        let marks = [qps, concurrency, average_rt_ms, load, cpu];
        let mut words = [0; WORDS];
        let mut put = |field: usize, value: u64| {
            if let Some(word) = words.get_mut(field) {
                *word = value;
            }
        };
        let mut set = if self.quirks.wanted() { 1 << 8 } else { 0 };
        for ((bit, mark), field) in (0_u32..).zip(marks).zip(system::MARKS) {
            if let Some(mark) = mark {
                set |= 1 << bit;
                put(field, mark.to_bits());
            }
        }
        put(system::SET, set);
        put(system::RULE, u64::from(self.rule));
        let PoolSpan { start, length } = self.observed;
        put(system::OBSERVED, super::halves(start, length));
        words
    }
}
