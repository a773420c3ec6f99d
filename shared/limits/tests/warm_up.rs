//! Warm-up against a plain model with the formulas as Sentinel has them, in doubles and whole ms.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "the model casts as Java does, and its numbers are small"
)]

use proptest::prelude::*;
use tidegate_limits::quirks::Quirks;
use tidegate_limits::warm_up::WarmUp;
use tidegate_limits::window::{BucketLength, Window};

const MS: u64 = 1_000_000;
const START_MS: u64 = 1_699_920_000_000;

struct Model {
    count: f64,
    warning: i64,
    most: i64,
    slope: f64,
    stored: i64,
    last_fill_ms: u64,
}

impl Model {
    fn new(count: f64, period_s: u32) -> Self {
        let period = f64::from(period_s);
        let warning = (period * count) as i64 / 2;
        let most = warning + (2.0 * period * count / 4.0) as i64;
        Self {
            count,
            warning,
            most,
            slope: 2.0 / count / (most - warning) as f64,
            stored: 0,
            last_fill_ms: 0,
        }
    }

    fn admits(&mut self, now_ms: u64, passed: u32, previous: u32, n: u32) -> bool {
        let second = now_ms - now_ms % 1_000;
        if second > self.last_fill_ms {
            let mut stored = self.stored;
            let idle = i64::from(previous) < self.count as i64 / 3;
            if stored < self.warning || (stored > self.warning && idle) {
                let gone = (second - self.last_fill_ms) as f64;
                stored = (stored as f64 + gone * self.count / 1_000.0) as i64;
            }
            self.stored = (stored.min(self.most) - i64::from(previous)).max(0);
            self.last_fill_ms = second;
        }
        let wanted = f64::from(passed + n);
        if self.stored < self.warning {
            return wanted <= self.count;
        }
        let above = (self.stored - self.warning) as f64;
        wanted <= (1.0 / (above * self.slope + 1.0 / self.count)).next_up()
    }
}

/// The node's two windows and the rule's word.
#[derive(Default)]
struct Node {
    pass: u64,
    minute: u64,
    warm: u64,
}

impl Node {
    /// Asks, and counts a pass; gives the limit's answer and what the model needs.
    fn ask(&mut self, rule: &WarmUp, at_ms: u64, n: u32) -> (bool, u32, u32) {
        let now_ns = at_ms * MS;
        let pass = Window::at(self.pass, BucketLength::HALF_SECOND.epoch(now_ns));
        let minute = Window::at(self.minute, BucketLength::SECOND.epoch(now_ns));
        self.warm = rule.fill(self.warm, now_ns, minute.previous());
        let limit = rule.limit(self.warm, pass.sum(), n);
        let admitted = limit.and_then(|limit| pass.try_add(n, limit));
        if let Some(next) = admitted {
            self.pass = next.word();
            self.minute = minute.add(n).word();
        }
        (admitted.is_some(), pass.sum(), minute.previous())
    }
}

/// Passes of each second when one is offered every `step_ms`.
fn passes_by_second(rule: &WarmUp, step_ms: usize, seconds: u64) -> Vec<u32> {
    let mut node = Node::default();
    let mut second = |second: u64| {
        let times = (second * 1_000..(second + 1) * 1_000).step_by(step_ms);
        times
            .map(|at_ms| u32::from(node.ask(rule, START_MS + at_ms, 1).0))
            .sum()
    };
    (0..seconds).map(&mut second).collect()
}

#[test]
fn a_cold_node_rises_to_its_threshold() {
    let rule = WarmUp::new(30.0, 5, 3, Quirks::None);
    let passes = passes_by_second(&rule, 16, 9);
    assert_eq!(passes[..2], [10, 10]);
    assert!(passes.is_sorted(), "{passes:?}");
    assert_eq!(passes[7..], [30, 30]);
}

#[test]
fn a_small_threshold_warms_except_in_sentinel() {
    for count in [1, 2] {
        let sentinel = WarmUp::new(f64::from(count), 10, 3, Quirks::Sentinel);
        assert_eq!(passes_by_second(&sentinel, 100, 30).iter().sum::<u32>(), 0);
        let fixed = passes_by_second(&WarmUp::new(f64::from(count), 10, 3, Quirks::None), 100, 60);
        assert_eq!(fixed[..3], [1, 1, 1]);
        assert_eq!(fixed[59], count);
    }
    // Requests of two at a threshold of two are not shut out either.
    let rule = WarmUp::new(2.0, 10, 3, Quirks::None);
    assert_eq!(rule.limit(rule.fill(0, START_MS * MS, 0), 0, 2), Some(2));
    assert_eq!(rule.limit(rule.fill(0, START_MS * MS, 0), 1, 2), Some(1));
}

