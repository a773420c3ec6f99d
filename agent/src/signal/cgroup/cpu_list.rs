//! The CPUs that a group may run on.

use super::super::parse::cpu_set::{self, CpuSet};
use super::above::{Above, OfTick, SharedKey};
use crate::procfs::Place;
use crate::procfs::kept_file::{KeptFile, ReadBuffer};
use crate::procfs::{Missing, NamedSource as _, NoValue};

/// What the names of its files begin with, mostly.
const CPUSET: &str = "cpuset.";

/// CPU lists of a group and of every group above it, the group itself first.
#[derive(Debug)]
pub(super) struct CpuListChain {
    levels: Vec<SharedKey>,
}

impl CpuListChain {
    /// Readers for the group at `place` and all above it up to the mount.
    pub(super) fn new(place: &Place, above: &mut Above) -> Self {
        let lists = &mut above.cpu_lists;
        let levels = place.chain();
        let levels = levels.map(|place| lists.take(&place, CpuListReader::new));
        Self {
            levels: levels.collect(),
        }
    }

    /// Ends the readers that no other group has.
    pub(super) fn end(&self, above: &mut Above) {
        for level in &self.levels {
            above.cpu_lists.give_back(*level);
        }
    }

    /// The list of the nearest group that has one: what the kernel says that this group may run on. A partition has
    /// CPUs that no group above it has, so lists of several groups are never put together. `false` = none has a list.
    ///
    /// # Errors
    /// A list that is there and cannot be told.
    pub(super) fn sample(
        &self,
        buffer: &mut ReadBuffer,
        above: &mut Above,
        allowed: &mut CpuSet,
    ) -> Result<bool, Missing> {
        for level in &self.levels {
            if let Some(reader) = above.cpu_lists.get_mut(*level)
                && let Some(list) = reader.read(above.tick, buffer)?
            {
                *allowed = *list;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The list of one group.
#[derive(Debug)]
pub(super) struct CpuListReader {
    files: [(&'static str, KeptFile); 2],
    read: OfTick<Result<Option<CpuSet>, Missing>>,
}

impl CpuListReader {
    fn new(place: &Place) -> Self {
        let dir = place.dir();
        let names = place.version.truth().cpu_lists;
        let path = |name: &str| {
            let short = name.strip_prefix(CPUSET).filter(|_| place.has_no_prefix);
            dir.join(short.unwrap_or(name))
        };
        Self {
            files: names.map(|name| (name, KeptFile::new(path(name)))),
            read: OfTick::default(),
        }
    }

    fn read(&mut self, tick: u64, buffer: &mut ReadBuffer) -> Result<Option<&CpuSet>, Missing> {
        let Self { files, read } = self;
        let told = read.get(tick, || first_list(files, buffer));
        told.as_ref()
            .map(Option::as_ref)
            .map_err(|missing| *missing)
    }
}

/// The first list of a level that holds anything; an absent or empty one means "as the parent".
fn first_list(
    level: &mut [(&'static str, KeptFile); 2],
    buffer: &mut ReadBuffer,
) -> Result<Option<CpuSet>, Missing> {
    for (name, file) in level {
        match file.read(buffer).and_then(cpu_set::parse) {
            Ok(list) if !list.is_empty() => return Ok(Some(list)),
            Ok(_) | Err(NoValue::Empty) => {}
            Err(fault) if fault.is_absent() => {}
            Err(fault) => return Err(fault).named(name),
        }
    }
    Ok(None)
}
