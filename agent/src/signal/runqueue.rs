//! Run-queue waits and lengths of one scope, from what the kernel's programs count.
//!
//! Waits are told each tick as the tasks that waited on average; their distribution, the queues'
//! lengths and who took the CPU are told of the last second.

use tidegate_abi::kernel::runqueue::{BUCKETS, SAMPLE_HZ, bucket_ns};
use tidegate_abi::signal::SignalId;

use super::meter::{Meter, Step, to_f64};
use super::reading::Readings;
use crate::ebpf::{Histogram, Rung, View};
use crate::procfs::Lack;
use crate::procfs::{NamedSource as _, NoValue};

/// Source of what programs tell, in reasons.
pub(super) const SOURCE: &str = "ebpf";

const SECOND_NS: u64 = 1_000_000_000;
const NS_PER_S: f64 = 1e9;

/// The signals that this fills.
const FILLED: [SignalId; 4] = [
    SignalId::RunqueueWaitP50,
    SignalId::RunqueueWaitP99,
    SignalId::RunqueueLength,
    SignalId::PreemptedBy,
];

/// Who took the CPU from a scope most often in the last second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// Its slot; 0 is all groups that are not watched.
    slot: u32,
    /// How often a second.
    per_s: f64,
}

impl Neighbour {
    /// Its slot in the maps of the kernel's programs; 0 is all groups that are not watched.
    pub const fn slot(self) -> u32 {
        self.slot
    }

    /// How often a second.
    pub const fn per_second(self) -> f64 {
        self.per_s
    }
}

/// What a sample looks at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sight<'s> {
    /// The maps.
    pub(super) view: &'s View,
    /// The slots that are in use, each of which may take the CPU from another.
    pub(super) takers: &'s [u32],
}

/// Follows one scope: the host, or a group with the groups in it.
#[derive(Debug, Default)]
pub(super) struct RunqueueWatch {
    /// The slots that count for it.
    slots: Vec<u32>,
    is_host: bool,
    waits: Meter,
    second: Option<Second>,
    neighbour: Option<Neighbour>,
    /// For each slot that takes the CPU, how often it did.
    takers: Vec<u64>,
}

/// What was counted when the present second began.
#[derive(Debug, Clone, Copy)]
struct Second {
    began_ns: u64,
    waits: Histogram,
    lengths: (u64, u64),
}

impl RunqueueWatch {
    /// Begins anew, for these slots.
    pub(super) fn follow(&mut self, slots: impl Iterator<Item = u32>, is_host: bool) {
        self.slots.clear();
        self.slots.extend(slots);
        self.is_host = is_host;
        self.waits = Meter::default();
        self.second = None;
        self.neighbour = None;
        self.takers.clear();
    }

    /// Who took the CPU most often.
    pub(super) const fn neighbour(&self) -> Option<Neighbour> {
        self.neighbour
    }

    /// Takes one sample; `takers` are the slots that are in use.
    pub(super) fn sample(&mut self, now_ns: u64, sight: Sight<'_>, out: &mut Readings) {
        let view = sight.view;
        let waited_ns = self.slots.iter().map(|slot| view.waited_ns(*slot));
        let waited_ns = waited_ns.fold(0, u64::wrapping_add);
        let waiting = self.waits.step(now_ns, waited_ns).map(Step::rate);
        out.set(SignalId::RunqueueWait, waiting.named(SOURCE));
        match self.second {
            Some(second) if now_ns.saturating_sub(second.began_ns) < SECOND_NS => {}
            Some(second) => {
                self.tell_second(now_ns, &second, sight, out);
                self.second = Some(self.begin_second(now_ns, view));
            }
            None => {
                self.second = Some(self.begin_second(now_ns, view));
                self.count_takers(sight, |_taker, _times| {});
                for id in FILLED {
                    out.set(id, Err(NoValue::FirstSample).named(SOURCE));
                }
            }
        }
    }

