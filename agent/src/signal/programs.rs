//! What the kernel's programs tell of the host and of every watched group.

use tidegate_abi::kernel::group::ELSEWHERE;
use tidegate_abi::signal::SignalId;

use super::groups::{Groups, WatchedGroup};
use super::meter::to_f64;
use super::reading::Readings;
use super::runqueue::{self, Neighbour, RunqueueWatch, SOURCE, Sight};
use crate::ebpf::{PauseTable, TickEnd, Watched};
use crate::procfs::Lack;
use crate::procfs::{NamedSource as _, NoValue};

const NS_PER_S: f64 = 1e9;

/// Reads the maps in each tick. A group has the slot after its own place among the groups.
#[derive(Debug)]
pub(super) struct KernelSignals {
    end: Option<TickEnd>,
    /// Life of the group that each place was told for; 0 is none.
    told: Vec<u64>,
    /// Slots in use.
    slots: Vec<u32>,
    /// Whether maps or groups are others than when it was taken down which slots count for whom.
    is_stale: bool,
    host: RunqueueWatch,
}

/// What a group keeps of it.
#[derive(Debug, Default)]
pub(super) struct GroupKernel(RunqueueWatch);

impl GroupKernel {
    /// Who took the CPU most often.
    pub(super) const fn neighbour(&self) -> Option<Neighbour> {
        self.0.neighbour()
    }
}

/// The slot of the group in this place.
pub(super) fn slot_of(place: usize) -> Option<u32> {
    u32::try_from(place).ok()?.checked_add(1)
}

impl KernelSignals {
    /// No programs: each reading says so.
    pub(super) fn without() -> Self {
        Self {
            end: None,
            told: Vec::new(),
            slots: vec![ELSEWHERE],
            is_stale: true,
            host: RunqueueWatch::default(),
        }
    }

    /// Takes the end of a thread that loads programs.
    pub(super) fn take(&mut self, end: TickEnd) {
        self.told.clear();
        self.is_stale = true;
        self.end = Some(end);
    }

    /// Puts what the programs tell into the readings. After the files have been read, so that the
    /// better source has the last word.
    pub(super) fn sample(&mut self, now_ns: u64, host: &mut Readings, groups: &mut Groups) {
        let Some(end) = &mut self.end else {
            return missing(Lack::SwitchedOff, host, groups);
        };
        let (sight, other_maps) = end.look();
        let other_groups = tell_groups(end, &mut self.told, groups);
        self.is_stale |= other_maps || other_groups;
        let view = match sight {
            Ok(view) => view,
            Err(lack) => return missing(lack, host, groups),
        };
        if std::mem::take(&mut self.is_stale) {
            self.follow(view.extent.slots, groups);
        }
        let seen = Sight {
            view: &view,
            takers: &self.slots,
        };
        match view.lack {
            None => self.host.sample(now_ns, seen, host),
            Some(lack) => runqueue::lack(host, lack),
        }
        runqueue::tell_share(host);
        group_only(host);
        let pauses = self.end.as_ref().map(TickEnd::pauses);
        for (place, group) in groups.iter_mut() {
            let slot = slot_of(place).filter(|slot| *slot < view.extent.slots);
            sample_group(now_ns, seen, slot.zip(pauses), group);
        }
    }

    /// Takes down which slots count for which scope.
    fn follow(&mut self, slots: u32, groups: &mut Groups) {
        let known = |place| slot_of(place).filter(|slot| *slot < slots);
        self.slots.clear();
        self.slots.push(ELSEWHERE);
        self.slots
            .extend(groups.iter_mut().filter_map(|(place, _group)| known(place)));
        self.host.follow(self.slots.iter().copied(), true);
        let dirs: Vec<_> = groups
            .iter_mut()
            .map(|(place, group)| (place, group.dir().to_path_buf()))
            .collect();
        for (_place, group) in groups.iter_mut() {
            let top = group.dir().to_path_buf();
            let inside = dirs.iter().filter(|(_place, dir)| dir.starts_with(&top));
            let inside = inside.filter_map(|(place, _dir)| known(*place));
            // The group at the top of the hierarchy has all others in it.
            let elsewhere = group.is_top().then_some(ELSEWHERE);
            group
                .kernel
                .0
                .follow(elsewhere.into_iter().chain(inside), false);
        }
    }
}

