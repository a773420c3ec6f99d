//! What the tick calls: one sample of the host and of every watched group.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::groups::{GroupKey, Groups, PatternKey, WatchedGroup};
use super::host::HostSignals;
use super::processes::Scan;
use super::programs::KernelSignals;
use super::reading::Readings;
use super::search::{GroupMatches, Search};
use crate::ebpf::TickEnd;
use crate::procfs::GroupPattern;
use crate::procfs::Layout;
use crate::procfs::Roots;
use crate::procfs::kept_file::ReadBuffer;
use crate::procfs::{Missing, NoValue};

/// Samples the host and the watched groups. It belongs to one thread.
#[derive(Debug)]
pub struct Sampler {
    layout: Layout,
    buffer: ReadBuffer,
    host: Box<HostSignals>,
    host_readings: Readings,
    groups: Groups,
    search: Search,
    scan: Scan,
    kernel: Box<KernelSignals>,
}

impl Sampler {
    /// Finds the mounts below the given trees; reads no signal yet.
    pub fn new(roots: Roots) -> Self {
        Self {
            host: Box::new(HostSignals::new(&roots)),
            scan: Scan::new(&roots.proc),
            layout: Layout::discover(roots),
            buffer: ReadBuffer::new(),
            host_readings: Readings::new(),
            groups: Groups::new(),
            kernel: Box::new(KernelSignals::without()),
            search: Search::new(),
        }
    }

    /// Watches the group of this process. Where its membership or its directory is hidden, that is
    /// the group at the top of the mount, which inside a container is the container.
    ///
    /// # Errors
    /// The cpu hierarchy is not in sight, or there are too many groups.
    pub fn watch_own(&mut self) -> Result<GroupKey, Missing> {
        let places = self.layout.places_of_process(None);
        match places.and_then(|places| self.groups.watch(places)) {
            Err(missing) if missing.fault != NoValue::TooMany => {
                let top = self.layout.own_by_mount()?;
                self.groups.watch(top)
            }
            told => told,
        }
    }

    /// Watches the group of a process; one that is watched already keeps its key.
    ///
    /// # Errors
    /// The process is gone, its group is not in sight, or there are too many groups.
    pub fn watch_process(&mut self, pid: u32) -> Result<GroupKey, Missing> {
        let places = self.layout.places_of_process(Some(pid))?;
        let known = self.groups.count();
        let watched = self.groups.watch(places);
        if self.groups.count() > known {
            // Which pattern it fits is to be known by the end of this tick.
            self.search.hurry();
        }
        watched
    }

    /// Path of a process's group below the mount of the cpu controller, beginning with `/`, whether it is watched or
    /// not; `None` where it is out of sight.
    pub fn path_of_process(&self, pid: u32) -> Option<PathBuf> {
        let places = self.layout.places_of_process(Some(pid)).ok()?;
        places
            .cpu
            .ok()
            .map(|place| Path::new("/").join(place.below))
    }

    /// Watches the group at a path below the mount of the cpu controller.
    ///
    /// # Errors
    /// There is no such group now, or there are too many groups.
    pub fn watch_path(&mut self, path: &Path) -> Result<GroupKey, Missing> {
        self.groups.watch(self.layout.places_of_path(path))
    }

    /// Watches every group that fits a pattern, now and later; each second the sample looks for new
    /// ones. [`WatchedGroup::pattern`] tells which pattern a group fits.
    pub fn watch_pattern(&mut self, pattern: GroupPattern) -> PatternKey {
        self.search.add(pattern)
    }

    /// How many groups fit a pattern, or why none does; `None` before the first search for it.
    pub fn found(&self, pattern: PatternKey) -> Option<GroupMatches> {
        self.search.found(pattern)
    }

    /// How many groups fit a pattern and are not watched, since there are too many or their
    /// hierarchy is not in sight.
    pub fn left_out(&self) -> usize {
        self.search.left_out()
    }

    /// Takes one sample of the host and of every group; `now_ns` is monotonic time. A group whose
    /// directory is gone is dropped. Allocates nothing unless a group or a larger file appears.
    pub fn sample(&mut self, now_ns: u64) {
        self.buffer.begin_tick(now_ns);
        self.search.run(now_ns, &self.layout, &mut self.groups);
        self.host
            .sample(now_ns, &mut self.buffer, &mut self.host_readings);
        self.groups.begin_scan(now_ns, &mut self.scan);
        self.groups
            .prove(&self.layout, &mut self.scan, &mut self.buffer);
        self.groups.sample(now_ns, &self.host, &mut self.buffer);
        self.groups
            .look_at_threads(now_ns, &mut self.scan, &mut self.buffer);
        self.kernel
            .sample(now_ns, &mut self.host_readings, &mut self.groups);
    }

    /// From now on the samples hold what the kernel's programs tell, once they run.
    pub fn take_kernel(&mut self, end: TickEnd) {
        self.kernel.take(end);
    }

    /// Takes down what 99 of 100 of the last ticks were not later than: the one signal that the
    /// sampler's thread knows itself.
    pub fn tell_late(&mut self, late_p99: Duration) {
        self.host.tell_late(late_p99);
    }

    /// Lets every read of this file fail from now on.
    #[cfg(test)]
    pub(crate) fn refuse(&mut self, path: PathBuf, errno: i32) {
        self.buffer.refused = Some((path, errno));
    }

    /// What the last sample read of the host.
    pub fn host(&self) -> &Readings {
        &self.host_readings
    }

    /// A watched group, if it is still there.
    pub fn group(&self, key: GroupKey) -> Option<&WatchedGroup> {
        self.groups.get(key)
    }

    /// Every watched group.
    pub fn groups(&self) -> impl Iterator<Item = (GroupKey, &WatchedGroup)> {
        self.groups.iter()
    }
}
