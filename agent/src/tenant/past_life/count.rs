//! One pair of earlier pages, and what is in flight there.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use tidegate_abi::board::SeatWord;
use tidegate_segment::board::{Board, Process, Slot};
use tidegate_segment::ledger::Ledger;
use tidegate_segment::os::map;
use tidegate_segment::os::memfd::{self, FileId, MemoryKind};
use tidegate_segment::page::Page;

use super::{HandedBack, NotCounted};
use crate::tenant::directory::parts_of;
use crate::tenant::{AGENT_SEAT, Tenant, seat_life};

/// Most that counts of one resource on one ledger. All ledgers together stay below what the sum of a seat can hold.
const HELD_MAX: u32 = 1 << 19;

/// Proved pages, mapped.
#[derive(Debug)]
pub(super) struct MappedPages {
    board: Board,
    ledger: Ledger,
    pages: [Page; 2],
}

impl MappedPages {
    /// Maps what was handed back, if the agent's own user made it and whoever hands it back sits there.
    pub(super) fn prove(back: &HandedBack<'_>) -> Result<Self, NotCounted> {
        let [board_file, ledger_file] = back.files;
        let words = made_by_us(board_file)?;
        made_by_us(ledger_file)?;
        let no_pages = |_fault| NotCounted::NoPages;
        let board_page = memfd::open(MemoryKind::Board, board_file, words).map_err(no_pages)?;
        Self::of(board_page, ledger_file, back).inspect_err(|_why| retire(board_page))
    }

    fn of(
        board_page: Page,
        ledger_file: &OwnedFd,
        back: &HandedBack<'_>,
    ) -> Result<Self, NotCounted> {
        let board = Board::open(board_page).map_err(|_fault| NotCounted::NoPages)?;
        if !sits(&board, back) {
            return Err(NotCounted::Stranger);
        }
        let words = board.geometry().ledger().words;
        let ledger_page = memfd::open(MemoryKind::Ledger, ledger_file, words);
        let ledger_page = ledger_page.map_err(|_fault| NotCounted::NoPages)?;
        // Whoever has mapped it may have written another header; the board tells its sizes.
        let ledger = Ledger::create(ledger_page, board.geometry());
        Ok(Self {
            board,
            ledger: ledger.ok_or(NotCounted::NoPages)?,
            pages: [board_page, ledger_page],
        })
    }

    /// Living processes that have a seat there. The agent's own ended with its callers' connections.
    fn sitters(&self) -> Vec<SeatedProcess> {
        let seats = (0..self.board.seats_used()).filter(|seat| *seat != AGENT_SEAT);
        let sitter = |seat: u32| {
            let info = self.board.seat_info(seat).filter(|info| info.word.live)?;
            let pidfd = seat_life::alive(&Process {
                pid: info.pid,
                start: info.start,
                uid: info.uid,
                scope: 0,
            })?;
            let word = info.word;
            Some(SeatedProcess { seat, word, pidfd })
        };
        seats.filter_map(sitter).collect()
    }
}

/// A process with a seat on earlier pages.
#[derive(Debug)]
struct SeatedProcess {
    seat: u32,
    word: SeatWord,
    /// By which its death is seen.
    pidfd: OwnedFd,
}

/// Earlier pages that count.
#[derive(Debug)]
pub(super) struct CountedPages {
    pub(super) files: [FileId; 2],
    mapped: MappedPages,
    sitters: Vec<SeatedProcess>,
    /// The user who showed them, for whom names get slots.
    uid: u32,
    /// What counts now, by the slots in force.
    held: HashMap<Slot, u32>,
    /// The slots in force of the names there, where anything was in flight.
    slots: HashMap<u32, Slot>,
    empty_since: Option<Instant>,
}

impl CountedPages {
    pub(super) fn new(files: [FileId; 2], mapped: MappedPages, uid: u32) -> Self {
        Self {
            files,
            sitters: mapped.sitters(),
            mapped,
            uid,
            held: HashMap::new(),
            slots: HashMap::new(),
            empty_since: None,
        }
    }

    pub(super) fn services(&self) -> usize {
        self.sitters.len()
    }

    pub(super) fn requests(&self) -> u64 {
        self.held.values().copied().map(u64::from).sum()
    }

