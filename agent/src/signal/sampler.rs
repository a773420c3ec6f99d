//! What the tick calls: one sample of the host and of every watched group.

use std::path::{Path, PathBuf};

use super::cgroup::{CgroupSignals, Limiter};
use super::host::HostSignals;
use super::kept_file::ReadBuffer;
use super::layout::{Layout, Places};
use super::reading::{Fault, Missing, Readings};
use super::roots::Roots;

/// Most groups that are watched at once; with the host they fill the board's scopes.
pub const GROUPS_MAX: usize = tidegate_abi::geometry::SCOPES_MAX as usize - 1;

/// Names one watched group for as long as it lives. A group that comes back under the same path has
/// another key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GroupKey {
    slot: usize,
    life: u64,
}

/// One watched control group.
#[derive(Debug)]
pub struct Group {
    life: u64,
    path: PathBuf,
    places: Places,
    signals: CgroupSignals,
    readings: Readings,
}

impl Group {
    /// Its path below the mount of the cpu controller, beginning with `/`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the last sample read.
    pub fn readings(&self) -> &Readings {
        &self.readings
    }

    /// What holds its CPUs down to [`SignalId::EffectiveCpus`](tidegate_abi::signal::SignalId).
    pub fn limiter(&self) -> Limiter<'_> {
        self.signals.limiter()
    }
}

/// Samples the host and the watched groups. It belongs to one thread.
#[derive(Debug)]
pub struct Sampler {
    layout: Layout,
    buffer: ReadBuffer,
    host: HostSignals,
    host_readings: Readings,
    groups: Vec<Option<Box<Group>>>,
    lives: u64,
}

impl Sampler {
    /// Finds the mounts below the given trees; reads no signal yet.
    pub fn new(roots: Roots) -> Self {
        Self {
            host: HostSignals::new(&roots),
            layout: Layout::discover(roots),
            buffer: ReadBuffer::new(),
            host_readings: Readings::new(),
            groups: Vec::with_capacity(GROUPS_MAX),
            lives: 0,
        }
    }

    /// Watches the group of this process. Where its membership or its directory is hidden, that is
    /// the group at the top of the mount, which inside a container is the container.
    ///
    /// # Errors
    /// The cpu hierarchy is not in sight, or there are too many groups.
    pub fn watch_own(&mut self) -> Result<GroupKey, Missing> {
        let told = self
            .layout
            .places_of_process(None)
            .and_then(|places| self.watch(places));
        match told {
            Err(missing) if missing.fault != Fault::TooMany => self.watch_path(Path::new("/")),
            told => told,
        }
    }

    /// Watches the group of a process; one that is watched already keeps its key.
    ///
    /// # Errors
    /// The process is gone, its group is not in sight, or there are too many groups.
    pub fn watch_process(&mut self, pid: u32) -> Result<GroupKey, Missing> {
        let places = self.layout.places_of_process(Some(pid))?;
        self.watch(places)
    }

    /// Watches the group at a path below the mount of the cpu controller.
    ///
    /// # Errors
    /// There is no such group now, or there are too many groups.
    pub fn watch_path(&mut self, path: &Path) -> Result<GroupKey, Missing> {
        let places = self.layout.places_of_path(path);
        self.watch(places)
    }

    fn watch(&mut self, places: Places) -> Result<GroupKey, Missing> {
        let cpu = places.cpu.clone()?;
        if !cpu.dir().is_dir() {
            return Err(Missing {
                source: "cgroup",
                fault: Fault::Os(libc::ENOENT),
            });
        }
        let is_same = |group: &Group| group.places == places;
        if let Some((key, _)) = self.groups().find(|(_key, group)| is_same(group)) {
            return Ok(key);
        }
        let slot = self.free_slot().ok_or(Missing {
            source: "cgroup",
            fault: Fault::TooMany,
        })?;
        self.lives = self.lives.saturating_add(1);
        let life = self.lives;
        let group = Box::new(Group {
            life,
            path: Path::new("/").join(&cpu.below),
            signals: CgroupSignals::new(&places),
            places,
            readings: Readings::new(),
        });
        match self.groups.get_mut(slot) {
            Some(free) => *free = Some(group),
            None => self.groups.push(Some(group)),
        }
        Ok(GroupKey { slot, life })
    }

    fn free_slot(&self) -> Option<usize> {
        let free = self
            .groups
            .iter()
            .position(Option::is_none)
            .unwrap_or(self.groups.len());
        (free < GROUPS_MAX).then_some(free)
    }

    /// Takes one sample of the host and of every group; `now_ns` is monotonic time. A group whose
    /// directory is gone is dropped. Allocates nothing once the files have been seen at their size.
    pub fn sample(&mut self, now_ns: u64) {
        self.host
            .sample(now_ns, &mut self.buffer, &mut self.host_readings);
        let online = *self.host.online();
        for slot in &mut self.groups {
            let Some(group) = slot else { continue };
            group
                .signals
                .sample(now_ns, &online, &mut self.buffer, &mut group.readings);
            if group.signals.is_gone() {
                *slot = None;
            }
        }
    }

    /// What the last sample read of the host.
    pub fn host(&self) -> &Readings {
        &self.host_readings
    }

    /// A watched group, if it is still there.
    pub fn group(&self, key: GroupKey) -> Option<&Group> {
        self.groups
            .get(key.slot)?
            .as_deref()
            .filter(|group| group.life == key.life)
    }

    /// Every watched group.
    pub fn groups(&self) -> impl Iterator<Item = (GroupKey, &Group)> {
        self.groups.iter().enumerate().filter_map(|(slot, group)| {
            let group = group.as_deref()?;
            Some((
                GroupKey {
                    slot,
                    life: group.life,
                },
                group,
            ))
        })
    }
}
