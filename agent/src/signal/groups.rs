//! The groups that are watched: each in a slot, named by a key for as long as it lives.

use std::path::{Path, PathBuf};

use super::cgroup::{Above, CgroupSignals, CpusBusy, Limiter, Means};
use super::host::HostSignals;
use super::jvm::Jvms;
use super::processes::{Processes, Scan, ThreadGroup};
use super::programs::{GroupKernel, slot_of};
use super::reading::Readings;
use super::runqueue::Neighbour;
use super::same_processes::{Proved, SameProcesses, proved_places};
use crate::procfs::kept_file::ReadBuffer;
use crate::procfs::{Layout, Places};
use crate::procfs::{Missing, NoValue};

/// Most groups that are watched at once; with the host they fill the board's scopes.
pub const GROUPS_MAX: usize = tidegate_abi::geometry::SCOPES_MAX as usize - 1;

/// Names one watched group for as long as it lives. A group that comes back under the same path has
/// another key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GroupKey {
    slot: usize,
    life: u64,
}

impl GroupKey {
    /// The slot by which programs in the kernel know the group.
    pub fn kernel_slot(self) -> Option<u32> {
        slot_of(self.slot)
    }
}

/// Names one pattern, by the order in which patterns were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PatternKey(pub(crate) usize);

/// One watched control group.
#[derive(Debug)]
pub struct WatchedGroup {
    life: u64,
    path: PathBuf,
    dir: PathBuf,
    pattern: Option<PatternKey>,
    places: Places,
    /// How it is proved that its groups of several hierarchies are one, where there are several.
    same: Option<Box<SameProcesses>>,
    proved: Proved,
    signals: Box<CgroupSignals>,
    processes: Processes,
    jvms: Jvms,
    pub(super) kernel: Box<GroupKernel>,
    readings: Readings,
}

impl WatchedGroup {
    /// Its path below the mount of the cpu controller, beginning with `/`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The first pattern that it fits, if it fits any.
    pub fn pattern(&self) -> Option<PatternKey> {
        self.pattern
    }

    /// Its threads by what their names begin with, as the last finished look saw them.
    pub fn thread_groups(&self) -> &[ThreadGroup] {
        self.processes.thread_groups()
    }

    /// What the last sample read.
    pub fn readings(&self) -> &Readings {
        &self.readings
    }

    /// Who took the CPU from it most often in the last second, if anybody did.
    pub fn neighbour(&self) -> Option<Neighbour> {
        self.kernel.neighbour()
    }

    /// Its directory in the cpu hierarchy.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether it is the group at the top of the hierarchy.
    pub(super) fn is_top(&self) -> bool {
        self.path == Path::new("/")
    }

    /// Names it for as long as it lives.
    pub(super) const fn life(&self) -> u64 {
        self.life
    }

    /// Why no JVM is known in it, where that is so; `None` before the first look as well.
    pub(super) fn without_jvm(&self) -> Option<NoValue> {
        let none_seen = self.processes.jvms()?.is_empty();
        let unseen = self.processes.unseen();
        none_seen.then(|| unseen.map_or(NoValue::NoJvm, |missing| missing.fault))
    }

    /// A group that nothing was read of yet.
    fn boxed(
        life: u64,
        path: PathBuf,
        dir: PathBuf,
        places: Places,
        above: &mut Above,
    ) -> Box<Self> {
        let same = SameProcesses::of(&places).map(Box::new);
        let proved = first_proofs(same.as_deref());
        let signals = Box::new(CgroupSignals::new(&proved_places(&places, &proved), above));
        Box::new(Self {
            life,
            path,
            processes: Processes::new(&dir),
            dir,
            pattern: None,
            same,
            proved,
            signals,
            jvms: Jvms::default(),
            kernel: Box::default(),
            places,
            readings: Readings::new(),
        })
    }

