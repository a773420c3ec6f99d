//! Limits with a fraction, from the text of a rule to the verdicts of the gate, against a list of passes.

use std::cell::Cell;

use proptest::prelude::*;
use tidegate_abi::geometry::Geometry;
use tidegate_segment::gate::{GateVerdict, Request, Step};
use tidegate_segment::lane::Lane;

use crate::tenant::rule_index::tests::rule_index;
use crate::tenant::tests::{Scripted, tenant};

const MS: u64 = 1_000_000;

/// Passes by the half of a window that they came in.
struct Naive {
    count: f64,
    half_ms: u64,
    passes: Vec<(u64, u32)>,
}

impl Naive {
    /// A request of `n` is admitted while what passed in this half of a window and the one before, and it, are
    /// not over the limit.
    fn admits(&mut self, now_ms: u64, n: u32) -> bool {
        let half = now_ms / self.half_ms;
        let recent = self.passes.iter().filter(|(at, _n)| *at + 1 >= half);
        let passed: u32 = recent.map(|(_at, n)| n).sum();
        let admitted = f64::from(passed + n) <= self.count;
        if admitted {
            self.passes.push((half, n));
        }
        admitted
    }
}

/// Limits around whole numbers, and the least that is one.
fn counts() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(0.000_001),
        (0_u32..12, 0_u32..=4)
            .prop_map(|(whole, quarters)| f64::from(whole) + f64::from(quarters) / 4.0),
        (0_u32..12).prop_map(|whole| f64::from(whole) + 0.999_999),
        0.0..20.0,
    ]
    .prop_filter("0, or at least a millionth", |count| {
        *count == 0.0 || *count >= 0.000_001
    })
}

/// Times between requests, ms, and how many one stands for.
fn requests() -> impl Strategy<Value = Vec<(u64, u32)>> {
    prop::collection::vec((prop_oneof![0_u64..30, 0_u64..1_200], 1_u32..4), 1..120)
}

/// Holds a rule, with these lines in it, against the model.
fn compare(
    lines: &str,
    half_ms: u64,
    count: f64,
    requests: &[(u64, u32)],
) -> Result<(), TestCaseError> {
    let tenant = tenant(Geometry::new(8, 2, 2, 2).unwrap());
    let text = format!("[[flow]]\nresource = \"a\"\ncount = {count:?}\n{lines}");
    tenant.directory().publish(rule_index(&text), 0).unwrap();
    let slot = tenant.directory().resolve("a").slot;
    let mut naive = Naive {
        count,
        half_ms,
        passes: Vec::new(),
    };
    let mut now_ms = 50_000_000;
    let clock = Scripted(Cell::new(0));
    for (step, (pause_ms, n)) in requests.iter().enumerate() {
        now_ms += pause_ms;
        clock.0.set(now_ms * MS);
        let request = Request {
            count: *n,
            ..Request::default()
        };
        let verdict = tenant
            .gate()
            .enter(&clock, Lane::numbered(1), slot, request);
        let admitted = matches!(verdict, Step::Done(GateVerdict::Admitted(_)));
        let expected = naive.admits(now_ms, *n);
        prop_assert_eq!(
            admitted,
            expected,
            "request {} of {} at {} ms",
            step,
            n,
            now_ms
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_plain_limit_a_second(count in counts(), requests in requests()) {
        compare("", 500, count, &requests)?;
    }

    #[test]
    fn a_limit_of_the_table(count in counts(), requests in requests()) {
        // A second rule that refuses nobody brings both into the table.
        let more = "[[authority]]\nresource = \"a\"\nstrategy = \"deny\"\norigins = [\"x\"]";
        compare(more, 500, count, &requests)?;
    }

    #[test]
    fn a_limit_for_three_seconds(count in counts(), requests in requests()) {
        compare("window = \"3s\"", 1_500, count, &requests)?;
    }
}
