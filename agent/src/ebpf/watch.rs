//! Which slot counts for which control group: watched groups and all groups below them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tidegate_abi::kernel::group::{self, ELSEWHERE, PLACES, TRIES};
use tidegate_abi::kernel::task;

/// How deep groups below a watched one are followed; a container in a container is at about four.
const DEPTH_MAX: usize = 8;
/// Most groups that are given a slot: half of the table, so that each finds a place.
const GROUPS_MAX: usize = (PLACES / 2) as usize;

/// A change of what is watched, told by the tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Watched {
    /// Its slot in the maps.
    pub(crate) slot: u32,
    /// Directory of the group in the cpu hierarchy; `None` if the slot is free again.
    pub(crate) dir: Option<PathBuf>,
}

/// The watched groups.
#[derive(Debug, Default)]
pub(super) struct Watch {
    groups: BTreeMap<u32, PathBuf>,
}

impl Watch {
    /// Takes a change.
    pub(super) fn take(&mut self, Watched { slot, dir }: Watched) {
        match dir {
            Some(dir) => drop(self.groups.insert(slot, dir)),
            None => drop(self.groups.remove(&slot)),
        }
    }

    /// The slot that counts for the group in a directory: that of the nearest watched group.
    pub(super) fn slot_of(&self, dir: &Path) -> Option<u32> {
        let around = self
            .groups
            .iter()
            .filter(|(_slot, top)| dir.starts_with(top));
        let nearest = around.max_by_key(|(_slot, top)| top.components().count());
        nearest.map(|(slot, _top)| *slot)
    }

    /// Every group in a watched one, by its id, with its slot. The second is how many were left out,
    /// because there are too many.
    pub(super) fn slots(&self) -> (BTreeMap<u64, u32>, usize) {
        let mut found = Found::default();
        for (slot, top) in self.outer_first() {
            found.walk(top, slot, DEPTH_MAX);
        }
        (found.slots, found.left_out)
    }

    /// The words that give each thread of a watched group its slot, for programs that know tasks by
    /// pid alone: the pid above, the slot below.
    pub(super) fn tasks(&self) -> BTreeMap<u32, u64> {
        let mut tasks = BTreeMap::new();
        for (slot, top) in self.outer_first() {
            each_group(top, DEPTH_MAX, &mut |dir| {
                for list in ["tasks", "cgroup.threads"] {
                    let text = fs::read_to_string(dir.join(list)).unwrap_or_default();
                    let tids = text.lines().filter_map(|line| line.parse().ok());
                    tasks.extend(tids.map(|tid: u32| {
                        let word = u64::from(tid) << 32 | u64::from(slot);
                        (task::place(tid), word)
                    }));
                }
            });
        }
        tasks
    }

    /// Slots and directories, outer groups first, so that a watched group within another one has
    /// the last word.
    fn outer_first(&self) -> Vec<(u32, &Path)> {
        let mut tops: Vec<_> = self
            .groups
            .iter()
            .map(|(slot, top)| (*slot, &**top))
            .collect();
        tops.sort_by_key(|(_slot, top)| top.components().count());
        tops
    }
}

#[derive(Debug, Default)]
struct Found {
    slots: BTreeMap<u64, u32>,
    left_out: usize,
}

impl Found {
    fn walk(&mut self, top: &Path, slot: u32, depth: usize) {
        each_group(top, depth, &mut |dir| {
            // The id of a group is the number of its directory; one that is gone needs no slot.
            let Ok(found) = fs::metadata(dir) else { return };
            if self.slots.len() >= GROUPS_MAX && !self.slots.contains_key(&found.ino()) {
                self.left_out = self.left_out.saturating_add(1);
            } else {
                self.slots.insert(found.ino(), slot);
            }
        });
    }
}

fn each_group(dir: &Path, depth: usize, take: &mut dyn FnMut(&Path)) {
    take(dir);
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            each_group(&entry.path(), depth, take);
        }
    }
}

/// The table as it should be: words by place. The second is how many groups found no place.
pub(super) fn table(slots: &BTreeMap<u64, u32>) -> (BTreeMap<u32, u64>, usize) {
    let mut table = BTreeMap::new();
    let mut unplaced = 0_usize;
    for (id, slot) in slots.iter().filter(|(_id, slot)| **slot != ELSEWHERE) {
        let mut places = (0..TRIES).map(|attempt| group::place(*id, attempt));
        let free = places.find(|place| !table.contains_key(place));
        match free.zip(group::word(*id, *slot)) {
            Some((place, word)) => drop(table.insert(place, word)),
            None => unplaced = unplaced.saturating_add(1),
        }
    }
    (table, unplaced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_below_count_for_the_nearest_watched_group() {
        let top = tempfile::tempdir().unwrap();
        let outer = top.path().join("outer");
        let inner = outer.join("inner");
        let below = inner.join("container");
        fs::create_dir_all(&below).unwrap();
        fs::create_dir(outer.join("other")).unwrap();
        let mut watch = Watch::default();
        for (slot, dir) in [(1, &inner), (2, &outer)] {
            watch.take(Watched {
                slot,
                dir: Some(dir.clone()),
            });
        }
        let slot = |dir: &Path, slots: &BTreeMap<u64, u32>| {
            slots.get(&fs::metadata(dir).unwrap().ino()).copied()
        };
        let (slots, left_out) = watch.slots();
        assert_eq!((slots.len(), left_out), (4, 0));
        assert_eq!(slot(&below, &slots), Some(1));
        assert_eq!(slot(&outer.join("other"), &slots), Some(2));
        assert_eq!(watch.slot_of(&below), Some(1));
        assert_eq!(watch.slot_of(top.path()), None);
        watch.take(Watched { slot: 1, dir: None });
        assert_eq!(slot(&below, &watch.slots().0), Some(2));
    }

    #[test]
    fn the_table_gives_each_group_its_slot() {
        let slots: BTreeMap<u64, u32> = (1_u32..=1500)
            .map(|id| (u64::from(id), id % 255 + 1))
            .collect();
        let (table, unplaced) = table(&slots);
        assert_eq!(table.len() + unplaced, 1500);
        assert!(unplaced < 15, "{unplaced} of 1500 found no place");
        let mut missed = 0;
        for (id, slot) in &slots {
            // As the programs look: up to the first free place.
            let mut words = (0..TRIES).map_while(|attempt| table.get(&group::place(*id, attempt)));
            let found = words.find_map(|word| group::slot(*word, *id));
            missed += usize::from(found.is_none());
            assert!(found.is_none_or(|found| found == *slot));
        }
        assert_eq!(missed, unplaced);
    }
}
