//! A tenant: one pair of pages, the agent's roles on it, and who is connected.
//!
//! [`Tenant::create`] makes the pages. The tick writer it gives out belongs to the sampler's thread;
//! everything else is here, for the doors: [`directory`] finds the slot of a name and publishes rule
//! sets, [`seats`] gives seats to processes, [`permit`] holds the permits given over sockets,
//! [`decide`] asks the gate for callers that do not map the pages.

pub mod breakers;
pub mod callers;
pub mod client;
pub mod compile;
pub mod decide;
pub mod directory;
pub mod kept;
pub mod left;
pub mod past_life;
pub mod peer_scope;
pub mod permit;
pub mod proxy_seats;
pub mod question;
pub mod rule_counts;
pub mod rule_index;
pub mod scope_resolver;
pub mod scope_users;
pub mod seat_life;
pub mod seats;
pub mod set_aside;
pub mod take_up;
pub mod upkeep;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::OnceLock;

use parking_lot::Mutex;
use tidegate_abi::board::ScopeWord;
use tidegate_abi::decision::{Cause, LossMode};
use tidegate_abi::geometry::Geometry;
use tidegate_segment::board::{
    self, Board, Process, PublishedScope, SeatWriter, TickWriter, Writers,
};
use tidegate_segment::gate::Gate;
use tidegate_segment::ledger::Ledger;
use tidegate_segment::os::memfd::{self, FileError, MemoryKind};
use tidegate_segment::page::Page;

use callers::Callers;
use client::ServiceConnections;
use directory::ResourceDirectory;
use kept::ReservedSeats;
use left::{BoardName, PageNames};
use past_life::EarlierPages;
use permit::Permits;
use proxy_seats::ProxySeats;
use rule_counts::RuleCounts;
use seats::Seats;
pub use take_up::TakenUp;
use upkeep::Upkeep;

/// The seat of the agent itself: permits that it holds for callers over sockets who are in no scope but the host. It has
/// others for those in a scope, see [`proxy_seats`].
pub const AGENT_SEAT: u32 = 0;

/// The host's place among the scopes.
pub const HOST: u32 = 0;

/// What is published of a scope before its first tick: it admits everything. A scope must be published
/// before a process gets it.
pub const OPEN_SCOPE: PublishedScope = PublishedScope {
    word: ScopeWord::OPEN,
    allowed_qps_milli: u64::MAX,
    cause: Cause::None,
    since_ns: 0,
    inflight: 0,
};

/// What is fixed for the life of a tenant's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TenantSettings {
    /// Sizes.
    pub geometry: Geometry,
    /// A heartbeat older than this is a silent agent, ns.
    pub time_to_live_ns: u64,
    /// How long a silent agent's adaptive limits are kept, ns.
    pub grace_ns: u64,
    /// What adaptive limits do after that.
    pub loss_mode: LossMode,
}

/// Why a tenant could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The memory files could not be made.
    #[error("cannot make the shared pages: {0}")]
    File(#[from] FileError),
    /// No random number for the board's generation.
    #[error("cannot make the shared pages: getrandom: {0}")]
    Random(rustix::io::Errno),
    /// The kernel does not say which files the pages are.
    #[error("cannot make the shared pages: fstat: {0}")]
    Identity(rustix::io::Errno),
    /// The pages are too small for their own sizes.
    #[error("cannot make the shared pages: sizes {0:?} do not fit their own layout")]
    Layout(Geometry),
}

/// The memory files of a tenant, to be sent to its services.
#[derive(Debug)]
pub struct PageFiles {
    /// The board, sealed: nobody who receives it can write it.
    pub board: OwnedFd,
    /// The ledger, sealed against a change of its size.
    pub ledger: OwnedFd,
}

/// How the pages of a tenant began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PagesOrigin {
    /// Nobody had any before.
    #[default]
    New,
    /// They are those of the life before.
    TakenUp,
    /// There was a life before whose pages could not be gone on with: windows and breakers began anew.
    Anew,
}

