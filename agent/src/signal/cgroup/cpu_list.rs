//! The CPUs that a group may run on.

use super::super::kept_file::{KeptFile, ReadBuffer};
use super::super::layout::Place;
use super::super::parse::cpu_set::{self, CpuSet};
use super::super::reading::{Fault, Missing, Named as _};

/// CPU lists of a group and of every group above it, the topmost first.
#[derive(Debug)]
pub(super) struct CpuListChain {
    levels: Vec<[(&'static str, KeptFile); 2]>,
}

impl CpuListChain {
    /// Readers for the group at `place` and all above it up to the mount.
    pub(super) fn new(place: &Place) -> Self {
        let files = |place: Place| {
            let dir = place.dir();
            place
                .version
                .truth()
                .cpu_lists
                .map(|name| (name, KeptFile::new(dir.join(name))))
        };
        let mut levels: Vec<_> = place.chain().map(files).collect();
        levels.reverse();
        Self { levels }
    }

    /// The CPUs that every level allows and that are online. `online` without CPUs is "not known".
    ///
    /// # Errors
    /// A list that is there and cannot be told.
    pub(super) fn sample(
        &mut self,
        online: &CpuSet,
        buffer: &mut ReadBuffer,
    ) -> Result<CpuSet, Missing> {
        let mut allowed = *online;
        for level in &mut self.levels {
            narrow(&mut allowed, level, buffer)?;
        }
        Ok(allowed)
    }
}

/// Takes away what one level does not allow. Where nothing would be left the kernel lets the group
/// run where its parent may.
fn narrow(
    allowed: &mut CpuSet,
    level: &mut [(&'static str, KeptFile); 2],
    buffer: &mut ReadBuffer,
) -> Result<(), Missing> {
    let Some(list) = first_list(level, buffer)? else {
        return Ok(());
    };
    if allowed.is_empty() {
        *allowed = list;
    } else if allowed.meets(&list) {
        allowed.keep_only(&list);
    }
    Ok(())
}

/// The first list of a level that holds anything; an absent or empty one means "as the parent".
fn first_list(
    level: &mut [(&'static str, KeptFile); 2],
    buffer: &mut ReadBuffer,
) -> Result<Option<CpuSet>, Missing> {
    for (name, file) in level {
        match file.read(buffer).and_then(cpu_set::parse) {
            Ok(list) if !list.is_empty() => return Ok(Some(list)),
            Ok(_) | Err(Fault::Empty) => {}
            Err(fault) if fault.is_absent() => {}
            Err(fault) => return Err(fault).named(name),
        }
    }
    Ok(None)
}