    fn begin_second(&self, began_ns: u64, view: &View) -> Second {
        let mut waits = [0; BUCKETS as usize];
        for slot in &self.slots {
            view.add_waits(*slot, &mut waits);
        }
        let lengths = self.slots.iter().map(|slot| view.lengths(*slot));
        Second {
            began_ns,
            waits,
            lengths: lengths.fold((0, 0), |sum, (looks, lengths)| {
                (sum.0.wrapping_add(looks), sum.1.wrapping_add(lengths))
            }),
        }
    }

    fn tell_second(&mut self, now_ns: u64, before: &Second, sight: Sight<'_>, out: &mut Readings) {
        let view = sight.view;
        let now = self.begin_second(now_ns, view);
        let elapsed_s = to_f64(now_ns.saturating_sub(before.began_ns)) / NS_PER_S;
        let mut waits = now.waits;
        for (count, before) in waits.iter_mut().zip(before.waits) {
            *count = count.wrapping_sub(before);
        }
        for (id, share) in [
            (SignalId::RunqueueWaitP50, 0.5),
            (SignalId::RunqueueWaitP99, 0.99),
        ] {
            out.set(
                id,
                quantile_s(&waits, share)
                    .ok_or(NoValue::NoTurn)
                    .named(SOURCE),
            );
        }
        let looks = now.lengths.0.wrapping_sub(before.lengths.0);
        let lengths = now.lengths.1.wrapping_sub(before.lengths.1);
        let length = self.length(looks, lengths, elapsed_s, view);
        out.set(SignalId::RunqueueLength, length.named(SOURCE));
        let taken = self.tell_takers(sight, elapsed_s);
        out.set(SignalId::PreemptedBy, taken.named(SOURCE));
    }

    /// Mean length of the run queues that were looked at. Looks at an idle CPU do not come: the host's
    /// mean is over all that were due.
    fn length(
        &self,
        looks: u64,
        lengths: u64,
        elapsed_s: f64,
        view: &View,
    ) -> Result<f64, NoValue> {
        if !matches!(view.rung, Rung::Typed | Rung::SchedInfo) {
            return Err(NoValue::Kernel(Lack::NotOnThisRung));
        }
        if view.extent.sampled_cpus == 0 {
            return Err(NoValue::Kernel(Lack::Unsampled));
        }
        let due = f64::from(view.extent.sampled_cpus) * to_f64(SAMPLE_HZ) * elapsed_s;
        let over = if self.is_host {
            due.max(to_f64(looks))
        } else {
            to_f64(looks)
        };
        if over > 0.0 {
            Ok(to_f64(lengths) / over)
        } else {
            Err(NoValue::NoTurn)
        }
    }

    /// Times a second that the CPU was taken by another scope; the host has no other.
    fn tell_takers(&mut self, sight: Sight<'_>, elapsed_s: f64) -> Result<f64, NoValue> {
        self.neighbour = None;
        if self.is_host {
            return Err(NoValue::GroupOnly);
        }
        if sight.view.rung == Rung::SchedInfo {
            return Err(NoValue::Kernel(Lack::NotOnThisRung));
        }
        let mut sum = 0_u64;
        let mut most: Option<(u32, u64)> = None;
        self.count_takers(sight, |taker, times| {
            sum = sum.saturating_add(times);
            if times > most.map_or(0, |(_taker, most)| most) {
                most = Some((taker, times));
            }
        });
        let per_s = |times| to_f64(times) / elapsed_s;
        self.neighbour = most.map(|(slot, times)| Neighbour {
            slot,
            per_s: per_s(times),
        });
        Ok(per_s(sum))
    }

    /// Tells how often each slot that does not count for this scope took its CPU since the last call.
    fn count_takers(&mut self, sight: Sight<'_>, mut tell: impl FnMut(u32, u64)) {
        let Sight { view, takers } = sight;
        let room = usize::try_from(view.extent.slots).unwrap_or(0);
        self.takers.resize(room, 0);
        for taker in takers.iter().filter(|taker| !self.slots.contains(taker)) {
            let times = self.slots.iter().map(|slot| view.preempted(*slot, *taker));
            let times = times.fold(0, u64::wrapping_add);
            let place = usize::try_from(*taker).ok();
            if let Some(before) = place.and_then(|place| self.takers.get_mut(place)) {
                tell(*taker, times.wrapping_sub(std::mem::replace(before, times)));
            }
        }
    }
}

