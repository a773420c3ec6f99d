//! What passed in the last two buckets of time, in one word.
//!
//! ```text
//! [epoch 16 | previous bucket 24 | current bucket 24]
//! ```
//!
//! * **epoch**: number of the current bucket since the clock's zero, modulo 2^16. With buckets of
//!   500 ms it comes round after 9.1 hours; a word that was idle for just that long (within two
//!   buckets) counts its old passes for at most three buckets more. It never admits more for it.
//! * **counts**: up to [`COUNT_MAX`]. A limit at or above that stands for "not limited", and the
//!   count then stays at its maximum instead of wrapping.
//!
//! Room comes back a bucket at a time at edges that are multiples of the bucket length, so a limit
//! holds in every *aligned* window of two buckets; up to twice the limit can pass through a window
//! that is not aligned. [`crate::strict`] holds it in every window.

use core::num::NonZeroU64;

use crate::number::{quotient, remainder};

/// The largest count of one bucket (16,777,215).
pub const COUNT_MAX: u32 = (1 << 24) - 1;

/// Length of one bucket; a window has two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketLength(NonZeroU64);

impl BucketLength {
    /// Half a second: two make the window of a rule "per second".
    pub const HALF_SECOND: Self = match NonZeroU64::new(500_000_000) {
        Some(ns) => Self(ns),
        None => Self(NonZeroU64::MIN),
    };

    /// A bucket of that length.
    pub const fn new(length_ns: NonZeroU64) -> Self {
        Self(length_ns)
    }

    /// The buckets of a window of `window_ns`, half of it each, rounded up; `None` for no window.
    pub const fn of_window(window_ns: u64) -> Option<Self> {
        match NonZeroU64::new(window_ns.div_ceil(2)) {
            Some(ns) => Some(Self(ns)),
            None => None,
        }
    }

    /// Length in ns.
    #[inline]
    pub const fn ns(self) -> u64 {
        self.0.get()
    }

    /// The epoch of the bucket that holds `now_ns`.
    #[inline]
    pub const fn epoch(self, now_ns: u64) -> u16 {
        (quotient(now_ns, self.0) & 0xffff) as u16
    }

    /// Time from `now_ns` to the next edge: at least 1, at most the length.
    #[inline]
    pub const fn until_edge_ns(self, now_ns: u64) -> u64 {
        self.ns().saturating_sub(remainder(now_ns, self.0))
    }
}

/// How a word stands to the epoch of the one who reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// Same bucket.
    Same,
    /// The word is one bucket old: its current bucket is the previous one now.
    Previous,
    /// The word is newer by one or two buckets: the reader's clock reading is late.
    Newer,
    /// Anything else: nothing in the word counts any more.
    Stale,
}

impl Age {
    /// Compares the epoch in a word with the reader's; `mask` is the epoch field's width as ones.
    #[inline]
    pub(crate) const fn of(word_epoch: u32, epoch: u32, mask: u32) -> Self {
        match epoch.wrapping_sub(word_epoch) & mask {
            0 => Self::Same,
            1 => Self::Previous,
            ahead if mask.wrapping_sub(ahead) < 2 => Self::Newer,
            _ => Self::Stale,
        }
    }
}

/// A window word taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use]
pub struct Window {
    epoch: u16,
    previous: u32,
    current: u32,
}

impl Window {
    /// The window that `word` holds, as seen from `epoch`.
    ///
    /// A stale word starts afresh, a word of the bucket before is shifted, and a word that is newer
    /// by one or two buckets is used as it is: its reader was late, and counts into the newer
    /// bucket. A reader that may have been held up for longer than two buckets reads its clock
    /// again where [`Window::age`] says [`Age::Stale`], before it stores.
    #[inline]
    pub const fn at(word: u64, epoch: u16) -> Self {
        let held = Self::unpack(word);
        match Self::age(word, epoch) {
            Age::Same | Age::Newer => held,
            Age::Previous => Self {
                epoch,
                previous: held.current,
                current: 0,
            },
            Age::Stale => Self {
                epoch,
                previous: 0,
                current: 0,
            },
        }
    }

    /// How `word` stands to `epoch`.
    #[inline]
    pub const fn age(word: u64, epoch: u16) -> Age {
        Age::of(Self::unpack(word).epoch as u32, epoch as u32, 0xffff)
    }

