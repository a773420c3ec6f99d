//! Which slot counts for which control group: a table that the agent writes and the programs read.
//!
//! ```text
//! 63                                   8 7      0
//! [ id of the group                     | slot   ]
//! ```
//! A word stands in the first free one of [`TRIES`] places from the one on that its id hashes to; 0 is a free
//! place, so whoever looks for a group stops there.
//! A group without a word counts in slot [`ELSEWHERE`]. So the agent alone decides how many slots
//! there are, and nothing that happens on the host can fill a map.

/// Places in the table.
pub const PLACES: u32 = 1 << 12;
/// Places that a group may stand in.
pub const TRIES: u32 = 4;
/// Most slots.
pub const SLOTS_MAX: u32 = 1 << SLOT_BITS;
/// The slot of all groups that are not watched.
pub const ELSEWHERE: u32 = 0;

const SLOT_BITS: u32 = 8;
/// Spreads ids, which follow each other, over the table: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Place number `attempt` of a group.
#[inline(always)]
pub const fn place(id: u64, attempt: u32) -> u32 {
    let hash = (id.wrapping_mul(SPREAD) >> 52) as u32;
    hash.wrapping_add(attempt) & (PLACES - 1)
}

/// The word that gives a group its slot; `None` if the id or the slot does not fit.
pub const fn word(id: u64, slot: u32) -> Option<u64> {
    if id == 0 || id >> (64 - SLOT_BITS) != 0 || slot >= SLOTS_MAX {
        return None;
    }
    Some((id << SLOT_BITS) | slot as u64)
}

/// The slot that a word gives to a group, if it speaks of that group.
#[inline(always)]
pub const fn slot(word: u64, id: u64) -> Option<u32> {
    if word >> SLOT_BITS == id && id != 0 {
        Some((word & (SLOTS_MAX as u64 - 1)) as u32)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_speaks_of_its_group_alone() {
        let id = (3 << 32) + 77;
        let said = word(id, 9).unwrap();
        assert_eq!(slot(said, id), Some(9));
        assert_eq!(slot(said, id + 1), None);
        assert_eq!(slot(0, 0), None);
    }

    #[test]
    fn what_does_not_fit_has_no_word() {
        assert_eq!(word(0, 1), None);
        assert_eq!(word(u64::MAX, 1), None);
        assert_eq!(word(1, SLOTS_MAX), None);
    }

    #[test]
    fn places_are_in_the_table_and_follow_each_other() {
        for id in [1, 2, 4096, u64::MAX] {
            let first = place(id, 0);
            assert!(first < PLACES);
            assert_eq!(place(id, 1), (first + 1) % PLACES);
        }
    }
}
