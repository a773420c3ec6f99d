//! The window word against a plain list of passes.

use proptest::prelude::*;
use tidegate_limits::window::{Age, BucketLength, COUNT_MAX, Window};

const BUCKET: BucketLength = BucketLength::HALF_SECOND;
const MS: u64 = 1_000_000;

fn at(word: u64, now_ns: u64) -> Window {
    Window::at(word, BUCKET.epoch(now_ns))
}

#[test]
fn a_word_rotates_by_its_age() {
    let word = Window::at(0, 7).add(3).word();
    let shifted = Window::at(word, 8);
    assert_eq!((shifted.previous(), shifted.current()), (3, 0));
    assert_eq!(Window::at(word, 7).current(), 3);
    for late in [5, 6] {
        assert_eq!(Window::at(word, late).current(), 3);
        assert_eq!(Window::age(word, late), Age::Newer);
    }
    for stale in [4, 9, 10, 7 + 0x8000] {
        assert_eq!(Window::at(word, stale).sum(), 0);
        assert_eq!(Window::at(word, stale).epoch(), stale);
    }
    let last = 0xffff << 48 | 1 << 24 | 2;
    assert_eq!(Window::at(last, 0).previous(), 2);
}

#[test]
fn counts_never_wrap() {
    let full = Window::at(0, 0).add(u32::MAX);
    assert_eq!(full.current(), COUNT_MAX);
    assert_eq!(full.add(1).word(), full.word());
    assert_eq!(full.try_add(1, COUNT_MAX), Some(full));
    assert_eq!(full.try_add(1, COUNT_MAX - 1), None);
    assert_eq!(Window::at(0, 0).try_add(u32::MAX, COUNT_MAX - 1), None);
    assert_eq!(full.remaining(COUNT_MAX), u32::MAX);
}

#[test]
fn nothing_is_admitted_while_the_sum_is_at_most_the_limit() {
    let three = Window::at(0, 0).add(3);
    assert!(three.try_add(0, 3).is_some());
    assert!(three.try_add(0, 2).is_none());
    assert!(three.try_add(1, 3).is_none());
}

#[test]
fn a_window_of_ten_seconds_has_buckets_of_five() {
    let bucket = BucketLength::of_window(10_000 * MS).unwrap();
    assert_eq!(bucket.ns(), 5_000 * MS);
    assert_eq!(bucket.epoch(9_999 * MS), 1);
    assert_eq!(BucketLength::of_window(3).unwrap().ns(), 2);
    assert_eq!(BucketLength::of_window(0), None);
}

#[test]
fn room_comes_back_at_the_edge_that_frees_it() {
    let first = at(0, 100 * MS).add(4);
    let second = at(first.word(), 600 * MS).add(1);
    let after = |n| second.fits_after_ns(n, 5, 600 * MS, BUCKET);
    assert_eq!(after(0), Some(0));
    assert_eq!(after(4), Some(400 * MS));
    assert_eq!(after(5), Some(900 * MS));
    assert_eq!(after(6), None);
    // A reader that is late by a bucket waits for the edge of the word's bucket.
    assert_eq!(second.fits_after_ns(4, 5, 499 * MS, BUCKET), Some(501 * MS));
}

#[test]
fn what_was_added_can_be_taken_back_from_its_bucket() {
    let added = Window::at(0, 3).add(5);
    assert_eq!(added.take_back(2, added.epoch()).current(), 3);
    assert_eq!(Window::at(added.word(), 4).take_back(2, 3).previous(), 3);
    assert_eq!(Window::at(added.word(), 5).take_back(2, 3).sum(), 0);
    assert_eq!(added.take_back(9, 3).sum(), 0);
}

/// The plain meaning: a list of (time, count), and the length of a bucket.
struct Log(Vec<(u64, u32)>, u64);

impl Log {
    fn sum(&self, now_ms: u64) -> u32 {
        let oldest = (now_ms / self.1 * self.1).saturating_sub(self.1);
        self.0
            .iter()
            .filter(|(at, _)| *at >= oldest)
            .map(|(_, n)| n)
            .sum()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn equals_a_list_of_passes(
        calls in prop::collection::vec((0_u64..1_300, 0_u32..6), 1..200),
        limit in 0_u32..20,
        bucket_ms in prop_oneof![Just(500_u64), 1_u64..5_000, Just(43_200_000)],
    ) {
        let bucket = BucketLength::of_window(2 * bucket_ms * MS).unwrap();
        let at = |word, now_ns| Window::at(word, bucket.epoch(now_ns));
        let (mut word, mut now_ms, mut log) = (0, 0, Log(Vec::new(), bucket_ms));
        for (step_ms, n) in calls {
            now_ms += step_ms * bucket_ms / 2_000;
            let window = at(word, now_ms * MS);
            prop_assert_eq!(window.sum(), log.sum(now_ms));
            let next = window.try_add(n, limit);
            prop_assert_eq!(next.is_some(), log.sum(now_ms) + n <= limit);
            let after = window.fits_after_ns(n, limit, now_ms * MS, bucket);
            match (next, after) {
                (Some(next), after) => {
                    prop_assert_eq!(after, Some(0));
                    word = next.word();
                    log.0.push((now_ms, n));
                }
                (None, None) => prop_assert!(n > limit),
                (None, Some(wait_ns)) => {
                    let then = now_ms * MS + wait_ns;
                    prop_assert!(at(window.word(), then).try_add(n, limit).is_some());
                    prop_assert!(at(window.word(), then - 1).try_add(n, limit).is_none());
                }
            }
        }
    }

    #[test]
    fn any_word_is_taken(word: u64, epoch: u16, n: u32, limit: u32, now_ns: u64) {
        let window = Window::at(word, epoch);
        prop_assert!(window.add(n).current() <= COUNT_MAX);
        if let Some(next) = window.try_add(n, limit) {
            prop_assert!(limit >= COUNT_MAX || next.sum() <= limit);
            prop_assert_eq!(Window::at(next.word(), next.epoch()), next);
        }
        let _wait_ns = window.fits_after_ns(n, limit, now_ns, BUCKET);
    }
}
