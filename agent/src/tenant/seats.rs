//! Who sits where on the pages, and the counts of those who left.
//!
//! A seat is free, taken, or revoked. The death of its process frees it at once; when only its socket
//! ended, the process may still be inside a decision on its rows, so the seat rests before it is
//! given to another ([`super::seat_life`]).

use std::io;
use std::path::Path;

use parking_lot::Mutex;
use tidegate_segment::board::{Board, Process, SeatWriter, Slot};
use tidegate_segment::ledger::{Ledger, NodeCounts, ScopeCounts};
use tidegate_segment::sync::{Ordering, Word};

use super::left::{LastLife, LifeRecord, PageNames, RecordedSeat};
use super::seat_life::SEATS_OF_PROCESS;
use super::{AGENT_SEAT, HOST};
use crate::places::Full;

/// One in so many seats is kept for the agent, which counts callers over sockets there: those who find no seat of their
/// own ask over a socket.
const FOR_AGENT: usize = 16;

/// A seat and its generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    /// Number of the seat.
    pub index: u32,
    /// Generation under which it was given.
    pub generation: u32,
}

/// The seats of a tenant.
#[derive(Debug)]
pub struct Seats {
    ledger: Ledger,
    /// Processes that got none, in the order of [`Full::ALL`].
    refused: [Word; 3],
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    writer: SeatWriter,
    /// Whether each seat may be given, in the order of the seats.
    free: Vec<bool>,
    /// Whether all who come are one user's, who then needs no share.
    one_user: bool,
    /// Seats that the agent has taken for callers over sockets.
    agents: usize,
    kept: PastTotals,
    /// Where the next life finds who sits where.
    record: Option<LifeRecord>,
}

/// Counts of processes that left, so that totals never go backwards.
#[derive(Debug, Default)]
struct PastTotals {
    /// In the order of the slots.
    nodes: Vec<NodeCounts>,
    /// In the order of the scopes.
    scopes: Vec<ScopeCounts>,
    without_agent: u64,
    contended: u64,
}

/// Decisions that went another way than usual, over all processes that ever were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unusual {
    /// Made while the agent's heartbeat was too old.
    pub without_agent: u64,
    /// Admitted because the board changed under every try.
    pub contended: u64,
}

impl Seats {
    /// All seats but the agent's and those that are taken already are free.
    pub(super) fn new(writer: SeatWriter, ledger: Ledger) -> Box<Self> {
        let seats = 0..ledger.geometry().seats();
        let board = writer.board();
        let is_free = |index: u32| index != AGENT_SEAT && !board.seat(index).live;
        Box::new(Self {
            ledger,
            refused: [const { Word::new(0) }; 3],
            table: Mutex::new(Table {
                free: seats.map(is_free).collect(),
                writer,
                one_user: false,
                agents: 0,
                kept: PastTotals::default(),
                record: None,
            }),
        })
    }

    /// Writes down for the next life which files the pages are and who sits where, and goes on doing so.
    ///
    /// # Errors
    /// The file system refused.
    pub(super) fn record_to(&self, path: &Path, names: PageNames) -> io::Result<()> {
        let mut table = self.table.lock();
        let board = table.writer.board();
        let seats = 0..board.seats_used();
        let left = LastLife {
            names,
            geometry: board.geometry(),
            seats: seats.filter_map(|index| seat_now(&board, index)).collect(),
        };
        table.record = Some(LifeRecord::write(path, &left)?);
        Ok(())
    }

    /// Gives the lowest free seat to a process. Seats that rest after their connection ended count as taken.
    ///
    /// # Errors
    /// There is none, or its user or the process has its share.
    pub fn take(&self, process: Process) -> Result<Seat, Full> {
        let mut table = self.table.lock();
        let taken = table.take(process);
        drop(table);
        taken.inspect_err(|full| {
            let refused = Full::ALL.iter().zip(&self.refused);
            let mut own = refused.filter(|(kind, _count)| *kind == full);
            own.by_ref().for_each(|(_kind, count)| count.count(1));
        })
    }

