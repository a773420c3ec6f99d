//! What the dead did, and what of it is known.

use tidegate_segment::ledger::NodeCounts;

use crate::diary::{Count, Diary, Doing};
use crate::resource::{OF_VALUES, PLACES, VALUES, part};

/// A number that is known but for the steps that those were in who died in this round.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct About {
    pub(super) least: u64,
    pub(super) doubt: u64,
}

impl About {
    /// What of the doubt turned out to be so.
    pub(super) fn check(self, what: &str, seen: u64) -> u64 {
        let Self { least, doubt } = self;
        let most = least + doubt;
        assert!(
            (least..=most).contains(&seen),
            "{what}: {seen}, not {least} to {most}"
        );
        seen - least
    }

    pub(super) fn settle(&mut self, so: u64) {
        self.least += so;
        self.doubt = 0;
    }

    fn add(&mut self, seen: u64, doubt: bool) {
        self.least += seen;
        self.doubt += u64::from(doubt);
    }
}

/// What the dead did on a place since its slot was given last.
#[derive(Debug, Clone, Default)]
pub(super) struct OfPlace {
    pub(super) passed: About,
    pub(super) refused: About,
    pub(super) ended: About,
    /// Passes by their diaries alone.
    pub(super) noted: u64,
    /// Counts of seats that were cleared.
    pub(super) kept: NodeCounts,
    /// This round, the last one, and the one before.
    pub(super) rounds: [Round; 3],
}

/// Passes of a round, as the diaries have them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Round {
    /// All up to its end.
    pub(super) passed: u64,
    /// Of this round alone, of those who died in it.
    pub(super) doubt: u64,
}

/// What the dead did.
#[derive(Debug, Clone, Default)]
pub(super) struct Past {
    pub(super) places: [OfPlace; PLACES],
    pub(super) value_took: [About; VALUES],
}

impl Past {
    /// Adds a dead process' diary; `is_now` says whether a place was given last for that time.
    pub(super) fn bury(&mut self, diary: Diary, is_now: impl Fn(usize, u64) -> bool) {
        let doing = diary.doing();
        for (place, past) in self.places.iter_mut().enumerate() {
            if !is_now(place, diary.generation(place)) {
                // It had not heard that the slot was given again.
                continue;
            }
            let here =
                |resource, number| resource == place || part(resource, number) == Some(place);
            let entering =
                matches!(doing, Doing::Entering(resource, number) if here(resource, number));
            let leaving =
                matches!(doing, Doing::Leaving(resource, number) if here(resource, number));
            past.passed.add(diary.get(Count::Passed(place)), entering);
            past.refused.add(diary.get(Count::Refused(place)), entering);
            past.ended.add(diary.get(Count::Ended(place)), leaving);
            past.noted += diary.get(Count::Passed(place));
            past.rounds[0].doubt += u64::from(entering);
        }
        for (number, took) in self.value_took.iter_mut().enumerate() {
            let entering = doing == Doing::Entering(OF_VALUES, number);
            took.add(diary.get(Count::ValueTook(number)), entering);
        }
    }

    /// On to the next round.
    pub(super) fn turn(&mut self) {
        for past in &mut self.places {
            let [this, last, _] = past.rounds;
            past.rounds = [Round::default(), this, last];
        }
    }
}
