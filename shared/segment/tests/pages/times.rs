//! How long requests took, as the pages tell it.

use crate::fixture::Fixture;
use crate::gate::{LANE, ask};
use proptest::prelude::*;
use tidegate_abi::decision::{LossMode, Outcome};
use tidegate_segment::board::ResourceRecord;
use tidegate_segment::gate::Request;
use tidegate_segment::ledger::{NodeCounts, NodeTimes};

/// What was counted of requests that took so long.
fn counted(took_ns: &[u64], outcome: Outcome) -> (NodeCounts, NodeTimes) {
    let mut fixture = Fixture::new(LossMode::Open);
    let slot = fixture.resource("r", ResourceRecord::default());
    let gate = fixture.gate(1, 0);
    for took in took_ns {
        let pass = ask(&fixture, &gate, slot, Request::default()).unwrap();
        fixture.clock.advance(*took);
        gate.exit(&fixture.clock, LANE, pass, outcome);
        fixture
            .writers
            .tick
            .beat(tidegate_segment::clock::Clock::now_ns(&fixture.clock));
    }
    let counts = fixture.ledger.node_counts(&fixture.board, slot);
    (counts, fixture.ledger.times(slot))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn field_o9_each_time_is_in_the_bucket_that_its_bounds_say(
        bits in prop::collection::vec((0_u32..40, any::<u64>()), 1..20),
    ) {
        let took: Vec<u64> = bits
            .iter()
            .map(|(bit, low)| (1_u64 << bit) | (low & ((1_u64 << bit) - 1)))
            .collect();
        let (counts, times) = counted(&took, Outcome::Ok);
        let under = |bound: u64| took.iter().filter(|took| **took < bound).count() as u64;
        let mut seen = counts.success - times.took.iter().sum::<u64>();
        for (bound, more) in NodeTimes::bounds_ns().zip(times.took) {
            prop_assert_eq!(seen, under(bound), "under {} ns", bound);
            seen += more;
        }
        prop_assert_eq!(seen, took.len() as u64);
    }
}

#[test]
fn field_o9_failures_and_ignored_requests_have_no_time() {
    for outcome in [Outcome::Error, Outcome::Ignore] {
        let (_counts, times) = counted(&[1 << 20, 1 << 30], outcome);
        assert_eq!(times, NodeTimes::default());
    }
}
