//! Takes up the pages of the life before.
//!
//! The ledger goes on as it is. The board cannot: nobody can map one for writing again. So a new one is written that says
//! the same of everything the ledger's words refer to: who sits in which seat, which name has which slot, which rule
//! has which state. Where the descriptors came from does not matter here: whoever brings them has proved them
//! ([`super::left::LastLife::prove`]).

use std::os::fd::OwnedFd;
use std::sync::Arc;

use tidegate_abi::board::SeatWord;
use tidegate_segment::board::{self, Process, SeatWriter, TickWriter, Writers};
use tidegate_segment::clock::monotonic_ns;
use tidegate_segment::gate::Gate;
use tidegate_segment::ledger::Ledger;
use tidegate_segment::os::map;
use tidegate_segment::os::memfd::{self, MemoryKind};
use tidegate_segment::page::Page;

use super::directory::ResourceDirectory;
use super::left::{BoardName, LastLife, ProvedPages, RecordedSeat};
use super::seats::Seat;
use super::{
    AGENT_SEAT, CreateError, HOST, OPEN_SCOPE, PageFiles, Tenant, TenantSettings, fixed,
    own_process, seat_life,
};

/// A seat that a living process has from the life before, and the handle by which its death is seen.
pub type LivingSeat = ((Seat, Process), OwnedFd);

/// A tenant that has taken up its pages.
#[derive(Debug)]
pub struct TakenUp {
    /// The tenant.
    pub tenant: Arc<Tenant>,
    /// For the sampler's thread.
    pub tick: TickWriter,
    /// Whom the seats are to be kept for, see [`seat_life::keep`].
    pub living: Vec<LivingSeat>,
}

impl TakenUp {
    /// A tenant with new pages.
    ///
    /// # Errors
    /// See [`Tenant::create`].
    pub fn new(settings: &TenantSettings) -> Result<Box<Self>, CreateError> {
        let (tenant, tick) = Tenant::create(settings)?;
        Ok(Box::new(Self {
            tenant: Arc::new(tenant),
            tick,
            living: Vec::new(),
        }))
    }
}

impl Tenant {
    /// Takes up proved pages.
    ///
    /// # Errors
    /// The kernel gives no memory file, or the board has no room for what the one before says. The old pages are as
    /// they were then.
    pub fn take_up(
        settings: &TenantSettings,
        left: &LastLife,
        proved: &ProvedPages,
    ) -> Result<Box<TakenUp>, CreateError> {
        let geometry = settings.geometry;
        let misfit = || CreateError::Layout(geometry);
        let (board_page, board_file) = memfd::create(MemoryKind::Board, geometry.board().words)?;
        let fixed = fixed(settings)?;
        let name = BoardName {
            file: memfd::identify(&board_file).map_err(CreateError::Identity)?,
            generation: fixed.generation,
        };
        let names = left.names.followed_by(name, proved.place);
        let files = PageFiles {
            board: board_file,
            ledger: proved.ledger_file.try_clone().map_err(|_none| misfit())?,
        };
        let (gate, living, (writers, own)) =
            go_on(settings, fixed, board_page, left, proved).ok_or_else(misfit)?;
        let Writers { tick, rules, seats } = *writers;
        clear_rest(
            &files,
            gate.ledger(),
            &living,
            proved.board.resources_used(),
        );
        let agent = (AGENT_SEAT, own.generation);
        let directory =
            ResourceDirectory::take_up(rules, *gate.ledger(), &proved.board, agent, monotonic_ns());
        let directory = directory.map_err(|_no_room| misfit())?;
        gate.ledger().set_board_generation(fixed.generation);
        // All that it says is written down; where the kernel has no room for the change, it stays mapped.
        let _kept: Result<(), rustix::io::Errno> = map::retire(proved.board_page);
        let tenant = Self::assemble(&gate, directory, seats, files, names);
        Ok(Box::new(TakenUp {
            tenant: Arc::new(tenant),
            tick,
            living,
        }))
    }
}

/// A gate on the pages, whom seats are kept for, and the roles with the agent's own seat.
type GoingOn = (Box<Gate>, Vec<LivingSeat>, (Box<Writers>, SeatWord));

/// Writes the new board's header and seats, and ends what the agent itself held.
fn go_on(
    settings: &TenantSettings,
    fixed: board::BoardSettings,
    board_page: Page,
    left: &LastLife,
    proved: &ProvedPages,
) -> Option<GoingOn> {
    let geometry = settings.geometry;
    let (board, writers) = board::create(board_page, geometry, fixed)?;
    let mut writers = Box::new(writers);
    let ledger = Ledger::create(proved.ledger_page, geometry)?;
    writers.tick.publish_scope(HOST, &OPEN_SCOPE);
    let own = restore_own(&mut writers.seats, left);
    let living = restore(&mut writers.seats, left);
    // Permits that the life before held for its callers over sockets ended with their connections.
    ledger.end_held(AGENT_SEAT, own, proved.board.resources_used());
    ledger.clear_scopes();
    let gate = Box::new(Gate::new(board, ledger, AGENT_SEAT, own.generation));
    Some((gate, living, (writers, own)))
}

/// The agent sits where it sat, under the same generation: services that still decide on the board of the life before
/// count what it holds.
fn restore_own(seats: &mut SeatWriter, left: &LastLife) -> SeatWord {
    let own = left.seats.iter().find(|seat| seat.index == AGENT_SEAT);
    let word = SeatWord {
        live: true,
        generation: own.map_or(1, |own| own.word.generation),
    };
    seats.restore(AGENT_SEAT, word, own_process());
    word
}

/// Puts everybody else back who lives, and the generations of the other seats.
fn restore(seats: &mut SeatWriter, left: &LastLife) -> Vec<LivingSeat> {
    let others = left.seats.iter().filter(|seat| seat.index != AGENT_SEAT);
    let mut living = Vec::new();
    for seat in others {
        let pidfd = seat
            .word
            .live
            .then(|| seat_life::alive(&seat.process))
            .flatten();
        let word = SeatWord {
            live: pidfd.is_some(),
            ..seat.word
        };
        seats.restore(seat.index, word, seat.process);
        let RecordedSeat { index, process, .. } = *seat;
        let seat = Seat {
            index,
            generation: word.generation,
        };
        living.extend(pidfd.map(|pidfd| ((seat, process), pidfd)));
    }
    living
}

/// Zeroes what nobody has: rows of those who died, nodes and cells behind the slots in use.
fn clear_rest(files: &PageFiles, ledger: &Ledger, living: &[LivingSeat], slots: u32) {
    let taken =
        |index: u32| index == AGENT_SEAT || living.iter().any(|((seat, _), _)| seat.index == index);
    let seats: Vec<bool> = (0..ledger.geometry().seats()).map(taken).collect();
    let rows = ledger.unused_rows(&seats, slots).into_iter();
    for words in rows.chain(ledger.unused_nodes(slots)) {
        if let Err(errno) = memfd::give_back(&files.ledger, words) {
            tracing::warn!(event = "memory_not_given_back", %errno, "memory of the ledger is not given back");
        }
    }
}