    /// Looks whether its groups of several hierarchies are still one, and where they are if they are not.
    fn prove(
        &mut self,
        layout: &Layout,
        above: &mut Above,
        scan: &mut Scan,
        buffer: &mut ReadBuffer,
    ) {
        let Some(same) = &mut self.same else { return };
        let Some(mut proved) = same.look(self.processes.changes(), layout, scan, buffer) else {
            return;
        };
        let is_whole = self.places.all_found() && proved.iter().all(Result::is_ok);
        let is_new = !is_whole && same.has_processes();
        let anew = is_new.then(|| layout.places_of_path(&self.path));
        let anew = anew.filter(|anew| *anew != self.places);
        if anew.is_none() && proved == self.proved {
            return;
        }
        let before = proved_places(&self.places, &self.proved);
        if let Some(places) = anew {
            self.same = SameProcesses::of(&places).map(Box::new);
            proved = first_proofs(self.same.as_deref());
            self.places = places;
        }
        self.proved = proved;
        let now = proved_places(&self.places, &self.proved);
        self.signals.follow(&before, &now, above);
    }

    /// What it keeps of the kernel's programs, and where their signals go.
    pub(super) fn kernel_and_readings(&mut self) -> (&mut GroupKernel, &mut Readings) {
        (&mut self.kernel, &mut self.readings)
    }

    /// How busy the CPUs were that it may run on, whoever used them.
    pub fn cpus_busy(&self) -> CpusBusy {
        self.signals.cpus_busy()
    }

    /// What holds its CPUs down to [`SignalId::EffectiveCpus`](tidegate_abi::signal::SignalId).
    pub fn limiter(&self) -> Limiter<'_> {
        self.signals.limiter()
    }
}

/// What is believed before the first look at the lists of processes.
fn first_proofs(same: Option<&SameProcesses>) -> Proved {
    same.map_or([Ok(()); 3], SameProcesses::at_first)
}

/// All watched groups.
#[derive(Debug)]
pub(crate) struct Groups {
    slots: Vec<Option<Box<WatchedGroup>>>,
    above: Above,
    lives: u64,
    /// The slot whose threads are looked at first in the next tick.
    next_look: usize,
    /// The slot that was proved last.
    next_proof: usize,
}

