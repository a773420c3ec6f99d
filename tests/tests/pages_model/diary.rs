//! What each process writes down of itself, where a kill cannot take it away.

use tidegate_segment::page::Page;
use tidegate_segment::sync::{Ordering, Word};

use crate::resource::{PLACES, VALUES};

/// Words of a diary.
pub(crate) const WORDS: usize = 9 * ROW;

/// Words of one count, for each place or value.
const ROW: usize = 12;

/// One process' diary: words that it alone writes, one after each step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Diary(&'static [Word]);

/// The step that a process is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    Nothing,
    /// Enters a resource with a value.
    Entering(usize, usize),
    /// Gives back a permit of a resource with a value.
    Leaving(usize, usize),
}

/// Counts of a process; those of a place are of the time since its slot was given last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    Passed(usize),
    Refused(usize),
    /// Refused because the window was full, in this round.
    WindowFull(usize),
    Ended(usize),
    Held(usize),
    ValueHeld(usize),
    /// Took a token of a value: passed, or was refused by a rule that is asked later.
    ValueTook(usize),
}

impl Count {
    const fn place(self) -> usize {
        match self {
            Self::Passed(place) => ROW + place,
            Self::Refused(place) => 2 * ROW + place,
            Self::WindowFull(place) => 3 * ROW + place,
            Self::Ended(place) => 4 * ROW + place,
            Self::Held(place) => 5 * ROW + place,
            Self::ValueHeld(value) => 6 * ROW + value,
            Self::ValueTook(value) => 7 * ROW + value,
        }
    }
}

const _FITS: () = assert!(PLACES <= ROW && VALUES <= ROW);

impl Diary {
    pub(crate) fn of(page: Page, worker: usize) -> Self {
        Self(&page.words()[worker * WORDS..(worker + 1) * WORDS])
    }

    /// Begins anew, for a process that takes the place of a dead one.
    pub(crate) fn clear(self) {
        for word in self.0 {
            word.store(0, Ordering::SeqCst);
        }
    }

    /// For which time of a place's slot its counts are.
    pub(crate) fn generation(self, place: usize) -> u64 {
        self.0[8 * ROW + place].load(Ordering::SeqCst)
    }

    /// Begins to count anew on a place whose slot was given again.
    pub(crate) fn begin_place(self, place: usize, generation: u16) {
        for count in [
            Count::Passed(place),
            Count::Refused(place),
            Count::WindowFull(place),
            Count::Ended(place),
            Count::Held(place),
        ] {
            self.set(count, 0);
        }
        self.0[8 * ROW + place].store(generation.into(), Ordering::SeqCst);
    }

    pub(crate) fn doing(self) -> Doing {
        let word = self.0[0].load(Ordering::SeqCst);
        let (resource, value) = ((word >> 8 & 0xff) as usize, (word >> 16) as usize);
        match word & 0xff {
            1 => Doing::Entering(resource, value),
            2 => Doing::Leaving(resource, value),
            _ => Doing::Nothing,
        }
    }

    pub(crate) fn does(self, doing: Doing) {
        let word = match doing {
            Doing::Nothing => 0,
            Doing::Entering(resource, value) => 1 | (resource as u64) << 8 | (value as u64) << 16,
            Doing::Leaving(resource, value) => 2 | (resource as u64) << 8 | (value as u64) << 16,
        };
        self.0[0].store(word, Ordering::SeqCst);
    }

    /// The last round that the process has done.
    pub(crate) fn round(self) -> u64 {
        self.0[1].load(Ordering::SeqCst)
    }

    pub(crate) fn has_done(self, round: u64) {
        self.0[1].store(round, Ordering::SeqCst);
    }

    pub(crate) fn get(self, count: Count) -> u64 {
        self.0[count.place()].load(Ordering::SeqCst)
    }

    pub(crate) fn set(self, count: Count, value: u64) {
        self.0[count.place()].store(value, Ordering::SeqCst);
    }

    pub(crate) fn add(self, count: Count) {
        self.set(count, self.get(count) + 1);
    }

    pub(crate) fn less(self, count: Count) {
        self.set(count, self.get(count) - 1);
    }
}
