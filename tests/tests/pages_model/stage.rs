//! What the host moves and all see: the round, the time, and whose the slots are.

use tidegate_segment::clock::Clock;
use tidegate_segment::page::Page;
use tidegate_segment::sync::{Ordering, Word};

use crate::resource::PLACES;

/// Words of a stage.
pub(crate) const WORDS: usize = 2 + PLACES;

/// The round in which a process ends.
pub(crate) const END: u64 = u64::MAX;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Stage(&'static [Word]);

impl Stage {
    pub(crate) fn of(page: Page) -> Self {
        Self(&page.words()[..WORDS])
    }

    pub(crate) fn round(self) -> u64 {
        self.0[0].load(Ordering::SeqCst)
    }

    /// Begins a round at a time.
    pub(crate) fn begin(self, round: u64, now_ns: u64) {
        self.0[1].store(now_ns, Ordering::SeqCst);
        self.0[0].store(round, Ordering::SeqCst);
    }

    pub(crate) fn end(self) {
        self.0[0].store(END, Ordering::SeqCst);
    }

    /// For which time the slot of a place is given; `None` while it is nobody's.
    pub(crate) fn generation(self, place: usize) -> Option<u16> {
        let word = self.0[2 + place].load(Ordering::SeqCst);
        u16::try_from(word)
            .ok()
            .filter(|generation| *generation != 0)
    }

    pub(crate) fn give(self, place: usize, generation: Option<u16>) {
        let word = generation.map_or(0, u64::from);
        self.0[2 + place].store(word, Ordering::SeqCst);
    }
}

impl Clock for Stage {
    fn now_ns(&self) -> u64 {
        self.0[1].load(Ordering::SeqCst)
    }
}