fn sample_group(
    now_ns: u64,
    seen: Sight<'_>,
    own: Option<(u32, &PauseTable)>,
    group: &mut WatchedGroup,
) {
    let without_jvm = group.without_jvm();
    let (kernel, out) = group.kernel_and_readings();
    let Some((slot, pauses)) = own else {
        runqueue::lack(out, Lack::NoSlot);
        out.set(
            SignalId::GcPause,
            Err(NoValue::Kernel(Lack::NoSlot)).named(SOURCE),
        );
        return runqueue::tell_share(out);
    };
    match seen.view.lack {
        None => kernel.0.sample(now_ns, seen, out),
        Some(lack) => runqueue::lack(out, lack),
    }
    runqueue::tell_share(out);
    let totals = pauses.of(slot);
    let pause = if totals.safepoints > 0 || totals.collections > 0 {
        Ok(to_f64(totals.longest_ns) / NS_PER_S)
    } else {
        let unseen = if pauses.is_denied() {
            NoValue::Kernel(Lack::NoProbes)
        } else {
            NoValue::NoPause
        };
        Err(without_jvm.unwrap_or(unseen))
    };
    out.set(SignalId::GcPause, pause.named(SOURCE));
}

/// Says which slot stands for which group, where that has changed. What finds no room in the queue is
/// told in a later tick.
fn tell_groups(end: &TickEnd, told: &mut Vec<u64>, groups: &mut Groups) -> bool {
    let places = groups.places();
    let mut changed = false;
    if told.len() < places {
        told.resize(places, 0);
    }
    for (place, told) in told.iter_mut().enumerate() {
        let group = groups.at(place);
        let life = group.map_or(0, WatchedGroup::life);
        let Some(slot) = slot_of(place).filter(|slot| *slot < end.slots()) else {
            return changed;
        };
        if *told == life {
            continue;
        }
        let dir = group.filter(|group| !group.is_top());
        let dir = dir.map(|group| group.dir().to_path_buf());
        if end.watch(Watched { slot, dir }) {
            *told = life;
            changed = true;
        }
    }
    changed
}

/// What no program ever tells of the host.
fn group_only(host: &mut Readings) {
    for id in [SignalId::GcPause, SignalId::PreemptedBy] {
        host.set(id, Err(NoValue::GroupOnly).named(SOURCE));
    }
}

fn missing(lack: Lack, host: &mut Readings, groups: &mut Groups) {
    let tell = |out: &mut Readings| {
        runqueue::lack(out, lack);
        out.set(SignalId::GcPause, Err(NoValue::Kernel(lack)).named(SOURCE));
        runqueue::tell_share(out);
    };
    tell(host);
    group_only(host);
    for (_place, group) in groups.iter_mut() {
        let (_kernel, out) = group.kernel_and_readings();
        tell(out);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate_abi::kernel::runqueue::{WAITED_NS, WORDS};

    use super::*;
    use crate::ebpf::{Extent, Rung, View};

    #[test]
    fn without_programs_each_signal_says_so_and_the_files_keep_the_word() {
        let (mut host, mut groups) = (Readings::new(), Groups::new());
        host.set(SignalId::RunqueueWait, Ok(3.0));
        KernelSignals::without().sample(1, &mut host, &mut groups);
        assert_eq!(host.value(SignalId::RunqueueWait), Some(3.0));
        let missing = host.get(SignalId::RunqueueWaitP99).get().unwrap_err();
        assert_eq!(missing.fault, NoValue::Kernel(Lack::SwitchedOff));
        for id in [SignalId::GcPause, SignalId::PreemptedBy] {
            let missing = host.get(id).get().unwrap_err();
            assert_eq!(missing.fault, NoValue::GroupOnly, "{}", id.name());
        }
    }

    #[test]
    fn with_programs_they_have_the_word() {
        let extent = Extent {
            slots: 2,
            cpus: 1,
            sampled_cpus: 1,
        };
        let view = View::private(extent, Rung::Typed);
        let (end, _changes) = TickEnd::with(view, Arc::new(PauseTable::new(2)));
        let mut signals = KernelSignals::without();
        signals.take(end);
        let (mut host, mut groups) = (Readings::new(), Groups::new());
        signals.sample(1_000, &mut host, &mut groups);
        // Nobody is watched: all that waits does so elsewhere.
        view.words()[0][WAITED_NS].count(500);
        view.words()[0][WORDS + WAITED_NS].count(9_000);
        host.set(SignalId::RunqueueWait, Ok(3.0));
        signals.sample(2_000, &mut host, &mut groups);
        assert_eq!(host.value(SignalId::RunqueueWait), Some(0.5));
    }
}