/// The wait that this share of all waits did not exceed, s; within a bucket waits are taken to be
/// spread evenly, so it is off by a fifth at most. `None` if there were none.
fn quantile_s(waits: &Histogram, share: f64) -> Option<f64> {
    let all: f64 = waits.iter().map(|count| f64::from(*count)).sum();
    if all <= 0.0 {
        return None;
    }
    let wanted = share * all;
    let mut below = 0.0;
    for (bucket, count) in (0..).zip(waits) {
        let count = f64::from(*count);
        if count > 0.0 && below + count >= wanted {
            let [from, to] = [bucket, bucket + 1].map(|bucket| to_f64(bucket_ns(bucket)));
            let inside = ((wanted - below) / count).clamp(0.0, 1.0);
            return Some((from + (to - from) * inside) / NS_PER_S);
        }
        below += count;
    }
    None
}

/// Says why nothing is told; waits may still be told by files.
pub(super) fn lack(out: &mut Readings, lack: Lack) {
    for id in FILLED {
        out.set(id, Err(NoValue::Kernel(lack)).named(SOURCE));
    }
}

/// Share of the time in which tasks wanted a CPU that they waited for it, from any source.
pub(super) fn tell_share(out: &mut Readings) {
    let waiting = out.get(SignalId::RunqueueWait).get();
    let running = out.get(SignalId::UsedCpus).get();
    let share = waiting.and_then(|waiting| {
        let all = waiting + running?;
        let idle = Err(NoValue::Idle).named("schedstat");
        if all > 0.0 { Ok(waiting / all) } else { idle }
    });
    out.set(SignalId::RunqueueWaitShare, share);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ebpf::Extent;
    use tidegate_abi::kernel::runqueue::{LENGTHS, SAMPLES, WAITED_NS, WORDS, bucket, pair};
    use tidegate_segment::sync::Ordering;

    const MS: u64 = 1_000_000;
    const EXTENT: Extent = Extent {
        slots: 3,
        cpus: 1,
        sampled_cpus: 1,
    };

    /// A wait of a slot, as a program writes it.
    fn wait(view: &View, slot: usize, wait_ns: u64) {
        let [words, ..] = view.words();
        let record = slot * WORDS;
        words[record + WAITED_NS].count(wait_ns);
        let bucket = bucket(wait_ns);
        let place = record + usize::try_from(bucket / 2).unwrap();
        words[place].count(1 << (32 * (bucket % 2)));
    }

    fn sight<'s>(view: &'s View, takers: &'s [u32]) -> Sight<'s> {
        Sight { view, takers }
    }

    fn watch(slots: &[u32], is_host: bool) -> RunqueueWatch {
        let mut watch = RunqueueWatch::default();
        watch.follow(slots.iter().copied(), is_host);
        watch
    }

    #[test]
    fn waits_of_the_last_second_have_their_quantiles() {
        let view = View::private(EXTENT, Rung::Typed);
        let (mut watch, mut out) = (watch(&[1], false), Readings::new());
        wait(&view, 1, 900 * MS);
        watch.sample(0, sight(&view, &[0, 1, 2]), &mut out);
        assert_eq!(out.value(SignalId::RunqueueWaitP99), None);
        for _time in 0..98 {
            wait(&view, 1, MS);
        }
        wait(&view, 1, 50 * MS);
        wait(&view, 2, 800 * MS);
        watch.sample(1000 * MS, sight(&view, &[0, 1, 2]), &mut out);
        let value = |id| out.value(id).unwrap();
        assert!((value(SignalId::RunqueueWait) - 0.148).abs() < 1e-9);
        assert!((0.8e-3..1.25e-3).contains(&value(SignalId::RunqueueWaitP50)));
        assert!((1e-3..60e-3).contains(&value(SignalId::RunqueueWaitP99)));
        watch.sample(2000 * MS, sight(&view, &[0, 1, 2]), &mut out);
        assert_eq!(out.value(SignalId::RunqueueWaitP99), None, "nobody waited");
        assert_eq!(out.value(SignalId::RunqueueWait), Some(0.0));
    }

    #[test]
    fn field_s13_a_length_that_nobody_samples_is_not_measured() {
        let extent = Extent {
            sampled_cpus: 0,
            ..EXTENT
        };
        for is_host in [true, false] {
            let view = View::private(extent, Rung::Typed);
            let (mut watch, mut out) = (watch(&[1], is_host), Readings::new());
            watch.sample(0, sight(&view, &[0, 1, 2]), &mut out);
            watch.sample(1000 * MS, sight(&view, &[0, 1, 2]), &mut out);
            let missing = out.get(SignalId::RunqueueLength).get().unwrap_err();
            assert_eq!(missing.fault, NoValue::Kernel(Lack::Unsampled));
            assert!(
                missing.to_string().contains("perf_event_paranoid"),
                "{missing}"
            );
        }
    }

    #[test]
    fn a_quantile_is_within_the_bucket_of_its_wait() {
        for wait_ns in [10, 5_000, MS, 77 * MS, 3000 * MS] {
            let mut waits = [0; BUCKETS as usize];
            waits[usize::try_from(bucket(wait_ns)).unwrap()] = 7;
            let told = quantile_s(&waits, 0.99).unwrap() * NS_PER_S;
            let of = to_f64(wait_ns);
            assert!(
                told < of * 1.5 + 1100.0 && told > of / 1.5 - 1100.0,
                "{told} of {of}"
            );
        }
        assert_eq!(quantile_s(&[0; BUCKETS as usize], 0.5), None);
    }

    #[test]
    fn an_idle_host_has_short_queues_and_a_group_those_it_met() {
        let view = View::private(EXTENT, Rung::Typed);
        let slots = [(watch(&[0, 1, 2], true), 0.3), (watch(&[1], false), 3.0)];
        let [words, ..] = view.words();
        for (mut watch, length) in slots {
            let mut out = Readings::new();
            watch.sample(0, sight(&view, &[]), &mut out);
            words[WORDS + SAMPLES].count(10);
            words[WORDS + LENGTHS].count(30);
            watch.sample(1000 * MS, sight(&view, &[]), &mut out);
            let told = out.value(SignalId::RunqueueLength).unwrap();
            assert!((told - length).abs() < 0.01, "{told}, {length} expected");
        }
    }

    #[test]
    fn the_neighbour_is_who_took_the_cpu_most_and_never_the_scope_itself() {
        let view = View::private(EXTENT, Rung::Typed);
        let (mut watch, mut out) = (watch(&[1], false), Readings::new());
        let [_, pairs, _] = view.words();
        let count = |by, times| {
            pairs[usize::try_from(pair(1, by, 0, 3, 1)).unwrap()].count(times);
        };
        count(0, 1_000_000);
        watch.sample(0, sight(&view, &[0, 1, 2]), &mut out);
        count(0, 2);
        count(1, 50);
        count(2, 10);
        watch.sample(2000 * MS, sight(&view, &[0, 1, 2]), &mut out);
        assert_eq!(out.value(SignalId::PreemptedBy), Some(6.0));
        let neighbour = Neighbour {
            slot: 2,
            per_s: 5.0,
        };
        assert_eq!(watch.neighbour(), Some(neighbour));
        assert_eq!(pairs[0].load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_share_is_of_the_time_that_tasks_wanted_a_cpu() {
        let mut out = Readings::new();
        tell_share(&mut out);
        assert_eq!(out.value(SignalId::RunqueueWaitShare), None);
        out.set(SignalId::RunqueueWait, Ok(3.0));
        out.set(SignalId::UsedCpus, Ok(1.0));
        tell_share(&mut out);
        assert_eq!(out.value(SignalId::RunqueueWaitShare), Some(0.75));
        for id in [SignalId::RunqueueWait, SignalId::UsedCpus] {
            out.set(id, Ok(0.0));
        }
        tell_share(&mut out);
        assert_eq!(out.value(SignalId::RunqueueWaitShare), None);
    }
}