impl PagesOrigin {
    /// Its word in status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::TakenUp => "taken_up",
            Self::Anew => "anew",
        }
    }
}

/// One pair of pages and everything around it but the tick.
#[derive(Debug)]
pub struct Tenant {
    gate: Gate,
    files: PageFiles,
    directory: Box<ResourceDirectory>,
    seats: Box<Seats>,
    timed_permits: Mutex<Permits>,
    proxy_seats: Box<ProxySeats>,
    clients: ServiceConnections,
    /// Callers without seats, by scope.
    callers: Box<Mutex<HashMap<u32, Callers>>>,
    rule_counts: Box<Mutex<RuleCounts>>,
    names: PageNames,
    kept: ReservedSeats,
    earlier: Box<EarlierPages>,
    begun: OnceLock<PagesOrigin>,
    upkeep: Upkeep,
}

impl Tenant {
    /// Makes the pages, seats the agent and adds the overflow resource.
    ///
    /// The tick writer is for the sampler's thread.
    ///
    /// # Errors
    /// The kernel gives no memory file, descriptor or random number.
    pub fn create(settings: &TenantSettings) -> Result<(Self, TickWriter), CreateError> {
        let geometry = settings.geometry;
        let (board_page, board_file) = memfd::create(MemoryKind::Board, geometry.board().words)?;
        let (ledger_page, ledger_file) =
            memfd::create(MemoryKind::Ledger, geometry.ledger().words)?;
        let files = PageFiles {
            board: board_file,
            ledger: ledger_file,
        };
        let fixed = fixed(settings)?;
        let names = files.names(fixed.generation)?;
        write_pages(geometry, fixed, [board_page, ledger_page])
            .and_then(|(gate, writers)| {
                let Writers { tick, rules, seats } = *writers;
                let directory = ResourceDirectory::new(rules, *gate.ledger()).ok()?;
                let tenant = Self::assemble(&gate, directory, seats, files, names);
                Some((tenant, tick))
            })
            .ok_or(CreateError::Layout(geometry))
    }

    fn assemble(
        gate: &Gate,
        directory: Box<ResourceDirectory>,
        seats: SeatWriter,
        files: PageFiles,
        names: PageNames,
    ) -> Self {
        Self {
            directory,
            seats: Seats::new(seats, *gate.ledger()),
            gate: *gate,
            files,
            timed_permits: Mutex::default(),
            proxy_seats: Box::default(),
            clients: ServiceConnections::default(),
            callers: Box::default(),
            rule_counts: Box::default(),
            names,
            kept: ReservedSeats::default(),
            earlier: Box::default(),
            begun: OnceLock::new(),
            upkeep: Upkeep::default(),
        }
    }

    /// Writes down in a directory what the next life needs to take the pages up. `called` is the tenant's name.
    /// Without that the next life begins with new pages.
    pub fn record_in(&self, directory: &Path, called: &str) {
        let path = left::path(directory, called);
        if let Err(error) = self.seats.record_to(&path, self.names.clone()) {
            tracing::warn!(event = "pages_not_recorded", %error, file = %path.display(), "the next run of the agent will not find these pages");
        }
    }

    /// Which files the pages are.
    pub const fn names(&self) -> &PageNames {
        &self.names
    }

    /// The seats of the life before that are kept for their processes.
    pub const fn kept(&self) -> &ReservedSeats {
        &self.kept
    }

    /// Takes down how the pages began.
    pub fn has_begun(&self, begun: PagesOrigin) {
        // It is said once.
        let _first: Result<(), PagesOrigin> = self.begun.set(begun);
    }

    /// How the pages began.
    pub fn begun(&self) -> PagesOrigin {
        self.begun.get().copied().unwrap_or_default()
    }