    /// Takes the lowest free seat for the agent itself, for the callers of a service over sockets; `None` if there is none.
    pub fn take_for_agent(&self, process: Process, service: u64) -> Option<Seat> {
        let mut table = self.table.lock();
        let place = table.free.iter().position(|free| *free)?;
        let seat = table.give(place, process)?;
        table.agents = table.agents.saturating_add(1);
        table.writer.name_service(seat.index, service);
        Some(seat)
    }

    /// Frees a revoked seat that was taken for the agent.
    pub fn give_back_of_agent(&self, seat: Seat) {
        self.free(seat);
        let mut table = self.table.lock();
        table.agents = table.agents.saturating_sub(1);
    }

    /// All who come are one user's: there is nobody to keep seats for.
    pub fn serve_one_user(&self) {
        self.table.lock().one_user = true;
    }

    /// Most seats of one user other than root.
    pub fn of_user(&self) -> usize {
        self.table.lock().of_user()
    }

    /// Processes that got no seat, by what was full.
    pub fn refused(&self) -> impl Iterator<Item = (Full, u64)> {
        // Relaxed: numbers for people.
        let counts = self
            .refused
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        Full::ALL.into_iter().zip(counts)
    }

    /// How many seats processes have, and how many they may have.
    pub fn taken(&self) -> (u64, u64) {
        let table = self.table.lock();
        let free = table.free.iter().filter(|free| **free).count();
        // The agent has one beside those that it takes for others.
        let own = table.agents.saturating_add(1);
        let processes = table.free.len().saturating_sub(own);
        let all = processes.saturating_sub(table.kept_for_agent());
        let taken = processes.saturating_sub(free);
        drop(table);
        [taken, all]
            .map(|seats| u64::try_from(seats).unwrap_or(u64::MAX))
            .into()
    }

    /// Takes a seat away: its permits no longer count. It is not free yet.
    pub fn revoke(&self, seat: Seat) {
        let mut table = self.table.lock();
        table.writer.revoke(seat.index);
        table.note(seat.index);
    }

    /// Frees a revoked seat that its process will not write any more; its counts are kept.
    pub fn free(&self, seat: Seat) {
        let mut table = self.table.lock();
        let Table {
            writer, free, kept, ..
        } = &mut *table;
        let board = writer.board();
        kept.fold(&self.ledger, &board, seat.index);
        self.ledger.clear_seat(seat.index, board.resources_used());
        let place = usize::try_from(seat.index).ok();
        if let Some(free) = place.and_then(|place| free.get_mut(place)) {
            *free = true;
        }
    }

    /// Shows which seats have rows that count, in their order. None is given or freed meanwhile.
    pub(super) fn with_used<T>(&self, look: impl FnOnce(&[bool]) -> T) -> T {
        let table = self.table.lock();
        let used: Vec<bool> = table.free.iter().map(|free| !*free).collect();
        look(&used)
    }

    /// Says which service a process belongs to, by its name; nothing happens if the seat was taken away.
    pub fn name_service(&self, seat: Seat, name: &str) {
        let mut table = self.table.lock();
        let word = table.writer.board().seat(seat.index);
        if word.live && word.generation == seat.generation {
            let hash = tidegate_abi::board::name_hash(name.as_bytes());
            table.writer.name_service(seat.index, hash);
        }
    }

    /// Moves a process to the scope of its cgroup; nothing happens if the seat was taken away.
    pub fn move_to_scope(&self, seat: Seat, scope: u32) {
        let mut table = self.table.lock();
        let word = table.writer.board().seat(seat.index);
        if word.live && word.generation == seat.generation {
            table.writer.move_to_scope(seat.index, scope);
        }
    }

    /// Forgets what was counted on a node that was given back.
    pub fn clear_node(&self, slot: Slot) {
        let mut table = self.table.lock();
        let seats = table.writer.board().seats_used();
        self.ledger.clear_node(slot.index, seats);
        let place = usize::try_from(slot.index).ok();
        if let Some(kept) = place.and_then(|place| table.kept.nodes.get_mut(place)) {
            *kept = NodeCounts::default();
        }
    }

    /// Counts of a resource over all processes that ever were.
    pub fn node_counts(&self, slot: Slot) -> NodeCounts {
        let table = self.table.lock();
        let mut counts = self.ledger.node_counts(&table.writer.board(), slot);
        let place = usize::try_from(slot.index).ok();
        if let Some(kept) = place.and_then(|place| table.kept.nodes.get(place)) {
            counts.keep(kept);
        }
        counts
    }

