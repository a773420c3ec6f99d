//! Strict limits against a plain list of passes.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "small numbers of a test"
)]

use std::collections::VecDeque;

use proptest::prelude::*;
use tidegate_limits::strict::{RuleLimit, Strict, ValueLimit, WINDOW_MAX_NS};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// The most passes in any half-open window of that length.
fn most_in_a_window(passes: &[(u64, u32)], window_ns: u64) -> u32 {
    let (mut inside, mut sum, mut most) = (VecDeque::<(u64, u32)>::new(), 0, 0);
    for (at, n) in passes {
        inside.push_back((*at, *n));
        sum += n;
        while let Some((first, gone)) = inside.front()
            && first + window_ns <= *at
        {
            sum -= gone;
            inside.pop_front();
        }
        most = most.max(sum);
    }
    most
}

/// Offers `n` at each time and gives the passes; checks the time of the next room on the way.
fn run<const C: u32, const L: u32>(
    strict: Strict<C, L>,
    calls: impl Iterator<Item = (u64, u32)>,
) -> Vec<(u64, u32)> {
    let mut word = 0;
    let mut passes = Vec::new();
    for (now_ns, n) in calls {
        let fits_after = strict.fits_after_ns(word, now_ns, n);
        if let Some(next) = strict.try_add(word, now_ns, n) {
            assert_eq!(fits_after, Some(0));
            word = next;
            passes.push((now_ns, n));
        } else if let Some(wait_ns) = fits_after {
            let then = now_ns + wait_ns;
            assert!(
                strict.try_add(word, then - 1, n).is_none(),
                "{then} is late"
            );
            assert!(strict.try_add(word, then, n).is_some(), "{then} is early");
        } else {
            assert!(n > strict.limit());
        }
    }
    passes
}

#[test]
fn a_limit_under_load_is_used_to_99_percent() {
    for limit in [100_u32, 101, 256, 1_000] {
        for offered in [1.0, 1.01, 1.7, 2.0, 7.0] {
            let step_ns = (SECOND as f64 / (f64::from(limit) * offered)) as u64;
            let calls = (0..8 * SECOND / step_ns).map(|i| (3 * SECOND + i * step_ns, 1));
            let passes = run(RuleLimit::new(limit, SECOND).unwrap(), calls);
            assert!(most_in_a_window(&passes, SECOND) <= limit);
            let used = passes.len() as f64 / f64::from(limit) / 8.0;
            assert!(used >= 0.99, "{limit} offered {offered} times: {used}");
        }
    }
}

#[test]
fn a_burst_may_use_the_whole_limit() {
    let strict = RuleLimit::new(100, SECOND).unwrap();
    let passes = run(strict, (0..300).map(|i| (10 * SECOND + 400 * MS + i, 1)));
    assert_eq!(passes.len(), 100);
    let calls = [400 * MS, SECOND + 400 * MS].map(|at| (10 * SECOND + at, 100));
    assert_eq!(run(strict, calls.into_iter()).len(), 1);
    let calls = [400 * MS, 2 * SECOND].map(|at| (10 * SECOND + at, 100));
    assert_eq!(run(strict, calls.into_iter()).len(), 2);
}

#[test]
fn what_is_taken_back_was_never_there() {
    let strict = RuleLimit::new(10, SECOND).unwrap();
    let at = |ms: u64| 10 * SECOND + ms * MS;
    let word = strict.try_add(0, at(0), 5).unwrap();
    let word = strict.try_add(word, at(500), 5).unwrap();
    let word = strict.take_back(word, at(600), 5, at(0));
    // The window that ends here holds the five of 500.
    assert_eq!(strict.try_add(word, at(1_400), 6), None);
    assert!(strict.try_add(word, at(1_400), 5).is_some());
}

#[test]
fn limits_and_windows_that_do_not_fit_are_refused() {
    assert!(RuleLimit::new(131_071, 1).is_some());
    assert!(RuleLimit::new(131_072, 1).is_none());
    assert!(ValueLimit::new(16_384, 1).is_none());
    assert!(RuleLimit::new(1, 0).is_none());
    assert!(RuleLimit::new(1, WINDOW_MAX_NS).is_some());
    assert!(RuleLimit::new(1, WINDOW_MAX_NS + 1).is_none());
    let none = RuleLimit::new(0, SECOND).unwrap();
    assert_eq!(none.try_add(0, SECOND, 1), None);
    assert_eq!(none.fits_after_ns(0, SECOND, 1), None);
}

/// Bursts, pauses and steady stretches.
fn arrivals() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let stretch = (0_u64..4, 1_u32..4).prop_flat_map(|(kind, n)| {
        let step_ns = match kind {
            0 => 0..1,
            1 => 0..30 * MS,
            2 => 0..300 * MS,
            _ => 0..1_500 * MS,
        };
        prop::collection::vec((step_ns, Just(n)), 1..60)
    });
    prop::collection::vec(stretch, 1..8).prop_map(|stretches| {
        let mut now_ns = 5 * SECOND;
        stretches
            .into_iter()
            .flatten()
            .map(|(step_ns, n)| {
                now_ns += step_ns;
                (now_ns, n)
            })
            .collect()
    })
}

