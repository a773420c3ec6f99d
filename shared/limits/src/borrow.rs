//! Prioritized requests: when a window is full they may take room in the next bucket, and wait for it.
//!
//! ```text
//! [epoch 16 | borrowed for the previous bucket 16 | for the current 16 | for the next 16]
//! ```
//!
//! A bucket's passes are those in its [`Window`] plus those that were borrowed for it. A node that
//! has such a rule keeps this word beside the window's, and its callers keep an order:
//!
//! 1. Load the word, [`BorrowedPasses::at`]. If that changed it (a new bucket has begun), store it first:
//!    from then on a reader that is late cannot borrow for a bucket that is already being used.
//! 2. Admit into the window up to `limit −` [`BorrowedPasses::arrived`].
//! 3. If that refuses a prioritized request, [`BorrowedPasses::try_borrow`], store, read the clock again. If
//!    the next bucket has begun meanwhile, somebody may have counted in it without seeing the loan:
//!    [`BorrowedPasses::give_back`]. Else wait.
//!
//! What is lent is at most what leaves the window at the edge, so that the next window holds the limit
//! whoever else gets into this one. Sentinel lends what the next window has room for as it is now,
//! and smaller requests may still take that; with requests of one there is no difference.
//!
//! A bucket takes at most 65,535 borrowed passes; more are refused.

use crate::quirks::Quirks;
use crate::window::{BucketLength, Window};

/// The longest wait for a borrowed pass that Sentinel allows, ns.
pub const MAX_WAIT_NS: u64 = 500_000_000;

const COUNT_MAX: u32 = 0xffff;

/// A word of borrowed passes taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct BorrowedPasses {
    epoch: u16,
    previous: u32,
    current: u32,
    next: u32,
}

impl BorrowedPasses {
    /// What `word` holds, seen from `epoch`; a word that is newer by one or two buckets is used as
    /// it is.
    #[inline]
    pub const fn at(word: u64, epoch: u16) -> Self {
        let held = Self {
            epoch: (word >> 48 & 0xffff) as u16,
            previous: (word >> 32 & 0xffff) as u32,
            current: (word >> 16 & 0xffff) as u32,
            next: (word & 0xffff) as u32,
        };
        let (previous, current) = match epoch.wrapping_sub(held.epoch) {
            0 | 0xfffe | 0xffff => return held,
            1 => (held.current, held.next),
            2 => (held.next, 0),
            _ => (0, 0),
        };
        Self {
            epoch,
            previous,
            current,
            next: 0,
        }
    }

    /// As [`BorrowedPasses::at`], where Sentinel looks into or counts in the node's present bucket. What was borrowed
    /// for a bucket in which nobody did is lost there: a bucket takes its loans over when it is first used.
    pub const fn at_use(word: u64, epoch: u16) -> Self {
        let held = Self::at(word, epoch);
        let used = (word >> 48 & 0xffff) as u16;
        if epoch.wrapping_sub(used) == 2 {
            Self {
                previous: 0,
                ..held
            }
        } else {
            held
        }
    }

    /// The word to store.
    #[inline]
    pub const fn word(self) -> u64 {
        (self.epoch as u64) << 48
            | (self.previous as u64) << 32
            | (self.current as u64) << 16
            | self.next as u64
    }

    /// Borrowed passes that are in the present window.
    #[inline]
    pub const fn arrived(self) -> u32 {
        self.previous.saturating_add(self.current)
    }

    /// Borrows `n` from the next bucket for a request that `window` has no room for; gives the wait
    /// and what is borrowed then. Nothing can be borrowed where the wait is `max_wait_ns` or more,
    /// so with half seconds not on the edge of a bucket.
    pub fn try_borrow(
        self,
        request: BorrowRequest,
        window: Window,
        limit: u32,
    ) -> Option<(u64, Self)> {
        let BorrowRequest {
            n,
            now_ns,
            bucket,
            max_wait_ns,
            quirks,
        } = request;
        let epoch = bucket.epoch(now_ns);
        if self.epoch != epoch || window.epoch() != epoch || self.next >= limit {
            return None;
        }
        let wait_ns = bucket.until_edge_ns(now_ns);
        let next = self.next.saturating_add(n);
        // What is in the window now leaves it with the previous bucket.
        let then = window
            .current()
            .saturating_add(self.current)
            .saturating_add(next);
        let leaves = window.previous().saturating_add(self.previous);
        let fits = then <= limit && (next <= leaves || quirks.wanted());
        if wait_ns >= max_wait_ns || !fits || next > COUNT_MAX {
            return None;
        }
        Some((wait_ns, Self { next, ..self }))
    }

