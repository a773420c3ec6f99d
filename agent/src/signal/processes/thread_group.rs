//! Threads grouped by what their names begin with, and which of them collect garbage.

/// Longest name of a thread.
const NAME_BYTES: usize = 15;
/// Groups that are told apart; all further threads are told together.
const GROUPS_MAX: usize = 32;

/// Stands for all threads that found no group of their own.
const OTHERS: &[u8] = b"...";

/// Names of garbage collectors' threads, by what they begin with, as their runtimes set them. Names
/// are cut at 15 bytes. Go's workers are not threads of their own, hence not visible here.
const GC_NAMES: [&str; 16] = [
    // HotSpot: parallel work of every collector, then G1, ZGC, Shenandoah, and the thread that stops
    // the world and collects in Serial.
    "GC Thread#",
    "G1 ",
    "ZDriver",
    "ZDirector",
    "ZWorker",
    "ZGC",
    "XDriver",
    "XWorker",
    "Shenandoah GC",
    "ShenandoahGC",
    "ParGC Thread",
    "Gang worker#",
    "VM Thread",
    // OpenJ9 and .NET.
    "GC Worker",
    ".NET Server GC",
    ".NET BGC",
];

/// Whether a thread of this name collects garbage.
pub(super) fn is_gc(name: &[u8]) -> bool {
    GC_NAMES.iter().any(|gc| name.starts_with(gc.as_bytes()))
}

/// The name of a thread, copied out of a buffer that is used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ThreadName {
    bytes: [u8; NAME_BYTES],
    len: usize,
}