    /// Counts of a scope over all processes that ever were; scope 0 is the host and has them all.
    pub fn scope_counts(&self, scope: u32) -> ScopeCounts {
        let table = self.table.lock();
        let mut counts = self.ledger.scope_counts(&table.writer.board(), scope);
        let place = usize::try_from(scope).ok();
        if let Some(kept) = place.and_then(|place| table.kept.scopes.get(place)) {
            counts.keep(kept);
        }
        counts
    }

    /// Decisions that went another way than usual.
    pub fn unusual(&self) -> Unusual {
        let table = self.table.lock();
        let mut unusual = Unusual {
            without_agent: table.kept.without_agent,
            contended: table.kept.contended,
        };
        for seat in 0..table.writer.board().seats_used() {
            let (without_agent, contended) = self.ledger.seat_faults(seat);
            unusual.without_agent = unusual.without_agent.wrapping_add(without_agent);
            unusual.contended = unusual.contended.wrapping_add(contended);
        }
        unusual
    }
}

impl Table {
    /// Writes a change of a seat down for the next life.
    fn note(&mut self, index: u32) {
        let seat = seat_now(&self.writer.board(), index);
        let (Some(record), Some(seat)) = (&self.record, seat) else {
            return;
        };
        if let Err(error) = record.set_seat(&seat) {
            tracing::warn!(event = "seats_not_recorded", %error, "seats are no longer recorded: after a restart too few requests in flight may count");
            self.record = None;
        }
    }

    /// One user other than root has half of the seats at most.
    const fn of_user(&self) -> usize {
        // The agent has one of them.
        self.free.len().saturating_sub(1).div_ceil(2)
    }

    /// Seats that are free and not for processes.
    fn kept_for_agent(&self) -> usize {
        (self.free.len() / FOR_AGENT).saturating_sub(self.agents)
    }

    fn take(&mut self, process: Process) -> Result<Seat, Full> {
        let place = self.free.iter().position(|free| *free).ok_or(Full::All)?;
        let free = self.free.iter().filter(|free| **free).count();
        if free <= self.kept_for_agent() {
            return Err(Full::All);
        }
        let board = self.writer.board();
        let taken = (0..)
            .zip(&self.free)
            .skip(1)
            .filter(|(_index, free)| !**free);
        let holders: Vec<_> = taken
            .filter_map(|(index, _taken)| board.seat_info(index))
            .collect();
        let of_user = holders.iter().filter(|seat| seat.uid == process.uid);
        let has_share = process.uid != 0 && !self.one_user;
        if has_share && of_user.count() >= self.of_user() {
            return Err(Full::User);
        }
        let is_same = |pid, start| (pid, start) == (process.pid, process.start);
        let of_process = holders.iter().filter(|seat| is_same(seat.pid, seat.start));
        if of_process.count() >= SEATS_OF_PROCESS {
            return Err(Full::Process);
        }
        self.give(place, process).ok_or(Full::All)
    }

    fn give(&mut self, place: usize, process: Process) -> Option<Seat> {
        let index = u32::try_from(place).ok()?;
        let generation = self.writer.seat(index, process)?;
        if let Some(free) = self.free.get_mut(place) {
            *free = false;
        }
        self.note(index);
        Some(Seat { index, generation })
    }
}

fn seat_now(board: &Board, index: u32) -> Option<RecordedSeat> {
    let info = board.seat_info(index)?;
    Some(RecordedSeat {
        index,
        word: info.word,
        process: Process {
            pid: info.pid,
            start: info.start,
            uid: info.uid,
            scope: HOST,
        },
    })
}

impl PastTotals {
    fn fold(&mut self, ledger: &Ledger, board: &Board, seat: u32) {
        let mut name = [0; 256];
        for index in 0..board.resources_used() {
            let Some((slot, _name)) = board.name(index, &mut name) else {
                continue;
            };
            if let Some(kept) = place(&mut self.nodes, index) {
                kept.keep(&ledger.seat_node_counts(board, seat, slot));
            }
        }
        let counts = ledger.seat_counts(board, seat);
        let own = board.seat_scope(seat);
        for scope in [HOST, own]
            .into_iter()
            .take(if own == HOST { 1 } else { 2 })
        {
            if let Some(kept) = place(&mut self.scopes, scope) {
                kept.keep(&counts);
            }
        }
        let (without_agent, contended) = ledger.seat_faults(seat);
        self.without_agent = self.without_agent.wrapping_add(without_agent);
        self.contended = self.contended.wrapping_add(contended);
    }
}