    /// Without `n` passes that were borrowed when the epoch was `lent`.
    pub const fn give_back(self, n: u32, lent: u16) -> Self {
        match self.epoch.wrapping_sub(lent) {
            0 => Self {
                next: self.next.saturating_sub(n),
                ..self
            },
            1 => Self {
                current: self.current.saturating_sub(n),
                ..self
            },
            2 => Self {
                previous: self.previous.saturating_sub(n),
                ..self
            },
            _ => self,
        }
    }
}

/// Who wants to borrow.
#[derive(Debug, Clone, Copy)]
pub struct BorrowRequest {
    /// How many passes.
    pub n: u32,
    /// When.
    pub now_ns: u64,
    /// The window's buckets.
    pub bucket: BucketLength,
    /// A wait of this or more is refused, see [`MAX_WAIT_NS`].
    pub max_wait_ns: u64,
    /// With quirks what fits the next window as it is now is lent.
    pub quirks: Quirks,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const BUCKET: BucketLength = BucketLength::HALF_SECOND;

    fn borrow(word: u64, window: Window, at_ms: u64, n: u32, limit: u32) -> Option<(u64, u64)> {
        let now_ns = at_ms * MS;
        let request = BorrowRequest {
            n,
            now_ns,
            bucket: BUCKET,
            max_wait_ns: MAX_WAIT_NS,
            quirks: Quirks::None,
        };
        let held = BorrowedPasses::at(word, BUCKET.epoch(now_ns));
        let (wait_ns, next) = held.try_borrow(request, window, limit)?;
        Some((wait_ns / MS, next.word()))
    }

    #[test]
    fn room_of_the_next_bucket_is_lent_and_arrives_with_it() {
        let full = Window::at(0, 20).add(3);
        let full = Window::at(full.word(), 21).add(2);
        let (wait_ms, word) = borrow(0, full, 10_600, 3, 5).unwrap();
        assert_eq!(wait_ms, 400);
        // 2 in the current bucket and 3 borrowed fill the next window.
        assert_eq!(borrow(word, full, 10_600, 1, 5), None);
        let arrived = |epoch| BorrowedPasses::at(word, epoch).arrived();
        assert_eq!([21, 22, 23, 24].map(arrived), [0, 3, 3, 0]);
    }

    #[test]
    fn sentinel_loses_what_was_lent_to_a_bucket_that_nobody_used() {
        let full = Window::at(Window::at(0, 20).add(2).word(), 21);
        let (_wait_ms, lent) = borrow(0, full, 10_600, 2, 2).unwrap();
        let arrived = |word, epoch| BorrowedPasses::at_use(word, epoch).arrived();
        assert_eq!([21, 22, 23].map(|epoch| arrived(lent, epoch)), [0, 2, 0]);
        let used = BorrowedPasses::at_use(lent, 22).word();
        assert_eq!([23, 24].map(|epoch| arrived(used, epoch)), [2, 0]);
    }

    #[test]
    fn nothing_is_lent_on_an_edge_or_to_a_late_reader() {
        let full = Window::at(Window::at(0, 20).add(2).word(), 21);
        assert_eq!(borrow(0, full, 10_500, 1, 5), None);
        assert!(borrow(0, full, 10_501, 1, 5).is_some());
        let closed = BorrowedPasses::at(0, 22).word();
        assert_eq!(borrow(closed, full, 10_999, 1, 5), None);
        assert_eq!(borrow(0, full, 10_501, COUNT_MAX + 1, u32::MAX), None);
    }

    #[test]
    fn a_loan_is_given_back_from_the_bucket_it_has_come_to() {
        let full = Window::at(Window::at(0, 20).add(2).word(), 21);
        let (_wait_ms, word) = borrow(0, full, 10_600, 2, 2).unwrap();
        for epoch in 21..=23 {
            let left = BorrowedPasses::at(word, epoch).give_back(2, 21);
            let later = BorrowedPasses::at(left.word(), epoch + 1);
            assert_eq!((left.arrived(), later.arrived()), (0, 0));
        }
        assert_eq!(BorrowedPasses::at(word, 22).give_back(2, 9).arrived(), 2);
    }
}
