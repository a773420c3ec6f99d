//! How many times a state may be entered in an hour.

use core::cmp::Reverse;

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
        self.wait_ns(now_ns, most_changes).is_none()
    }

    /// Time until an entry and its leaving stay within so many changes an hour; `None` where they do now.
    pub fn wait_ns(&self, now_ns: u64, most_changes: u32) -> Option<u64> {
        let this = second(now_ns);
        let age = |at_s: &u32| this.saturating_sub(*at_s);
        let recent = |at_s: &&u32| **at_s > 0 && age(at_s) < HOUR_S;
        let most = usize::try_from(most_changes / 2).unwrap_or(ENTRIES);
        let most = most.min(ENTRIES);
        let mut ages = [0; ENTRIES];
        let mut count = 0_usize;
        for (slot, at_s) in ages.iter_mut().zip(self.entries_s.iter().filter(recent)) {
            *slot = age(at_s);
            count = count.saturating_add(1);
        }
        if count < most {
            return None;
        }
        // The youngest are as many as there may be with one more; the next older one has to grow an hour old.
        ages.sort_unstable_by_key(|age| Reverse(*age));
        let oldest_kept = count.checked_sub(most).and_then(|place| ages.get(place));
        let wait_s = oldest_kept.map_or(HOUR_S, |age_s| HOUR_S.saturating_sub(*age_s));
        Some(u64::from(wait_s).saturating_mul(NS_PER_S))
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
        assert_eq!(
            budget.wait_ns(1_800_000_000_000, 12),
            Some(1_800_000_000_000)
        );
        assert_eq!(
            budget.wait_ns(1_800_000_000_000, 10),
            Some(1_860_000_000_000)
        );
        assert_eq!(budget.wait_ns(1_800_000_000_000, 14), None);
        assert!(budget.has_room(3_600_000_000_000, 12));
    }
}
