//! The state of one parameter value against plain models in ms.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the model casts as Java does, and its numbers are small"
)]

use proptest::prelude::*;
use tidegate_limits::param::STATE_MAX;
use tidegate_limits::param::token_bucket::{TOKENS_MAX, TokenBucket};
use tidegate_limits::param::value_pacing::ValuePacing;
use tidegate_limits::quirks::Quirks;
use tidegate_limits::verdict::Verdict;

const MS: u64 = 1_000_000;
const START_MS: u64 = 1_699_920_000_000;

/// A bucket as the rules describe it, with signed numbers.
struct Model {
    limit: i64,
    capacity: i64,
    duration_ms: i64,
    /// Tokens and time of the last refill.
    held: Option<(i64, i64)>,
}

impl Model {
    fn take(&mut self, now_ms: i64, n: i64) -> bool {
        if self.limit == 0 || n > self.capacity {
            return false;
        }
        let Some((rest, stamp)) = self.held else {
            self.held = Some((self.capacity - n, now_ms));
            return true;
        };
        let gone = now_ms - stamp;
        let (left, stamp) = if gone > self.duration_ms {
            let filled = self
                .capacity
                .min(rest + gone * self.limit / self.duration_ms);
            (filled - n, now_ms)
        } else {
            (rest - n, stamp)
        };
        if left < 0 {
            return false;
        }
        self.held = Some((left, stamp));
        true
    }
}

/// One value of a bucket rule, on a clock in ms.
struct Value {
    rule: TokenBucket,
    state: Option<u64>,
}

impl Value {
    fn take(&mut self, at_ms: u64, n: u32) -> Verdict {
        let (verdict, next) = self.rule.step(self.state, at_ms * MS, n);
        self.state = next.or(self.state);
        assert!(self.state.is_none_or(|state| state <= STATE_MAX));
        verdict
    }
}

#[test]
fn tokens_come_back_all_at_once_after_the_duration() {
    let mut value = Value {
        rule: TokenBucket::new(2, 1, 1),
        state: None,
    };
    let mut admits = |at_ms, n| value.take(at_ms, n).admits();
    assert!(admits(5_000, 3) && !admits(5_000, 1));
    assert!(!admits(6_000, 1), "the duration itself is not past");
    assert!(admits(6_001, 2) && !admits(6_001, 1));
    assert!(!admits(50_000, 4), "more than limit and burst");
    assert!(admits(50_000, 3));
    let none = TokenBucket::new(0, 5, 1);
    assert_eq!(none.step(None, MS, 1), (Verdict::NEVER, None));
}

#[test]
fn a_bucket_past_the_word_is_unlimited_and_a_late_reader_gets_no_refill() {
    let huge = TokenBucket::new(TOKENS_MAX, 1, 1);
    assert_eq!(huge.step(None, MS, u32::MAX), (Verdict::ADMIT, None));
    assert_eq!(huge.tokens(None, MS), u32::MAX);
    let mut value = Value {
        rule: TokenBucket::new(1, 0, 1),
        state: None,
    };
    assert!(value.take(10_000, 1).admits());
    assert!(!value.take(9_500, 1).admits());
}

#[test]
fn a_newcomer_can_begin_with_less() {
    let rule = TokenBucket::new(5, 0, 1);
    let state = Some(rule.begin_with(2, 7_000 * MS));
    assert_eq!(rule.tokens(state, 7_000 * MS), 2);
    assert_eq!(rule.tokens(state, 8_001 * MS), 5);
    assert_eq!(rule.tokens(Some(rule.begin_with(9, 0)), 0), 5);
}

