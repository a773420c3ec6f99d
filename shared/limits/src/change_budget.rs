//! How many times a state may be entered in an hour.

use crate::number::NS_PER_S;

const HOUR_S: u32 = 3600;
/// Entries remembered; a larger budget is cut to this.
const ENTRIES: usize = 16;

/// The entries of the last hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChangeBudget {
    /// Second of each entry, from 1; 0 = none.
    entries_s: [u32; ENTRIES],
    oldest: usize,
}

impl ChangeBudget {
    /// The state is entered.
    pub fn enter(&mut self, now_ns: u64) {
        if let Some(slot) = self.entries_s.get_mut(self.oldest) {
            *slot = second(now_ns);
        }
        self.oldest = self.oldest.wrapping_add(1) & ENTRIES.saturating_sub(1);
    }

    /// Whether an entry and its leaving stay within so many changes an hour.
    pub fn has_room(&self, now_ns: u64, most_changes: u32) -> bool {
        let this = second(now_ns);
        let recent = |at_s: &&u32| **at_s > 0 && this.saturating_sub(**at_s) < HOUR_S;
        let recent = self.entries_s.iter().filter(recent).count();
        let most = usize::try_from(most_changes / 2).unwrap_or(ENTRIES);
        recent < most.min(ENTRIES)
    }
}

/// Number of a second, from 1; more than a hundred years are one.
fn second(now_ns: u64) -> u32 {
    let second = u32::try_from(now_ns / NS_PER_S).unwrap_or(u32::MAX);
    second.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_again_an_hour_after_the_oldest_entry() {
        let mut budget = ChangeBudget::default();
        for minute in 0..6 {
            assert!(budget.has_room(minute * 60_000_000_000, 12));
            budget.enter(minute * 60_000_000_000);
        }
        assert!(!budget.has_room(3_599_999_999_999, 12));
        assert!(budget.has_room(3_600_000_000_000, 12));
    }
}
