//! What a permit holds that does not fit into its words, in a table of the process.
//!
//! Rules of the table, counts of more than one and permits of the agent need more than most permits do. Places are used
//! again without a lock or an allocation; there are as many as were ever needed at once.

use std::sync::{Mutex, OnceLock, PoisonError};

use tidegate_segment::sync::{Ordering, Word};

use crate::admitted::Admitted;

/// Places of the first block; each further one has twice as many as the one before.
const FIRST: u32 = 64;
const BLOCKS: usize = 16;
/// All of them: two million.
const PLACES: u32 = FIRST * ((1 << BLOCKS) - 1);

/// The table.
#[derive(Debug)]
pub(crate) struct LongPermits {
    blocks: [OnceLock<Box<[Place]>>; BLOCKS],
    /// The free place used last: `[count of changes 32 | its number + 1, 0 = none 32]`. The count tells a head from
    /// the same one before.
    free: Word,
    /// Places that were ever used.
    used: Word,
}

#[derive(Debug)]
struct Place {
    /// Number + 1 of the free place below, 0 = none.
    below: Word,
    /// Its owner alone looks at it, so nobody waits for the lock.
    held: Mutex<Option<Admitted>>,
}

impl Default for LongPermits {
    fn default() -> Self {
        Self {
            blocks: [const { OnceLock::new() }; BLOCKS],
            free: Word::new(0),
            used: Word::new(0),
        }
    }
}

impl LongPermits {
    /// Keeps what a permit holds; gives its number. `None` if there is no room.
    pub(crate) fn keep(&self, admitted: Admitted) -> Option<u32> {
        let number = self.take_free().or_else(|| self.take_fresh())?;
        let place = self.place(number)?;
        *place.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(admitted);
        Some(number)
    }

    /// What is kept under a number.
    pub(crate) fn look(&self, number: u32) -> Option<Admitted> {
        let place = self.place(number)?;
        *place.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out what is kept under a number, which is another's then.
    pub(crate) fn take(&self, number: u32) -> Option<Admitted> {
        let place = self.place(number)?;
        let held = place
            .held
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()?;
        // Release: pairs with the Acquire in `take_free`; the next owner finds an empty place.
        self.free.change(Ordering::Release, |head| {
            place.below.store(head & LOW, Ordering::Relaxed);
            next_head(head, u64::from(number).saturating_add(1))
        });
        Some(held)
    }

    fn take_free(&self) -> Option<u32> {
        // Acquire: pairs with the Release in `take`.
        let before = self.free.change(Ordering::Acquire, |head| {
            match number_of(head).and_then(|number| self.place(number)) {
                // Stale where another was quicker; the count of changes tells then.
                Some(place) => next_head(head, place.below.load(Ordering::Relaxed)),
                None => head,
            }
        });
        number_of(before)
    }

    fn take_fresh(&self) -> Option<u32> {
        let used = |used: u64| (used < u64::from(PLACES)).then(|| used.saturating_add(1));
        let after = self.used.advance(used)?;
        let number = u32::try_from(after).ok()?.checked_sub(1)?;
        let (block, _within) = whereabouts(number)?;
        let _block: &[Place] = self.blocks.get(block)?.get_or_init(|| {
            let empty = |_place| Place {
                below: Word::new(0),
                held: Mutex::new(None),
            };
            (0..FIRST << block).map(empty).collect()
        });
        Some(number)
    }

    fn place(&self, number: u32) -> Option<&Place> {
        let (block, within) = whereabouts(number)?;
        self.blocks.get(block)?.get()?.get(within)
    }
}

const LOW: u64 = 0xffff_ffff;

/// The head after one with another place on top.
const fn next_head(head: u64, top: u64) -> u64 {
    (head >> 32).wrapping_add(1) << 32 | top & LOW
}

/// The number of the place on top.
fn number_of(head: u64) -> Option<u32> {
    u32::try_from(head & LOW).ok()?.checked_sub(1)
}

/// Block and place in it.
fn whereabouts(number: u32) -> Option<(usize, usize)> {
    let block = (number / FIRST).checked_add(1)?.ilog2();
    let before = FIRST * ((1_u32 << block) - 1);
    let within = number.checked_sub(before)?;
    Some((usize::try_from(block).ok()?, usize::try_from(within).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(number: u8) -> Admitted {
        Admitted::Asked {
            token: [number; 16],
            waited: std::time::Duration::ZERO,
        }
    }

    fn is_asked(admitted: Option<Admitted>, number: u8) -> bool {
        matches!(admitted, Some(Admitted::Asked { token, .. }) if token == [number; 16])
    }

    #[test]
    fn every_number_has_a_place_of_its_own() {
        let mut expected = (0, 0);
        for number in 0..100_000 {
            assert_eq!(whereabouts(number), Some(expected), "{number}");
            expected.1 += 1;
            if expected.1 == usize::try_from(FIRST << expected.0).unwrap() {
                expected = (expected.0 + 1, 0);
            }
        }
        let last = whereabouts(PLACES - 1).unwrap();
        assert_eq!(last, (BLOCKS - 1, (64 << (BLOCKS - 1)) - 1));
    }

    #[test]
    fn places_are_used_again_and_a_second_taking_finds_nothing() {
        let table = LongPermits::default();
        let first = table.keep(asked(1)).unwrap();
        let second = table.keep(asked(2)).unwrap();
        assert!(is_asked(table.look(first), 1));
        assert!(is_asked(table.take(first), 1));
        assert!(table.take(first).is_none());
        assert_eq!(table.keep(asked(3)), Some(first));
        assert!(is_asked(table.take(second), 2));
        assert!(is_asked(table.take(first), 3));
        assert_eq!(table.used.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn threads_never_share_a_place() {
        let table = LongPermits::default();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let table = &table;
                scope.spawn(move || {
                    for turn in 0..5_000 {
                        let numbers = [(); 3].map(|()| table.keep(asked(thread)).unwrap());
                        for number in numbers {
                            assert!(is_asked(table.take(number), thread), "turn {turn}");
                        }
                    }
                });
            }
        });
        assert!(table.used.load(Ordering::Relaxed) <= 12);
    }
}
