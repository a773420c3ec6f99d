//! What several groups have in common: the limits of the groups above them, each read once in a tick.

use std::path::{Path, PathBuf};

use super::cpu_list::CpuListReader;
use super::quota::QuotaReader;
use crate::procfs::Place;

/// Limits of all watched groups and of the groups above them.
#[derive(Debug, Default)]
pub(crate) struct Above {
    pub(super) quotas: Shared<QuotaReader>,
    pub(super) cpu_lists: Shared<CpuListReader>,
    /// Counts the ticks.
    pub(super) tick: u64,
}

impl Above {
    /// Begins a tick: what was read before counts no more.
    pub(crate) fn begin_tick(&mut self) {
        self.tick = self.tick.saturating_add(1);
    }
}

/// Names a shared reader for as long as one who asked for it has not given it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SharedKey(usize);

/// Readers by the directory that they read.
#[derive(Debug)]
pub(super) struct Shared<T> {
    slots: Vec<Option<Slot<T>>>,
}

#[derive(Debug)]
struct Slot<T> {
    dir: PathBuf,
    users: usize,
    reader: T,
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self { slots: Vec::new() }
    }
}

impl<T> Shared<T> {
    /// The reader of a place, made on first use.
    pub(super) fn take(&mut self, place: &Place, make: impl FnOnce(&Place) -> T) -> SharedKey {
        let dir = place.dir();
        if let Some(key) = self.share(&dir) {
            return key;
        }
        let slot = Some(Slot {
            users: 1,
            reader: make(place),
            dir,
        });
        if let Some(free) = self.slots.iter().position(Option::is_none) {
            if let Some(place) = self.slots.get_mut(free) {
                *place = slot;
            }
            return SharedKey(free);
        }
        self.slots.push(slot);
        SharedKey(self.slots.len().saturating_sub(1))
    }

    fn share(&mut self, dir: &Path) -> Option<SharedKey> {
        let slots = self.slots.iter_mut().enumerate();
        let mut known = slots.filter_map(|(index, slot)| Some((index, slot.as_mut()?)));
        let (index, slot) = known.find(|(_index, slot)| slot.dir == dir)?;
        slot.users = slot.users.saturating_add(1);
        Some(SharedKey(index))
    }

    /// Gives a reader back; the last one to do so ends it.
    pub(super) fn give_back(&mut self, key: SharedKey) {
        if let Some(slot) = self.slots.get_mut(key.0) {
            let rest = slot.take().and_then(|mut held| {
                held.users = held.users.checked_sub(1)?;
                Some(held)
            });
            *slot = rest.filter(|held| held.users > 0);
        }
    }

    /// The reader of a key.
    pub(super) fn get_mut(&mut self, key: SharedKey) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.0)?.as_mut()?;
        Some(&mut slot.reader)
    }
}

/// What was read in a tick, for whoever asks again in the same one.
#[derive(Debug)]
pub(super) struct OfTick<V> {
    tick: u64,
    value: Option<V>,
}

impl<V> Default for OfTick<V> {
    fn default() -> Self {
        Self {
            tick: 0,
            value: None,
        }
    }
}

impl<V> OfTick<V> {
    /// What was read in this tick already, or what `read` reads now.
    pub(super) fn get(&mut self, tick: u64, read: impl FnOnce() -> V) -> &V {
        if self.tick != tick {
            self.tick = tick;
            self.value = None;
        }
        self.value.get_or_insert_with(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procfs::Version;

    #[test]
    fn a_reader_lives_as_long_as_somebody_has_it() {
        let place = |below: &str| Place {
            version: Version::V2,
            point: "/cg".into(),
            below: below.into(),
            has_no_prefix: false,
            is_whole: true,
        };
        let mut shared: Shared<u32> = Shared::default();
        let one = shared.take(&place("a"), |_place| 1);
        let same = shared.take(&place("a"), |_place| 2);
        let other = shared.take(&place("b"), |_place| 3);
        assert_eq!((one == same, shared.get_mut(one)), (true, Some(&mut 1)));
        assert_eq!(shared.get_mut(other), Some(&mut 3));
        shared.give_back(one);
        assert_eq!(shared.get_mut(same), Some(&mut 1));
        shared.give_back(same);
        assert_eq!(shared.get_mut(same), None);
        let anew = shared.take(&place("a"), |_place| 4);
        assert_eq!((anew, shared.get_mut(anew)), (one, Some(&mut 4)));
    }

    #[test]
    fn what_was_read_counts_in_its_own_tick() {
        let mut of_tick = OfTick::default();
        let told = [(1, 7), (1, 8), (2, 9)].map(|(tick, now)| *of_tick.get(tick, || now));
        assert_eq!(told, [7, 7, 9]);
    }
}