/// The record at an index, with empty ones before it as needed.
fn place<T: Default + Clone>(records: &mut Vec<T>, index: u32) -> Option<&mut T> {
    let index = usize::try_from(index).ok()?;
    if records.len() <= index {
        records.resize(index.checked_add(1)?, T::default());
    }
    records.get_mut(index)
}

#[cfg(test)]
mod tests {
    use tidegate_abi::decision::Outcome;
    use tidegate_abi::geometry::Geometry;
    use tidegate_segment::gate::{Gate, GateVerdict, Request, Step};
    use tidegate_segment::lane::Lane;

    use super::*;
    use crate::tenant::Tenant;
    use crate::tenant::tests::tenant;

    const PROCESS: Process = Process {
        pid: 77,
        start: 1,
        uid: 0,
        scope: 1,
    };

    fn small() -> Tenant {
        tenant(Geometry::new(8, 3, 2, 2).unwrap())
    }

    fn enter(tenant: &Tenant, seat: Seat, slot: Slot) -> GateVerdict {
        let gate = Gate::new(
            *tenant.board(),
            *tenant.ledger(),
            seat.index,
            seat.generation,
        );
        match gate.enter(tenant.board(), Lane::numbered(1), slot, Request::default()) {
            Step::Done(verdict) => verdict,
            Step::Wait(_) => GateVerdict::Stale,
        }
    }

    #[test]
    fn the_lowest_free_seat_is_given_and_none_is_no_seat() {
        let tenant = small();
        let first = tenant.seats().take(PROCESS).unwrap();
        let second = tenant.seats().take(PROCESS).unwrap();
        assert_eq!((first.index, second.index), (1, 2));
        assert_eq!(tenant.seats().taken(), (2, 2), "the agent has one more");
        assert_eq!(tenant.seats().take(PROCESS), Err(Full::All));
        tenant.seats().revoke(first);
        assert_eq!(
            tenant.seats().take(PROCESS),
            Err(Full::All),
            "revoked is not free"
        );
        tenant.seats().free(first);
        assert_eq!(tenant.seats().taken(), (1, 2));
        let again = tenant.seats().take(PROCESS).unwrap();
        assert_eq!(again.index, 1);
        assert_ne!(again.generation, first.generation);
    }

    #[test]
    fn permits_go_with_the_seat_and_counts_stay() {
        let tenant = small();
        let slot = tenant.directory().resolve("a").slot;
        let seat = tenant.seats().take(PROCESS).unwrap();
        let GateVerdict::Admitted(pass) = enter(&tenant, seat, slot) else {
            panic!("admitted");
        };
        let gate = Gate::new(
            *tenant.board(),
            *tenant.ledger(),
            seat.index,
            seat.generation,
        );
        gate.exit(tenant.board(), Lane::numbered(1), pass, Outcome::Ok);
        let GateVerdict::Admitted(_held) = enter(&tenant, seat, slot) else {
            panic!("admitted");
        };
        let counts = |slot| {
            let counts = tenant.seats().node_counts(slot);
            (counts.inflight, counts.passed, counts.success)
        };
        assert_eq!(counts(slot), (1, 2, 1));
        tenant.seats().revoke(seat);
        assert_eq!(counts(slot), (0, 2, 1));
        assert_eq!(enter(&tenant, seat, slot), GateVerdict::Stale);
        tenant.seats().free(seat);
        assert_eq!(counts(slot), (0, 2, 1));
        for scope in [0, 1] {
            let counts = tenant.seats().scope_counts(scope);
            assert_eq!((counts.inflight, counts.passed, counts.success), (0, 2, 1));
        }
        let next = tenant.seats().take(PROCESS).unwrap();
        assert_eq!(
            counts(slot),
            (0, 2, 1),
            "the next holder begins with clean rows"
        );
        tenant.seats().revoke(next);
        tenant.seats().free(next);
        assert_eq!(counts(slot), (0, 2, 1));
    }
}