/// The first pass that was one too many for the limit in force, where the limit changes before a call and its
/// word is brought over.
fn first_over<const C: u32, const L: u32>(
    (before, after): (Strict<C, L>, Strict<C, L>),
    calls: &[(u64, u32)],
    changes_at: usize,
) -> Option<String> {
    let (mut word, mut passes) = (0, Vec::new());
    for (call, &(now_ns, n)) in calls.iter().enumerate() {
        let strict = if call < changes_at { before } else { after };
        if call == changes_at {
            word = after.carry(word, before);
        }
        let Some(next) = strict.try_add(word, now_ns, n) else {
            continue;
        };
        word = next;
        passes.push((now_ns, n));
        let inside = passes.iter().filter(|(at_ns, _n)| at_ns + SECOND > now_ns);
        let sum: u32 = inside.map(|(_at_ns, n)| n).sum();
        if sum > strict.limit() {
            return Some(format!(
                "{sum} of {} in a window that ends at {now_ns}",
                strict.limit()
            ));
        }
    }
    None
}

#[test]
fn a_raise_is_no_room_for_the_raise_twice() {
    let limits = (RuleLimit::new(10, SECOND), RuleLimit::new(100, SECOND));
    let limits = limits.0.zip(limits.1).unwrap();
    let at = |ms: u64| 10 * SECOND + ms * MS;
    // Ten evenly over a bucket, and a tenth of the next one later as many as there is room for: nine of the ten
    // are still in the window.
    let even = (0..10).map(|pass| (at(100 * pass), 1));
    let rest = (0..120).map(|pass| (at(1_101) + pass, 1));
    let calls: Vec<_> = even.chain(rest).collect();
    assert_eq!(first_over(limits, &calls, 10), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_limit_holds_in_every_window(
        calls in arrivals(),
        limit in 1_u32..40,
        window_ms in 1_u64..1_500,
        scale in prop_oneof![Just(1_u64), Just(10), Just(2_900)],
    ) {
        // Up to 72 minutes; the arrivals are as dense in a long window as in a short one.
        let window_ns = window_ms * MS * scale;
        let calls: Vec<_> = calls.into_iter().map(|(at_ns, n)| (at_ns * scale, n)).collect();
        let passes = run(RuleLimit::new(limit, window_ns).unwrap(), calls.iter().copied());
        prop_assert!(most_in_a_window(&passes, window_ns) <= limit);
        let passes = run(ValueLimit::new(limit, window_ns).unwrap(), calls.iter().copied());
        prop_assert!(most_in_a_window(&passes, window_ns) <= limit);
    }

    #[test]
    fn the_limit_holds_when_passes_are_taken_back(
        calls in arrivals(),
        back in prop::collection::vec(any::<bool>(), 500),
    ) {
        let strict = RuleLimit::new(9, SECOND).unwrap();
        let (mut word, mut passes, mut pending) = (0, Vec::new(), VecDeque::new());
        for ((now_ns, n), back) in calls.into_iter().zip(back) {
            // What lost its race is taken back a few calls later.
            if pending.len() > 2 {
                let (added_ns, n) = pending.pop_front().unwrap();
                word = strict.take_back(word, now_ns, n, added_ns);
            }
            if let Some(next) = strict.try_add(word, now_ns, n) {
                word = next;
                if back {
                    pending.push_back((now_ns, n));
                } else {
                    passes.push((now_ns, n));
                }
            }
        }
        prop_assert!(most_in_a_window(&passes, SECOND) <= 9);
    }

    #[test]
    fn a_changed_limit_holds_at_once(
        calls in arrivals(),
        limit in 1_u32..200,
        share in 1_u32..900,
        changes_at in 0_usize..200,
    ) {
        let (rule, value) = (RuleLimit::new(limit, SECOND), RuleLimit::new(limit * share / 100, SECOND));
        prop_assert_eq!(first_over(rule.zip(value).unwrap(), &calls, changes_at), None);
        let (rule, value) = (ValueLimit::new(limit, SECOND), ValueLimit::new(limit * share / 100, SECOND));
        prop_assert_eq!(first_over(rule.zip(value).unwrap(), &calls, changes_at), None);
    }

    #[test]
    fn any_word_is_taken(word: u64, now_ns: u64, n: u32, limit in 0_u32..131_072, added_ns: u64) {
        let strict = RuleLimit::new(limit, 1 + now_ns % WINDOW_MAX_NS).unwrap();
        let _next = strict.try_add(word, now_ns, n);
        let _wait_ns = strict.fits_after_ns(word, now_ns, n);
        let _back = strict.take_back(word, now_ns, n, added_ns);
        let before = RuleLimit::new(n % 131_072, 1 + now_ns % WINDOW_MAX_NS).unwrap();
        let _other = strict.carry(word, before);
    }
}

#[test]
fn field_l10_of_a_burst_little_is_free_a_window_later_and_all_of_it_after_two() {
    const SECOND: u64 = 1_000_000_000;
    let limit = RuleLimit::new(5, SECOND).expect("it is allowed");
    let fits = |word: u64, now_ns: u64| {
        let mut word = word;
        let passes = std::iter::from_fn(|| {
            word = limit.try_add(word, now_ns, 1)?;
            Some(())
        });
        passes.count()
    };
    for tenth in 0..10 {
        let burst_ns = 100 * SECOND + tenth * SECOND / 10;
        let word = limit.try_add(0, burst_ns, 5).expect("nothing has passed");
        assert_eq!(fits(word, burst_ns + SECOND - 1), 0, "at {tenth} tenths");
        let later = fits(word, burst_ns + SECOND + SECOND / 5);
        assert!(later <= 5, "at {tenth} tenths: {later}");
        let all = fits(word, burst_ns + 2 * SECOND);
        assert_eq!(all, 5, "at {tenth} tenths");
    }
    let word = limit
        .try_add(0, 100 * SECOND, 5)
        .expect("nothing has passed");
    assert_eq!(fits(word, 101 * SECOND + SECOND / 5), 1, "one of the five");
}