impl Groups {
    /// No groups yet, with room for all.
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::with_capacity(GROUPS_MAX),
            above: Above::default(),
            lives: 0,
            next_look: 0,
            next_proof: 0,
        }
    }

    /// Watches the group at these places; one that is watched already keeps its key.
    ///
    /// # Errors
    /// The group is not there, or there are too many.
    pub(crate) fn watch(&mut self, places: Places) -> Result<GroupKey, Missing> {
        let cpu = places.cpu.as_ref().map_err(|missing| *missing)?;
        let dir = cpu.dir();
        if !dir.is_dir() {
            return Err(Missing {
                source: "cgroup",
                fault: NoValue::Os(libc::ENOENT),
            });
        }
        // One directory of the cpu controller, one group, wherever the other hierarchies have its processes.
        if let Some((key, _)) = self.iter().find(|(_key, group)| group.dir == dir) {
            return Ok(key);
        }
        let slot = self.free_slot().ok_or(Missing {
            source: "cgroup",
            fault: NoValue::TooMany,
        })?;
        self.lives = self.lives.saturating_add(1);
        let path = Path::new("/").join(&cpu.below);
        let group = WatchedGroup::boxed(self.lives, path, dir, places, &mut self.above);
        match self.slots.get_mut(slot) {
            Some(free) => *free = Some(group),
            None => self.slots.push(Some(group)),
        }
        Ok(GroupKey {
            slot,
            life: self.lives,
        })
    }

    /// Whether no more groups can be watched.
    pub(crate) fn is_full(&self) -> bool {
        self.free_slot().is_none()
    }

    /// Groups that are watched.
    pub(crate) fn count(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    fn free_slot(&self) -> Option<usize> {
        let free = self
            .slots
            .iter()
            .position(Option::is_none)
            .unwrap_or(self.slots.len());
        (free < GROUPS_MAX).then_some(free)
    }

    /// Notes that the group in a directory fits a pattern; `false` if no such group is watched.
    pub(crate) fn fits(&mut self, dir: &Path, pattern: PatternKey) -> bool {
        let Some(group) = self
            .slots
            .iter_mut()
            .flatten()
            .find(|group| group.dir == dir)
        else {
            return false;
        };
        group.pattern.get_or_insert(pattern);
        true
    }

    /// Begins a tick: what the looks at processes may cost in it.
    pub(crate) fn begin_scan(&self, now_ns: u64, scan: &mut Scan) {
        let groups = self.slots.iter().flatten();
        scan.begin_tick(now_ns, groups.map(|group| group.processes.kept()).sum());
    }

    /// Looks whether the groups of several hierarchies are still one, with no more than half of the tick's looks.
    pub(crate) fn prove(&mut self, layout: &Layout, scan: &mut Scan, buffer: &mut ReadBuffer) {
        let count = self.slots.len();
        for _slot in 0..count {
            if scan.is_half_spent() {
                return;
            }
            self.next_proof = self
                .next_proof
                .saturating_add(1)
                .checked_rem(count)
                .unwrap_or(0);
            let group = self.slots.get_mut(self.next_proof).and_then(Option::as_mut);
            if let Some(group) = group {
                scan.begin_turn();
                group.prove(layout, &mut self.above, scan, buffer);
            }
        }
    }

    /// Takes one sample of every group, after the host's, and drops those whose directory is gone.
    pub(crate) fn sample(&mut self, now_ns: u64, host: &HostSignals, buffer: &mut ReadBuffer) {
        self.above.begin_tick();
        let mut means = Means {
            now_ns,
            online: host.online(),
            is_kernels: host.is_kernels(),
            per_cpu: host.per_cpu(),
            buffer,
            above: &mut self.above,
        };
        for slot in &mut self.slots {
            let Some(group) = slot else { continue };
            let affinity = group.processes.affinity();
            let out = &mut group.readings;
            group.signals.sample(&mut means, affinity, out);
            if group.signals.is_gone() {
                group.signals.end(means.above);
                *slot = None;
            }
        }
    }

    /// Looks at threads until the tick has done its share, a turn for each group; the next tick goes on where this
    /// one ends.
    pub(crate) fn look_at_threads(
        &mut self,
        now_ns: u64,
        scan: &mut Scan,
        buffer: &mut ReadBuffer,
    ) {
        for group in self.slots.iter_mut().flatten() {
            group.processes.count(scan, buffer, &mut group.readings);
        }
        let count = self.slots.len();
        let mut done = 0_usize;
        while done < count && !scan.is_spent() {
            let group = self.slots.get_mut(self.next_look).and_then(Option::as_mut);
            self.next_look = self
                .next_look
                .saturating_add(1)
                .checked_rem(count)
                .unwrap_or(0);
            match group.filter(|group| !group.processes.has_looked(now_ns)) {
                Some(group) => {
                    done = 0;
                    scan.begin_turn();
                    group.processes.step(scan, buffer, &mut group.readings);
                }
                None => done = done.saturating_add(1),
            }
        }
        for group in self.slots.iter_mut().flatten() {
            if let Some(pids) = group.processes.jvms() {
                let seen = (pids, group.processes.unseen());
                group.jvms.sample(seen, scan, buffer, &mut group.readings);
            }
        }
    }

    /// How many places there are, with a group or without.
    pub(super) fn places(&self) -> usize {
        self.slots.len()
    }

    /// The group in a place.
    pub(super) fn at(&self, place: usize) -> Option<&WatchedGroup> {
        self.slots.get(place)?.as_deref()
    }

    /// Every group with its place.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut WatchedGroup)> {
        let slots = self.slots.iter_mut().enumerate();
        slots.filter_map(|(place, group)| Some((place, group.as_deref_mut()?)))
    }

    /// The group of a key, if it is still there.
    pub(crate) fn get(&self, key: GroupKey) -> Option<&WatchedGroup> {
        self.slots
            .get(key.slot)?
            .as_deref()
            .filter(|group| group.life == key.life)
    }

    /// Every group with its key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (GroupKey, &WatchedGroup)> {
        self.slots.iter().enumerate().filter_map(|(slot, group)| {
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