    /// The pages of earlier lives on which something is in flight yet.
    pub fn earlier(&self) -> &EarlierPages {
        &self.earlier
    }

    /// The board.
    pub const fn board(&self) -> &Board {
        self.gate.board()
    }

    /// The ledger.
    pub const fn ledger(&self) -> &Ledger {
        self.gate.ledger()
    }

    /// The memory files.
    pub const fn files(&self) -> &PageFiles {
        &self.files
    }

    /// Names and rules.
    pub fn directory(&self) -> &ResourceDirectory {
        &self.directory
    }

    /// Who sits where, and the counts of those who left.
    pub fn seats(&self) -> &Seats {
        &self.seats
    }

    /// The permits given over HTTP. No process holds them, so they end by the clock.
    pub const fn timed_permits(&self) -> &Mutex<Permits> {
        &self.timed_permits
    }

    /// Who is connected.
    pub const fn clients(&self) -> &ServiceConnections {
        &self.clients
    }

    /// The agent's own gate.
    pub(crate) const fn gate(&self) -> &Gate {
        &self.gate
    }
}

impl PageFiles {
    /// Their names, of a board of that generation and none before it.
    fn names(&self, generation: u64) -> Result<PageNames, CreateError> {
        let identify = |file| memfd::identify(file).map_err(CreateError::Identity);
        let board = BoardName {
            file: identify(&self.board)?,
            generation,
        };
        Ok(PageNames {
            ledger: identify(&self.ledger)?,
            boards: vec![board],
        })
    }
}

fn fixed(settings: &TenantSettings) -> Result<board::BoardSettings, CreateError> {
    Ok(board::BoardSettings {
        generation: u64::from_ne_bytes(permit::random().map_err(CreateError::Random)?),
        time_to_live_ns: settings.time_to_live_ns,
        grace_ns: settings.grace_ns,
        loss_mode: settings.loss_mode,
    })
}

/// Writes the headers of both pages, names the board in the ledger and seats the agent.
fn write_pages(
    geometry: Geometry,
    fixed: board::BoardSettings,
    [board_page, ledger_page]: [Page; 2],
) -> Option<(Gate, Box<Writers>)> {
    let (board, writers) = board::create(board_page, geometry, fixed)?;
    let mut writers = Box::new(writers);
    let ledger = Ledger::create(ledger_page, geometry)?;
    ledger.set_board_generation(fixed.generation);
    let own = begin(&mut writers)?;
    Some((Gate::new(board, ledger, AGENT_SEAT, own), writers))
}

/// Opens the host and seats the agent; gives the generation of its seat.
fn begin(writers: &mut Writers) -> Option<u32> {
    // A word of zeros would be a scope with limits of zero.
    writers.tick.publish_scope(HOST, &OPEN_SCOPE);
    writers.seats.seat(AGENT_SEAT, own_process())
}

fn own_process() -> Process {
    let pid = std::process::id();
    Process {
        pid,
        start: seat_life::start_time(pid).unwrap_or(0),
        uid: rustix::process::getuid().as_raw(),
        scope: 0,
    }
}

#[cfg(test)]
mod memory_tests;
#[cfg(test)]
mod reload_tests;

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use tidegate_segment::clock::Clock;

    use super::*;

    /// Time that stands still until a test moves it.
    pub(crate) struct Scripted(pub(crate) Cell<u64>);

    impl Clock for Scripted {
        fn now_ns(&self) -> u64 {
            self.0.get()
        }
    }

    /// A tenant that considers its agent present for ever.
    pub(crate) fn tenant(geometry: Geometry) -> Tenant {
        let settings = TenantSettings {
            geometry,
            time_to_live_ns: u64::MAX,
            grace_ns: 0,
            loss_mode: LossMode::Open,
        };
        let (tenant, mut tick) = Tenant::create(&settings).unwrap();
        assert!(tick.publish_scope(1, &OPEN_SCOPE));
        tenant
    }
}
