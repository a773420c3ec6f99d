//! The short cuts give what the long way gives, or nothing.

use std::num::NonZeroU64;

use proptest::prelude::*;
use tidegate_limits::breaker::tally::{BreakerTally, Interval};
use tidegate_limits::breaker::trip::BreakerTrip;
use tidegate_limits::breaker::{Breaker, BreakerAnswer, closed, open_for_ns};
use tidegate_limits::quirks::Quirks;
use tidegate_limits::window::{COUNT_MAX, Window};

proptest! {
    #[test]
    fn a_window_that_admits_at_once_admits_the_same(
        epoch: u16, held in 0..4_u16, counts in prop::array::uniform2(0..=COUNT_MAX), n in 0..3_u32, limit: u32,
    ) {
        let [previous, current] = counts;
        let word_epoch = u64::from(epoch.wrapping_sub(held / 3));
        let word = word_epoch << 48 | u64::from(previous) << 24 | u64::from(current);
        let closely = Window::at(word, epoch).try_add(n, limit).map(Window::word);
        if let Some(at_once) = Window::add_at_once(word, epoch, n, limit) {
            prop_assert_eq!(Some(at_once), closely);
        }
        // Small counts of the same bucket are what the short cut is for.
        if held < 3 && current < COUNT_MAX - n && limit < COUNT_MAX {
            prop_assert_eq!(Window::add_at_once(word, epoch, n, limit), closely);
        }
    }

    #[test]
    fn a_tally_that_counts_at_once_counts_the_same(
        now_ns in 0..1_u64 << 63, length_ns in 2..1_u64 << 40, counts in prop::array::uniform2(0..1_u64 << 22), is_bad: bool,
    ) {
        let [all, bad] = counts;
        let length = NonZeroU64::new(length_ns).unwrap();
        let epoch = Interval::new(length).unwrap().epoch(now_ns);
        let word = epoch << 44 | all << 22 | bad;
        let closely = BreakerTally::at(word, now_ns, length).add(is_bad);
        if let Some(at_once) = BreakerTally::add_at_once(word, epoch, is_bad) {
            prop_assert_eq!(BreakerTally::of(at_once), closely);
        }
        prop_assert_eq!(BreakerTally::add_at_once(word ^ 1 << 44, epoch, is_bad), None);
    }

    #[test]
    fn an_interval_divides_exactly(now_ns in 0..1_u64 << 63, length_ns in 2..=1_u64 << 63, near in 0..3_u64) {
        let interval = Interval::new(NonZeroU64::new(length_ns).unwrap()).unwrap();
        let edge_ns = (now_ns / length_ns * length_ns).saturating_add(near).saturating_sub(1);
        for now_ns in [now_ns, edge_ns.min((1 << 63) - 1)] {
            prop_assert_eq!(interval.epoch(now_ns), now_ns / length_ns);
        }
    }

    #[test]
    fn a_breaker_seen_at_a_glance_is_the_breaker(word: u64, now_ms in 0..1_u64 << 44) {
        let now_ns = now_ms * 1_000_000;
        let breaker = Breaker {
            trip: BreakerTrip::ErrorCount(1.0),
            min_requests: 1,
            recovery_ns: 1,
            lease_ns: 1,
            quirks: Quirks::None,
        };
        let (admission, _next) = breaker.enter(word, now_ns);
        if let Some(generation) = closed(word) {
            prop_assert_eq!(admission, BreakerAnswer::Pass { generation });
        }
        if let Some(retry_after_ns) = open_for_ns(word, now_ns) {
            prop_assert_eq!(admission, BreakerAnswer::Refuse { retry_after_ns });
        }
    }
}
