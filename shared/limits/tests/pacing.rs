//! Pacing against a plain model that reckons like Sentinel, with signed times.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "the model casts as Java does, and its numbers are small"
)]

use proptest::prelude::*;
use tidegate_limits::pacing::{AtRate, Pacing};
use tidegate_limits::quirks::Quirks;
use tidegate_limits::verdict::Verdict;

const MS: u64 = 1_000_000;
/// Long after the clock's zero, as a wall clock is.
const START_NS: u64 = 1_000_000 * MS;

/// The wait in `unit`s, if admitted.
#[derive(Debug)]
struct Model {
    last: i128,
    max_wait: i128,
}

impl Model {
    fn ask(&mut self, now: i128, cost: i128) -> Option<i128> {
        if self.last + cost <= now {
            self.last = now;
            return Some(0);
        }
        let wait = self.last + cost - now;
        if wait > self.max_wait {
            return None;
        }
        self.last += cost;
        Some(wait)
    }
}

fn waits(pacing: &Pacing, calls: &[(u64, u32)]) -> Vec<Option<u64>> {
    let mut word = 0;
    calls
        .iter()
        .map(|(at_ns, n)| {
            let (verdict, next) = pacing.step(word, START_NS + at_ns, *n);
            match verdict {
                Verdict::Admit { wait_ns } => {
                    word = next;
                    Some(wait_ns)
                }
                Verdict::Refuse { .. } => {
                    assert_eq!(next, word);
                    None
                }
            }
        })
        .collect()
}

/// Three requests of one at once.
fn three(count: f64, max_wait_ms: u64) -> Vec<Option<u64>> {
    waits(
        &Pacing::new(count, max_wait_ms * MS),
        &[(0, 1), (0, 1), (0, 1)],
    )
}

#[test]
fn costs_are_whole_ns_or_whole_ms_as_in_sentinel() {
    let first_wait = |count| three(count, 10_000)[1].unwrap();
    assert_eq!(first_wait(3.0), 333_333_333);
    assert_eq!(first_wait(2.5), 400 * MS);
    assert_eq!(first_wait(7.5), 133 * MS);
    assert_eq!(first_wait(0.5), 2_000 * MS);
    assert_eq!(first_wait(1_000.0), MS);
    assert_eq!(first_wait(4_000.0), 250_000);
    // Sentinel divides by zero here.
    assert!(Pacing::breaks_sentinel(0.25) && !Pacing::breaks_sentinel(0.5));
    assert_eq!(first_wait(0.25), 4_000 * MS);
}

#[test]
fn the_longest_wait_is_admitted_and_a_refusal_says_when() {
    assert_eq!(three(10.0, 100), [Some(0), Some(100 * MS), None]);
    let pacing = Pacing::new(10.0, 100 * MS);
    let (_, word) = pacing.step(0, START_NS, 1);
    let (_, word) = pacing.step(word, START_NS, 1);
    let (verdict, _) = pacing.step(word, START_NS, 1);
    assert_eq!(
        verdict,
        Verdict::Refuse {
            retry_after_ns: Some(100 * MS)
        }
    );
    assert!(pacing.step(word, START_NS + 100 * MS, 1).0.admits());
    assert!(!pacing.step(word, START_NS + 99 * MS, 1).0.admits());
}

#[test]
fn nothing_passes_a_count_of_nothing_but_a_request_for_nothing() {
    for count in [0.0, -1.0, f64::NAN] {
        let pacing = Pacing::new(count, u64::MAX);
        assert_eq!(pacing.step(7, START_NS, 1), (Verdict::NEVER, 7));
        assert_eq!(pacing.step(7, START_NS, 0), (Verdict::ADMIT, 7));
    }
}

#[test]
fn a_rate_over_two_thousand_is_paced_except_in_sentinel() {
    let wait = |quirks| {
        let pacing = AtRate::new(MS, quirks);
        let (_, word) = pacing.step(0, START_NS, 1, 4_000.0);
        pacing.step(word, START_NS, 1, 4_000.0).0
    };
    assert_eq!(wait(Quirks::None), Verdict::Admit { wait_ns: 250_000 });
    assert_eq!(wait(Quirks::Sentinel), Verdict::ADMIT);
    assert!(
        !AtRate::new(MS, Quirks::None)
            .step(1, START_NS, 1, 0.0)
            .0
            .admits()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn equals_the_model_in_ns_and_in_ms(
        steps in prop::collection::vec((0_u64..900, 0_u32..4), 1..120),
        count in prop_oneof![0.01_f64..0.5, 0.5_f64..20.0, 20.0_f64..3_000.0, Just(7.5), Just(10.0)],
        max_wait_ms in 0_u64..2_000,
    ) {
        let mut at_ms = 0;
        let calls: Vec<_> = steps
            .into_iter()
            .map(|(step, n)| {
                at_ms += step / 2;
                (at_ms * MS, n)
            })
            .collect();
        let rounded = (count + 0.5).floor();
        let fine = rounded == 0.0 || 1_000.0 % rounded != 0.0 || count > 1_000.0;
        let unit = if fine { 1 } else { MS };
        let mut model = Model { last: -1_000_000_000_000, max_wait: i128::from(max_wait_ms * MS / unit) };
        let want: Vec<_> = calls
            .iter()
            .map(|(at_ns, n)| {
                if *n == 0 {
                    return Some(0);
                }
                let per_unit = 1e9 / unit as f64;
                let cost = (per_unit * f64::from(*n) / count + 0.5).floor() as i128;
                let now = i128::from((START_NS + at_ns) / unit);
                model.ask(now, cost).map(|wait| u64::try_from(wait).unwrap() * unit)
            })
            .collect();
        prop_assert_eq!(waits(&Pacing::new(count, max_wait_ms * MS), &calls), want);
    }

    #[test]
    fn any_word_and_number_is_taken(word: u64, now_ns: u64, n: u32, count: f64, max_wait_ns: u64) {
        let (_, _next) = Pacing::new(count, max_wait_ns).step(word, now_ns, n);
        for quirks in [Quirks::None, Quirks::Sentinel] {
            let (_, _next) = AtRate::new(max_wait_ns, quirks).step(word, now_ns, n, count);
        }
    }
}
