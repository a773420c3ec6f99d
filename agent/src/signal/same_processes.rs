//! Whether the groups that stand for one group in several hierarchies hold the same processes.
//!
//! With cgroup v1 each controller may have a hierarchy of its own, and a process joins each by itself: for a while, or
//! for good, it is in a group of one and at the top of another. What such a group counts is not the group's own. So
//! nothing of another hierarchy is believed before the lists of processes were found to be the same, and the lists are
//! looked at again and again: at once when processes come or go, and less often while a group stays as it is.

use super::processes::Scan;
use super::processes::members::Members;
use crate::procfs::kept_file::ReadBuffer;
use crate::procfs::{Layout, Place, Places};
use crate::procfs::{Missing, NoValue};

/// Time from one look to the next, where one found a group changed or not proved.
const AGAIN_NS: u64 = 1_000_000_000;
/// The same where the last looks found nothing new. A process that leaves one hierarchy alone is the only change that
/// nothing else tells of.
const SETTLED_NS: u64 = 4_000_000_000;
/// Looks that find nothing new until a group counts as settled.
const SETTLED_LOOKS: u32 = 4;
/// Time between two searches for groups below. One that is not found yet is missing in both lists.
const SEARCH_NS: u64 = 10_000_000_000;
/// Most processes that are asked where they are, since one of two lists does not have them. Processes come and go
/// between the reading of two lists.
const ASKED_MAX: usize = 16;

/// A hierarchy beside that of the cpu controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    Cpuacct,
    Cpuset,
    Unified,
}

impl Beside {
    /// In the order of [`Proved`].
    pub(super) const ALL: [Self; 3] = [Self::Cpuacct, Self::Cpuset, Self::Unified];

    /// Its name in reasons.
    const fn source(self) -> &'static str {
        match self {
            Self::Cpuacct => "cpuacct",
            Self::Cpuset => "cpuset",
            Self::Unified => "cgroup2",
        }
    }

    /// Its group that has to be proved to be the same; `None` where there is nothing to prove. The top of a hierarchy
    /// holds more than a group below the top of another, whatever is to be seen of it.
    fn to_prove(self, places: &Places) -> Option<Result<&Place, Missing>> {
        let cpu = places.cpu.as_ref().ok()?;
        let place = self.of(places).as_ref().ok()?;
        let is_top = |place: &Place| place.below.as_os_str().is_empty();
        if place.point == cpu.point {
            return None;
        }
        match (is_top(cpu), is_top(place)) {
            // Both hold all processes.
            (true, true) => None,
            (false, true) if self == Self::Cpuset => None,
            (false, true) => Some(Err(self.astray())),
            (_, false) => Some(Ok(place)),
        }
    }

    const fn astray(self) -> Missing {
        Missing {
            source: self.source(),
            fault: NoValue::OtherProcesses,
        }
    }

    fn of(self, places: &Places) -> &Result<Place, Missing> {
        match self {
            Self::Cpuacct => &places.cpuacct,
            Self::Cpuset => &places.cpuset,
            Self::Unified => &places.unified,
        }
    }

    fn of_mut(self, places: &mut Places) -> &mut Result<Place, Missing> {
        match self {
            Self::Cpuacct => &mut places.cpuacct,
            Self::Cpuset => &mut places.cpuset,
            Self::Unified => &mut places.unified,
        }
    }

    /// The group of a process in it.
    fn of_process(self, layout: &Layout, pid: u32) -> Option<(Place, Option<Place>)> {
        let places = layout.places_of_process(Some(pid)).ok()?;
        let place = self.of(&places).as_ref().ok().cloned();
        Some((places.cpu.ok()?, place))
    }
}

/// For each hierarchy beside that of the cpu controller whether its group is the same, or why that is not known.
pub(super) type Proved = [Result<(), Missing>; 3];

/// The places that count: those that are proved, and for each other one the reason.
pub(super) fn proved_places(places: &Places, proved: &Proved) -> Places {
    let mut believed = places.clone();
    for (beside, proved) in Beside::ALL.into_iter().zip(proved) {
        if let Err(missing) = proved {
            *beside.of_mut(&mut believed) = Err(*missing);
        }
    }
    believed
}

/// The lists of one group.
#[derive(Debug)]
pub(super) struct SameProcesses {
    cpu: Roll,
    /// Those with something to prove, or why it never can be.
    besides: [Option<Result<Roll, Missing>>; 3],
    next_ns: u64,
    /// How often its processes had changed at the last look.
    changes: u64,
    /// Looks in a row that found all as before.
    settled: u32,
    last: Option<Proved>,
}

/// Processes of a group of one hierarchy and of the groups below it.
#[derive(Debug)]
struct Roll {
    place: Place,
    members: Members,
    pids: Vec<u32>,
}

