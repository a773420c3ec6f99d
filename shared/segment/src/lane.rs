//! Which lane a thread writes.
//!
//! A lane is a private row of counters: one thread writes it with plain loads and stores, which cost
//! a fraction of a locked instruction. A thread takes a free lane at its first decision and gives it
//! back when it ends; threads that find none share lane 0 and pay for read-modify-write.

#[cfg(not(loom))]
pub use held::current;
#[cfg(not(loom))]
pub(crate) use held::taken;

/// Loom's threads have the lanes that they name.
#[cfg(loom)]
pub(crate) const fn taken(lane: Lane) -> Lane {
    lane
}

/// A thread's lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lane(u32);

impl Lane {
    /// The lane that any thread may write, with read-modify-write.
    pub const SHARED: Self = Self(0);

    /// A lane that the caller alone writes, for tests and benches; 0 is the shared one.
    pub const fn numbered(index: u32) -> Self {
        Self(index)
    }

    /// Number of the lane.
    #[inline(always)]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Number of the lane; a page with fewer lanes takes the shared one instead.
    #[inline(always)]
    pub const fn within(self, lanes: u32) -> u32 {
        if self.0 < lanes { self.0 } else { 0 }
    }
}

/// Which thread holds which lane; loom's threads name theirs themselves.
#[cfg(not(loom))]
mod held {
    use std::cell::Cell;

    use super::Lane;
    use crate::sync::{Ordering, Word};

    /// Which lanes of this process have a thread: one bit each, bit 0 (shared) always set.
    ///
    /// One mask for the process is enough: a lane number is private to a thread in every session.
    static TAKEN: Word = Word::new(1);

    /// Gives the lane back when its thread ends.
    #[derive(Debug)]
    struct Holder(Cell<u32>);

    impl Drop for Holder {
        fn drop(&mut self) {
            let bit = 1_u64.checked_shl(self.0.get()).unwrap_or(0) & !1;
            // Release: pairs with the Acquire in `take`; the next holder goes on from this thread's stores.
            TAKEN.change(Ordering::Release, |taken| taken & !bit);
            // Decisions while other thread-locals are torn down.
            MINE.set(SHARED);
        }
    }

    const SHARED: u32 = 0;
    const UNASKED: u32 = u32::MAX;

    thread_local! {
        /// Read at every decision: a plain number, without the state of a value that is to be dropped.
        static MINE: Cell<u32> = const { Cell::new(UNASKED) };
        static HELD: Holder = Holder(Cell::new(take()));
    }

    fn take() -> u32 {
        // Acquire: pairs with the Release of the thread that had the lane before.
        let before = TAKEN.change(Ordering::Acquire, |taken| taken | taken.wrapping_add(1));
        match before.trailing_ones() {
            lane if lane < u64::BITS => lane,
            _full => 0,
        }
    }

    /// The lane of the calling thread; before its first decision, one that no row has.
    #[inline(always)]
    pub fn current() -> Lane {
        Lane(MINE.get())
    }

    /// The lane of the calling thread, where `lane` says that it has not taken one yet.
    #[inline(always)]
    pub(crate) fn taken(lane: Lane) -> Lane {
        match lane.0 {
            UNASKED => first(),
            _ => lane,
        }
    }

    #[cold]
    #[inline(never)]
    fn first() -> Lane {
        let lane = HELD.try_with(|held| held.0.get()).unwrap_or(SHARED);
        MINE.set(lane);
        Lane(lane)
    }
}