    pub(super) fn is_later_than(&self, other: &Self) -> bool {
        let [own, others] = [self, other].map(|one| one.mapped.board.heartbeat_ns());
        own > others
    }

    pub(super) fn is_empty_for(&self, time: Duration) -> bool {
        self.empty_since
            .is_some_and(|since| since.elapsed() >= time)
    }

    /// Counts what is in flight there now.
    pub(super) fn look(&mut self, tenant: &Tenant) {
        self.sitters
            .retain(|sitter| seat_life::lives(&sitter.pidfd));
        let now = self.now(tenant);
        self.count(tenant, now);
    }

    /// Counts nothing there any more.
    pub(super) fn end(mut self, tenant: &Tenant) {
        self.count(tenant, HashMap::new());
        self.mapped.pages.into_iter().for_each(retire);
    }

    fn count(&mut self, tenant: &Tenant, now: HashMap<Slot, u32>) {
        let own = (AGENT_SEAT, tenant.board().seat(AGENT_SEAT).generation);
        let change = |slot: Slot, held: [u32; 2]| {
            if held.first() != held.last() {
                tenant.ledger().count_for_others(own, slot, held);
            }
        };
        for (slot, before) in &self.held {
            let now = now.get(slot).copied().unwrap_or(0);
            change(*slot, [*before, now]);
        }
        let new = now
            .iter()
            .filter(|(slot, _held)| !self.held.contains_key(slot));
        new.for_each(|(slot, held)| change(*slot, [0, *held]));
        let is_empty = now.is_empty();
        self.empty_since = is_empty.then(|| self.empty_since.unwrap_or_else(Instant::now));
        self.held = now;
    }

    /// What is in flight, by the slots in force.
    fn now(&mut self, tenant: &Tenant) -> HashMap<Slot, u32> {
        let mut now: HashMap<Slot, u32> = HashMap::new();
        let mut buffer = [0; 256];
        let board = self.mapped.board;
        for index in 0..board.resources_used() {
            let Some((slot, name)) = board.name(index, &mut buffer) else {
                continue;
            };
            let held = self.held_on(slot);
            if held == 0 {
                continue;
            }
            let known = self.slots.get(&index).copied();
            let own = known.or_else(|| self.own_slot(tenant, name));
            let Some(own) = own else { continue };
            self.slots.insert(index, own);
            let sum = now.entry(own).or_default();
            *sum = sum.saturating_add(held).min(HELD_MAX);
        }
        now
    }

    fn held_on(&self, slot: Slot) -> u32 {
        let ledger = &self.mapped.ledger;
        let held = self.sitters.iter().fold(0_u32, |sum, sitter| {
            let own = ledger.seat_node_inflight(sitter.seat, sitter.word, slot);
            sum.saturating_add(own)
        });
        held.min(HELD_MAX)
    }

    /// The slot in force of a name; none for a node of an origin or a context that no rule wants here.
    fn own_slot(&self, tenant: &Tenant, name: &str) -> Option<Slot> {
        let (resource, part) = parts_of(name);
        let own = tenant.directory().find(resource).or_else(|| {
            tidegate_abi::check_name(resource.as_bytes()).ok()?;
            Some(tenant.directory().resolve_by(resource, self.uid).slot)
        })?;
        match part {
            None => Some(own),
            Some(part) => tenant.part((resource, own), part, self.uid),
        }
    }
}

/// Words of a file that the agent's own user made.
fn made_by_us(file: &OwnedFd) -> Result<usize, NotCounted> {
    let (maker, words) = memfd::maker_and_words(file).map_err(NotCounted::Unknown)?;
    if maker == rustix::process::geteuid().as_raw() {
        Ok(words)
    } else {
        Err(NotCounted::Forged { maker })
    }
}

/// Whether the process has a seat there, and that one if it says which.
fn sits(board: &Board, back: &HandedBack<'_>) -> bool {
    let own = |seat: u32| {
        board.seat_info(seat).is_some_and(|info| {
            let says = back
                .seat
                .is_none_or(|said| (said.index, said.generation) == (seat, info.word.generation));
            let same = (info.pid, info.start) == (back.process.pid, back.process.start);
            info.word.live && same && says
        })
    };
    (0..board.seats_used()).any(own)
}

fn retire(page: Page) {
    // Where the kernel has no room for the change, the page just stays mapped.
    let _kept: Result<(), Errno> = map::retire(page);
}