#[test]
fn the_longest_wait_of_a_value_is_refused_only_in_sentinel() {
    let verdict = |quirks| {
        let rule = ValuePacing {
            limit: 2,
            duration_s: 1,
            max_wait_ms: 500,
            quirks,
        };
        let (first, state) = rule.step(None, 9_000 * MS, 1);
        assert_eq!(first, Verdict::ADMIT);
        rule.step(state, 9_000 * MS, 1).0
    };
    assert_eq!(verdict(Quirks::None), Verdict::Admit { wait_ns: 500 * MS });
    assert_eq!(
        verdict(Quirks::Sentinel),
        Verdict::Refuse {
            retry_after_ns: Some(MS)
        }
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_bucket_equals_the_model(
        calls in prop::collection::vec((0_u64..4_000, 0_u32..5, prop::bool::weighted(0.02)), 1..200),
        limit in 0_u32..12,
        burst in 0_u32..6,
        duration_s in prop_oneof![1_u32..5, Just(3_600), Just(86_400)],
    ) {
        let mut value = Value { rule: TokenBucket::new(limit, burst, duration_s), state: None };
        let mut model = Model {
            limit: i64::from(limit),
            capacity: i64::from(limit + burst),
            duration_ms: i64::from(duration_s) * 1_000,
            held: None,
        };
        // Durations over 70 minutes are reckoned in units of a power of two; step in those.
        let unit_ms = if duration_s == 86_400 { 32 } else { 1 };
        let mut at_ms = START_MS;
        for (step_ms, n, pause) in calls {
            at_ms += unit_ms * if pause { step_ms * 900 } else { step_ms / 8 };
            let verdict = value.take(at_ms, n);
            prop_assert_eq!(verdict.admits(), model.take(at_ms.cast_signed(), i64::from(n)));
            if let Verdict::Refuse { retry_after_ns: Some(wait_ns) } = verdict {
                prop_assert!(wait_ns > 0);
                let then = |ns| value.rule.step(value.state, at_ms * MS + ns, n).0.admits();
                prop_assert!(then(wait_ns) && !then(wait_ns - 1));
            }
        }
    }

    #[test]
    fn a_lowered_limit_leaves_no_more_than_its_own_bucket_holds(
        calls in prop::collection::vec((0_u64..300, 0_u32..5), 1..100),
        limits in (1_u32..60, 1_u32..60),
        burst in 0_u32..6,
        changes_at in 0_usize..50,
    ) {
        let (before, after) = limits;
        let mut value = Value { rule: TokenBucket::new(before, burst, 1), state: None };
        let (mut at_ms, mut passed) = (START_MS, 0);
        for (call, (step_ms, n)) in calls.into_iter().enumerate() {
            if call == changes_at {
                value.rule = TokenBucket::new(after, burst, 1);
                passed = 0;
            }
            at_ms += step_ms / 100;
            passed += if value.take(at_ms, n).admits() { n } else { 0 };
            // All of it within a second, and so without a refill.
            let limit = if call < changes_at { before } else { after };
            prop_assert!(passed <= limit + burst, "{} of {}", passed, limit);
        }
    }

    #[test]
    fn value_pacing_equals_the_model(
        calls in prop::collection::vec((0_u64..700, 0_u32..4), 1..200),
        limit in 1_u32..40,
        duration_s in 1_u32..4,
        max_wait_ms in 0_u64..1_500,
        sentinel: bool,
    ) {
        let quirks = if sentinel { Quirks::Sentinel } else { Quirks::None };
        let rule = ValuePacing { limit, duration_s, max_wait_ms, quirks };
        let (mut state, mut last, mut at_ms) = (None, None, START_MS);
        for (step_ms, n) in calls {
            at_ms += step_ms / 3;
            let cost = (1_000.0 * f64::from(n) * f64::from(duration_s) / f64::from(limit) + 0.5).floor();
            let turn: u64 = last.map_or(at_ms, |last| last + cost as u64);
            let wait = turn.saturating_sub(at_ms);
            let fits = wait == 0 || wait < max_wait_ms || (wait == max_wait_ms && !sentinel);
            let (verdict, next) = rule.step(state, at_ms * MS, n);
            if fits {
                prop_assert_eq!(verdict, Verdict::Admit { wait_ns: wait * MS });
                last = Some(turn.max(at_ms));
                state = next;
            } else {
                prop_assert!(!verdict.admits() && next.is_none());
            }
        }
    }

    #[test]
    fn any_state_is_taken(state: u64, now_ns: u64, n: u32, limit: u32, burst: u32, duration_s: u32) {
        let bucket = TokenBucket::new(limit, burst, duration_s);
        let _verdict = bucket.step(Some(state), now_ns, n);
        let _tokens = bucket.tokens(Some(state), now_ns);
        let pacing = ValuePacing { limit, duration_s, max_wait_ms: now_ns, quirks: Quirks::None };
        let (_, next) = pacing.step(Some(state), now_ns, n);
        prop_assert!(next.is_none_or(|next| next <= STATE_MAX));
    }
}