impl Roll {
    fn new(place: &Place) -> Self {
        Self {
            members: Members::new(&place.dir(), SEARCH_NS),
            place: place.clone(),
            pids: Vec::new(),
        }
    }

    fn read(&mut self, scan: &mut Scan, buffer: &mut ReadBuffer) -> Result<(), Missing> {
        self.members.read(&mut self.pids, scan, buffer)?;
        self.pids.sort_unstable();
        Ok(())
    }

    fn holds(&self, place: &Place) -> bool {
        place.point == self.place.point && place.below.starts_with(&self.place.below)
    }
}

impl SameProcesses {
    /// What is to be proved of these places, or still to be found; `None` where one hierarchy has all.
    pub(super) fn of(places: &Places) -> Option<Self> {
        let besides =
            Beside::ALL.map(|beside| beside.to_prove(places).map(|place| place.map(Roll::new)));
        let cpu = places.cpu.as_ref().ok()?;
        let is_open = besides.iter().any(Option::is_some) || !places.all_found();
        is_open.then(|| Self {
            cpu: Roll::new(cpu),
            besides,
            next_ns: 0,
            changes: 0,
            settled: 0,
            last: None,
        })
    }

    /// What is believed before the first look.
    pub(super) fn at_first(&self) -> Proved {
        let mut besides = self.besides.iter();
        Beside::ALL.map(|beside| match besides.next() {
            Some(Some(Ok(_roll))) => Err(Missing {
                source: beside.source(),
                fault: NoValue::NotSampled,
            }),
            Some(Some(Err(never))) => Err(*never),
            _ => Ok(()),
        })
    }

    /// Whether any process was in the group at the last look.
    pub(super) fn has_processes(&self) -> bool {
        !self.cpu.pids.is_empty()
    }

    /// Looks at the lists, where it is time to; `None` = not yet. `changes` counts how often the processes of the group
    /// were seen to have changed.
    pub(super) fn look(
        &mut self,
        changes: u64,
        layout: &Layout,
        scan: &mut Scan,
        buffer: &mut ReadBuffer,
    ) -> Option<Proved> {
        if scan.now_ns() < self.next_ns && changes == self.changes {
            return None;
        }
        let rolls = self.besides.iter_mut().flatten().flatten();
        let mut rolls = rolls.chain([&mut self.cpu]);
        if !rolls.all(|roll| roll.members.search(scan)) {
            return None;
        }
        drop(rolls);
        let cpu = self.cpu.read(scan, buffer);
        let mut proved = [Ok(()); 3];
        let each = Beside::ALL.into_iter().zip(&mut self.besides);
        for ((beside, roll), proved) in each.zip(&mut proved) {
            *proved = match roll {
                None => Ok(()),
                Some(Err(never)) => Err(*never),
                Some(Ok(roll)) => {
                    let told = cpu.and_then(|()| roll.read(scan, buffer));
                    told.and_then(|()| compare(beside, &self.cpu, roll, layout, scan))
                }
            };
        }
        self.plan_next(changes, proved, scan.now_ns());
        Some(proved)
    }

    fn plan_next(&mut self, changes: u64, proved: Proved, now_ns: u64) {
        let is_proved = proved.iter().zip(&self.besides).all(|(proved, beside)| {
            let never = matches!(beside, Some(Err(_never)));
            never || proved.is_ok()
        });
        let is_as_before = is_proved && changes == self.changes && self.last == Some(proved);
        self.settled = if is_as_before {
            self.settled.saturating_add(1)
        } else {
            0
        };
        self.changes = changes;
        self.last = Some(proved);
        let wait_ns = if self.settled >= SETTLED_LOOKS {
            SETTLED_NS
        } else {
            AGAIN_NS
        };
        self.next_ns = now_ns.saturating_add(wait_ns);
    }
}

/// Whether both hold the same processes. A set of CPUs may hold others as well.
fn compare(
    beside: Beside,
    cpu: &Roll,
    other: &Roll,
    layout: &Layout,
    scan: &mut Scan,
) -> Result<(), Missing> {
    let missed = cpu
        .pids
        .iter()
        .filter(|pid| other.pids.binary_search(pid).is_err());
    let strange = other
        .pids
        .iter()
        .filter(|pid| cpu.pids.binary_search(pid).is_err());
    let strange = strange.filter(|_pid| beside != Beside::Cpuset);
    for (asked, pid) in missed.chain(strange).enumerate() {
        scan.spend(3);
        let Some((in_cpu, in_other)) = beside.of_process(layout, *pid) else {
            // It has ended.
            continue;
        };
        let in_other = in_other.is_some_and(|place| other.holds(&place));
        if asked >= ASKED_MAX || cpu.holds(&in_cpu) != in_other {
            return Err(beside.astray());
        }
    }
    Ok(())
}
