//! What passed in the last two buckets of time, in one word.
//!
//! ```text
//! [epoch 16 | previous bucket 24 | current bucket 24]
//! ```
//!
//! * **epoch**: number of the current bucket since the clock's zero, modulo 2^16. With buckets of
//!   500 ms it comes round after 9.1 hours; a word that was idle for just that long (within two
//!   buckets) counts its old passes for at most four buckets more. It never admits more for it.
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

    /// A second: the previous bucket is what passed in the whole second before
    /// (see [`crate::warm_up`]).
    pub const SECOND: Self = match NonZeroU64::new(crate::number::NS_PER_S) {
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

    /// The word with `n` passes more where that takes no thought: it is of the epoch, and the passes fit
    /// below the limit and the field. `None` says nothing but to look closely, with [`Window::at`].
    #[inline]
    pub const fn add_at_once(word: u64, epoch: u16, n: u32, limit: u32) -> Option<u64> {
        // Without its epoch, the two counts are left; with another one, the first is more than any limit.
        let counts = word.wrapping_sub((epoch as u64) << 48);
        let (previous, current) = (counts >> 24, counts & COUNT_MAX as u64);
        let limit = if limit < COUNT_MAX { limit } else { COUNT_MAX };
        // Three numbers of at most 40 bits.
        let with_these = previous.wrapping_add(current).wrapping_add(n as u64);
        if with_these <= limit as u64 {
            Some(word.wrapping_add(n as u64))
        } else {
            None
        }
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