    const fn unpack(word: u64) -> Self {
        Self {
            epoch: (word >> 48 & 0xffff) as u16,
            previous: (word >> 24 & 0x00ff_ffff) as u32,
            current: (word & 0x00ff_ffff) as u32,
        }
    }

    /// The word to store.
    #[inline]
    pub const fn word(self) -> u64 {
        (self.epoch as u64) << 48 | (self.previous as u64) << 24 | self.current as u64
    }

    /// Epoch of the current bucket; remember it for [`Window::take_back`].
    #[inline]
    pub const fn epoch(self) -> u16 {
        self.epoch
    }

    /// Passes in the previous bucket.
    #[inline]
    pub const fn previous(self) -> u32 {
        self.previous
    }

    /// Passes in the current bucket.
    #[inline]
    pub const fn current(self) -> u32 {
        self.current
    }

    /// Passes in both buckets.
    #[inline]
    pub const fn sum(self) -> u32 {
        self.previous.saturating_add(self.current)
    }

    /// Passes that still fit; `u32::MAX` where `limit` stands for "not limited".
    #[inline]
    pub const fn remaining(self, limit: u32) -> u32 {
        if limit >= COUNT_MAX {
            u32::MAX
        } else {
            limit.saturating_sub(self.sum())
        }
    }

    /// The window with `n` passes more, if at most `limit` are in it then.
    ///
    /// `n = 0` is admitted while the sum is at most the limit. A limit at or above [`COUNT_MAX`]
    /// admits everything.
    #[inline]
    pub const fn try_add(self, n: u32, limit: u32) -> Option<Self> {
        if limit >= COUNT_MAX {
            return Some(self.add(n));
        }
        if self.sum().saturating_add(n) > limit {
            return None;
        }
        Some(self.add(n))
    }

    /// The window with `n` passes more, unasked; the count stays at [`COUNT_MAX`].
    #[inline]
    pub const fn add(self, n: u32) -> Self {
        let sum = self.current.saturating_add(n);
        Self {
            current: if sum > COUNT_MAX { COUNT_MAX } else { sum },
            ..self
        }
    }

    /// The window without `n` passes that were added when its epoch was `added`; passes that have
    /// left the window meanwhile stay gone.
    #[inline]
    pub const fn take_back(self, n: u32, added: u16) -> Self {
        match self.epoch.wrapping_sub(added) {
            0 => Self {
                current: self.current.saturating_sub(n),
                ..self
            },
            1 => Self {
                previous: self.previous.saturating_sub(n),
                ..self
            },
            _ => self,
        }
    }

    /// How long after `now_ns` `n` passes fit if nobody else takes the room: 0 if they fit now,
    /// `None` if `n` alone is over the limit.
    pub const fn fits_after_ns(
        self,
        n: u32,
        limit: u32,
        now_ns: u64,
        bucket: BucketLength,
    ) -> Option<u64> {
        if self.try_add(n, limit).is_some() {
            return Some(0);
        }
        if n > limit {
            return None;
        }
        // A late reader's next edge is that of the bucket the word is in.
        let late = self.epoch.wrapping_sub(bucket.epoch(now_ns)) as u64;
        let edge_ns = bucket
            .until_edge_ns(now_ns)
            .saturating_add(late.saturating_mul(bucket.ns()));
        if self.current.saturating_add(n) <= limit {
            Some(edge_ns)
        } else {
            Some(edge_ns.saturating_add(bucket.ns()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        let last = Window {
            epoch: u16::MAX,
            previous: 1,
            current: 2,
        };
        assert_eq!(Window::at(last.word(), 0).previous(), 2);
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

    /// The plain meaning: a list of (time, count).
    #[derive(Default)]
    struct Log(Vec<(u64, u32)>);

    impl Log {
        fn sum(&self, now_ms: u64) -> u32 {
            let oldest = (now_ms / 500 * 500).saturating_sub(500);
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
        ) {
            let (mut word, mut now_ms, mut log) = (0, 0, Log::default());
            for (step_ms, n) in calls {
                now_ms += step_ms / 4;
                let window = at(word, now_ms * MS);
                prop_assert_eq!(window.sum(), log.sum(now_ms));
                let next = window.try_add(n, limit);
                prop_assert_eq!(next.is_some(), log.sum(now_ms) + n <= limit);
                let after = window.fits_after_ns(n, limit, now_ms * MS, BUCKET);
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
                prop_assert_eq!(Window::unpack(next.word()), next);
            }
            let _wait_ns = window.fits_after_ns(n, limit, now_ns, BUCKET);
        }
    }
}