#[test]
fn a_bucket_without_slope_is_plain_except_in_sentinel() {
    let sentinel = WarmUp::new(1.0, 1, 3, Quirks::Sentinel);
    assert_eq!(
        sentinel.limit(sentinel.fill(0, START_MS * MS, 0), 0, 0),
        None
    );
    let fixed = WarmUp::new(1.0, 1, 3, Quirks::None);
    assert_eq!(fixed.limit(fixed.fill(0, START_MS * MS, 0), 0, 1), Some(1));
}

#[test]
fn a_bucket_that_was_brought_over_is_as_cold_as_it_was() {
    let rule = |count: f64| WarmUp::new(count, 10, 3, Quirks::None);
    let cold = |rule: &WarmUp| rule.fill(0, START_MS * MS, 0);
    for (before, after) in [(10.0, 1_000.0), (1_000.0, 10.0), (30.0, 30.0)] {
        let (before, after) = (rule(before), rule(after));
        let carried = after.carry(cold(&before), &before);
        assert_eq!(carried, cold(&after), "cold as new");
        // Drained to less than warm within its first seconds.
        let warm = before.fill(cold(&before), START_MS * MS + 1_000 * MS, 1_000_000);
        let rate = after.rate(after.carry(warm, &before));
        let warmest = after.rate(warm & !0xffff_ffff);
        assert_eq!(rate.to_bits(), warmest.to_bits(), "warm stays warm");
    }
    // Nothing was ever asked of it.
    assert_eq!(rule(9.0).carry(0, &rule(3.0)), 0);
    // A bucket without a slope knew no cold.
    let flat = WarmUp::new(1.0, 1, 3, Quirks::None);
    assert_eq!(rule(30.0).carry(cold(&flat), &flat), cold(&rule(30.0)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn equals_the_model(
        calls in prop::collection::vec((0_u64..120, 0_u32..3, prop::bool::weighted(0.02)), 1..600),
        small in 0.0_f64..4.0,
        count in prop_oneof![3.0_f64..5.0, 5.0_f64..60.0, Just(30.0)],
        period_s in 1_u32..12,
        quirks in prop_oneof![Just(Quirks::Sentinel), Just(Quirks::None)],
    ) {
        // Without quirks a cold bucket admits where Sentinel's never does, so there only from 3 on.
        let count = if quirks == Quirks::Sentinel && small < 2.0 { small * 2.0 } else { count };
        let rule = WarmUp::new(count, period_s, 3, quirks);
        let mut model = Model::new(count, period_s);
        let (mut node, mut now_ms) = (Node::default(), START_MS);
        for (step_ms, n, pause) in calls {
            now_ms += if pause { step_ms * 200 } else { step_ms / 2 };
            let (admitted, passed, previous) = node.ask(&rule, now_ms, n);
            prop_assert_eq!(admitted, model.admits(now_ms, passed, previous, n), "at {}", now_ms);
        }
    }

    #[test]
    fn a_changed_threshold_is_never_exceeded_and_never_colder_than_cold(
        stored: u32,
        counts in (0.5_f64..5_000.0, 0.5_f64..5_000.0),
        period_s in 1_u32..60,
    ) {
        let rule = |count| WarmUp::new(count, period_s, 3, Quirks::None);
        let (before, after) = (rule(counts.0), rule(counts.1));
        let second = (START_MS / 1_000 + 1) << 32;
        // Brought over, and left as it is: what a request between the new rule and that sees.
        let seen = second | u64::from(stored);
        for word in [seen, after.carry(seen, &before)] {
            let rate = after.rate(word);
            prop_assert!(rate <= counts.1.next_up() && rate >= counts.1 / 3.0 * 0.9, "{}", rate);
        }
        // The colder the one, the colder the other.
        let warmer = second | u64::from(stored / 2);
        prop_assert!(after.carry(warmer, &before) <= after.carry(seen, &before));
    }

    #[test]
    fn any_word_and_number_is_taken(
        word: u64,
        now_ns: u64,
        count: f64,
        period_s: u32,
        factor: u32,
        passed: u32,
    ) {
        for quirks in [Quirks::None, Quirks::Sentinel] {
            let rule = WarmUp::new(count, period_s, factor, quirks);
            let next = rule.fill(word, now_ns, passed);
            let _limit = rule.limit(next, passed, passed);
            let _other = rule.carry(word, &WarmUp::new(f64::from(passed), factor, period_s, quirks));
        }
    }
}