impl ThreadName {
    /// Keeps at most 15 bytes.
    pub(super) fn of(name: &[u8]) -> Self {
        let mut bytes = [0; NAME_BYTES];
        for (slot, byte) in bytes.iter_mut().zip(name) {
            *slot = *byte;
        }
        Self {
            bytes,
            len: name.len().min(NAME_BYTES),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// Threads of one scope whose names begin alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThreadGroup {
    stem: ThreadName,
    /// How many there are.
    pub threads: u64,
    /// CPUs that they used since the look before.
    pub used_cpus: f64,
    /// Whether they collect garbage.
    pub is_gc: bool,
}

impl ThreadGroup {
    /// What the names begin with: without the number at the end. Bytes that are not UTF-8 are
    /// replaced.
    pub fn name(&self) -> String {
        String::from_utf8_lossy(self.stem.bytes()).into_owned()
    }

    fn new(stem: &[u8]) -> Self {
        Self {
            stem: ThreadName::of(stem),
            threads: 0,
            used_cpus: 0.0,
            is_gc: is_gc(stem),
        }
    }
}

/// How many groups are told of a scope.
const TOP: usize = 8;

/// The groups of a scope's threads that used most CPU, of fixed size so that a tick can copy them.
#[derive(Debug, Clone, Copy, Default)]
pub struct TopThreads {
    groups: [Option<ThreadGroup>; TOP],
    /// CPUs that all threads used.
    used_cpus: f64,
}

impl TopThreads {
    /// The first of these groups, which stand in the order of their use of CPU.
    pub fn of(sorted: &[ThreadGroup]) -> Self {
        let mut groups = [None; TOP];
        for (place, group) in groups.iter_mut().zip(sorted) {
            *place = Some(*group);
        }
        Self {
            groups,
            used_cpus: sorted.iter().map(|group| group.used_cpus).sum(),
        }
    }

    /// Each group with its share of the CPU time of all threads; without one where none was used.
    pub fn iter(&self) -> impl Iterator<Item = (&ThreadGroup, Option<f64>)> {
        let all = Some(self.used_cpus).filter(|all| *all > 0.0);
        let share = move |group: &ThreadGroup| Some(group.used_cpus / all?);
        self.groups
            .iter()
            .flatten()
            .map(move |group| (group, share(group)))
    }
}

/// The groups of one look at a scope's threads. Its memory is set aside once.
#[derive(Debug)]
pub(super) struct ThreadGroups(Vec<ThreadGroup>);

impl ThreadGroups {
    pub(super) fn new() -> Self {
        Self(Vec::with_capacity(GROUPS_MAX))
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Counts one thread, and the CPUs that it used.
    pub(super) fn add(&mut self, name: &[u8], used_cpus: f64) {
        let stem = stem(name);
        if let Some(group) = self.place(stem) {
            group.threads = group.threads.saturating_add(1);
            group.used_cpus += used_cpus;
        }
    }

    /// The group of a stem. When all places but one are taken, the last is for everything else.
    fn place(&mut self, stem: &[u8]) -> Option<&mut ThreadGroup> {
        let known = self.0.iter().position(|group| group.stem.bytes() == stem);
        if known.is_none() && self.0.len() < GROUPS_MAX {
            let is_last = self.0.len().saturating_add(1) == GROUPS_MAX;
            self.0
                .push(ThreadGroup::new(if is_last { OTHERS } else { stem }));
        }
        match known {
            Some(index) => self.0.get_mut(index),
            None => self.0.last_mut(),
        }
    }

    /// Puts the groups that used most CPU first, and of those that used as much the largest.
    pub(super) fn sort(&mut self) {
        self.0.sort_unstable_by(|one, other| {
            let by_cpu = other.used_cpus.total_cmp(&one.used_cpus);
            by_cpu.then(other.threads.cmp(&one.threads))
        });
    }

    pub(super) fn as_slice(&self) -> &[ThreadGroup] {
        &self.0
    }
}

/// A name without the number at its end: `http-nio-8080-e` and `pool-1-thread-` stand for a pool.
fn stem(name: &[u8]) -> &[u8] {
    let digits = name
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    match name.get(..name.len().saturating_sub(digits)) {
        Some(stem) if !stem.is_empty() => stem,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_pool_are_one_group() {
        let mut groups = ThreadGroups::new();
        for name in [
            "http-nio-8080-e",
            "http-nio-8080-e",
            "GC Thread#0",
            "GC Thread#11",
            "42",
        ] {
            groups.add(name.as_bytes(), 0.25);
        }
        let told: Vec<_> = groups
            .as_slice()
            .iter()
            .map(|group| (group.name(), group.threads, group.is_gc))
            .collect();
        let wanted = [
            ("http-nio-8080-e", 2, false),
            ("GC Thread#", 2, true),
            ("42", 1, false),
        ];
        assert_eq!(
            told,
            wanted.map(|(name, threads, gc)| (name.to_owned(), threads, gc))
        );
    }

    #[test]
    fn more_groups_than_fit_are_told_together() {
        let mut groups = ThreadGroups::new();
        for letter in 0..100_u8 {
            groups.add(&[b'a', 128 + letter], 0.5);
        }
        assert_eq!(groups.as_slice().len(), GROUPS_MAX);
        let last = groups.as_slice()[GROUPS_MAX - 1];
        assert_eq!((last.name().as_str(), last.threads), ("...", 69));
        assert!((last.used_cpus - 34.5).abs() < 1e-9);
    }

    #[test]
    fn the_groups_that_used_most_cpu_are_told_with_their_share() {
        let mut groups = ThreadGroups::new();
        for (number, used_cpus) in (0..12).zip([0.1, 0.3, 0.0, 0.6]) {
            groups.add(&[b'a', b'A' + number], used_cpus);
        }
        groups.add(b"GC Thread#1", 1.0);
        groups.sort();
        let top = TopThreads::of(groups.as_slice());
        let told: Vec<_> = top
            .iter()
            .map(|(group, share)| (group.name(), share.map(|share| (share * 100.0).round())))
            .collect();
        let wanted = [
            ("GC Thread#", 50.0),
            ("aD", 30.0),
            ("aB", 15.0),
            ("aA", 5.0),
        ];
        for (found, (name, percent)) in told.iter().zip(wanted) {
            assert_eq!(*found, (name.to_owned(), Some(percent)));
        }
        let idle = TopThreads::of(&[]);
        assert_eq!((told.len(), idle.iter().count()), (5, 0));
    }

    #[test]
    fn collectors_are_known_by_their_names() {
        for name in [
            "GC Thread#3",
            "G1 Conc#0",
            "G1 Main Marker",
            "VM Thread",
            "ZWorkerYoung#0",
        ] {
            assert!(is_gc(name.as_bytes()), "{name}");
        }
        for name in ["java", "VM Periodic Tas", "G1", "http-nio-8080-e", ""] {
            assert!(!is_gc(name.as_bytes()), "{name}");
        }
    }
}
