//! From records of the probes to pauses: when a JVM stood still, and for how long.
//!
//! Records may be lost or come twice, and a process may end within a pause. So nothing is believed
//! for longer than [`LONGEST_NS`], and what is open is forgotten when records were lost.

use std::collections::BTreeMap;

use tidegate_abi::kernel::pause::{PauseKind, ProbeRecord};

/// Longest pause that is believed: ten minutes.
const LONGEST_NS: u64 = 600_000_000_000;
/// Most JVMs whose pauses are followed at once.
const PROCESSES_MAX: usize = 1024;

/// Why a JVM stood still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// For garbage collection.
    Gc,
    /// For any reason, garbage collection among them.
    Safepoint,
}

/// A pause that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pause {
    pub(super) process: u32,
    pub(super) reason: Reason,
    pub(super) end_ns: u64,
    pub(super) length_ns: u64,
}

/// A pause that has begun.
#[derive(Debug, Clone, Copy, Default)]
struct Open {
    since_ns: u64,
    /// Collections may begin within collections; 0 is no pause.
    depth: u32,
}

/// The pauses of all JVMs.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    open: BTreeMap<u32, [Open; 2]>,
    /// Records that had no partner.
    pub(super) unpaired: u64,
}

impl Pauses {
    /// Takes a record; returns the pause that it ends.
    pub(super) fn take(&mut self, record: ProbeRecord) -> Option<Pause> {
        let ProbeRecord {
            kind,
            process,
            at_ns,
        } = record;
        let (reason, begins) = match kind {
            PauseKind::GcBegin => (Reason::Gc, true),
            PauseKind::GcEnd => (Reason::Gc, false),
            PauseKind::SafepointBegin => (Reason::Safepoint, true),
            PauseKind::SafepointEnd => (Reason::Safepoint, false),
        };
        if begins && self.open.len() >= PROCESSES_MAX && !self.open.contains_key(&process) {
            self.forget_old(at_ns);
        }
        let both = self.open.entry(process).or_default();
        let [gc, safepoint] = both;
        let open = match reason {
            Reason::Gc => gc,
            Reason::Safepoint => safepoint,
        };
        let (ended, lost) = if begins {
            (None, open.begin(at_ns))
        } else {
            open.end(at_ns)
        };
        self.unpaired = self.unpaired.saturating_add(lost);
        if both.iter().all(|open| open.depth == 0) {
            self.open.remove(&process);
        }
        ended.map(|length_ns| Pause {
            process,
            reason,
            end_ns: at_ns,
            length_ns,
        })
    }

    /// Records were lost: whatever is open may have ended.
    pub(super) fn forget(&mut self) {
        let open = u64::try_from(self.open.len()).unwrap_or(u64::MAX);
        self.unpaired = self.unpaired.saturating_add(open);
        self.open.clear();
    }

    /// Forgets pauses of processes that must have ended; all of them if that makes no room.
    fn forget_old(&mut self, now_ns: u64) {
        let is_old = |open: &Open| now_ns.saturating_sub(open.since_ns) > LONGEST_NS;
        self.open.retain(|_process, open| !open.iter().all(is_old));
        if self.open.len() >= PROCESSES_MAX {
            self.forget();
        }
    }
}

impl Open {
    /// Begins; returns how many records must have been lost before.
    fn begin(&mut self, at_ns: u64) -> u64 {
        if self.depth > 0 && at_ns.saturating_sub(self.since_ns) <= LONGEST_NS {
            self.depth = self.depth.saturating_add(1);
            return 0;
        }
        let lost = u64::from(self.depth > 0);
        (self.since_ns, self.depth) = (at_ns, 1);
        lost
    }

    /// Ends; returns the length of the pause that is over, ns, and how many records have no partner.
    fn end(&mut self, at_ns: u64) -> (Option<u64>, u64) {
        let Some(depth) = self.depth.checked_sub(1) else {
            return (None, 1);
        };
        self.depth = depth;
        match at_ns.checked_sub(self.since_ns) {
            Some(length_ns) if length_ns <= LONGEST_NS => ((depth == 0).then_some(length_ns), 0),
            _too_long_or_backwards => (None, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: PauseKind, process: u32, at_ns: u64) -> ProbeRecord {
        ProbeRecord {
            kind,
            process,
            at_ns,
        }
    }

    #[test]
    fn a_pause_is_from_its_begin_to_its_end_in_its_own_process() {
        let mut pauses = Pauses::default();
        assert_eq!(pauses.take(record(PauseKind::SafepointBegin, 1, 5)), None);
        assert_eq!(pauses.take(record(PauseKind::GcBegin, 1, 10)), None);
        assert_eq!(pauses.take(record(PauseKind::GcBegin, 2, 12)), None);
        let gc = Pause {
            process: 1,
            reason: Reason::Gc,
            end_ns: 30,
            length_ns: 20,
        };
        assert_eq!(pauses.take(record(PauseKind::GcEnd, 1, 30)), Some(gc));
        let all = pauses.take(record(PauseKind::SafepointEnd, 1, 31));
        assert_eq!(all.map(|pause| pause.length_ns), Some(26));
        let other = pauses.take(record(PauseKind::GcEnd, 2, 13));
        assert_eq!(other.map(|pause| pause.length_ns), Some(1));
        assert_eq!((pauses.unpaired, pauses.open.len()), (0, 0));
    }

    #[test]
    fn a_collection_within_a_collection_is_one_pause() {
        let mut pauses = Pauses::default();
        for (kind, at_ns) in [
            (PauseKind::GcBegin, 1),
            (PauseKind::GcBegin, 2),
            (PauseKind::GcEnd, 3),
        ] {
            assert_eq!(pauses.take(record(kind, 1, at_ns)), None);
        }
        let ended = pauses.take(record(PauseKind::GcEnd, 1, 4));
        assert_eq!(ended.map(|pause| pause.length_ns), Some(3));
    }

    #[test]
    fn what_has_no_partner_is_counted_and_makes_no_pause() {
        let mut pauses = Pauses::default();
        assert_eq!(pauses.take(record(PauseKind::GcEnd, 1, 7)), None);
        assert_eq!(pauses.unpaired, 1);
        pauses.take(record(PauseKind::GcBegin, 1, 8));
        pauses.forget();
        assert_eq!(pauses.take(record(PauseKind::GcEnd, 1, 9)), None);
        assert_eq!(pauses.unpaired, 3);
        // An end that was lost long ago does not make the next pause longer.
        pauses.take(record(PauseKind::GcBegin, 1, 10));
        let later_ns = 11 + LONGEST_NS;
        pauses.take(record(PauseKind::GcBegin, 1, later_ns));
        let ended = pauses.take(record(PauseKind::GcEnd, 1, later_ns + 2));
        assert_eq!(ended.map(|pause| pause.length_ns), Some(2));
    }

    #[test]
    fn the_number_of_processes_is_bounded() {
        let mut pauses = Pauses::default();
        for process in 0..5000 {
            pauses.take(record(PauseKind::GcBegin, process, u64::from(process)));
            assert!(pauses.open.len() <= PROCESSES_MAX);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_and_no_pause_is_longer_than_is_believed(
            records in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..24), 0..64)
        ) {
            let mut pauses = Pauses::default();
            for bytes in &records {
                if let Ok(record) = ProbeRecord::decode(bytes)
                    && let Some(pause) = pauses.take(record)
                {
                    prop_assert!(pause.length_ns <= LONGEST_NS);
                }
            }
        }
    }
}
