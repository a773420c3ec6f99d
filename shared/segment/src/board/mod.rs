//! The board: read by every service, written by the agent through three roles that are not copies
//! of each other: [`TickWriter`], [`RuleWriter`] and [`SeatWriter`].

mod fairness;
mod read;
mod record;
mod rule;
mod rule_writer;
mod runs;
mod seat_writer;
mod short;
mod slot_writer;
mod tick_writer;
mod time;
mod view;

pub(crate) use fairness::ScopeBacklog;
pub use read::{AgentLife, Board, HeaderFault, ScopeInfo, SeatInfo};
pub use record::{Head, ResourceRecord, Slot};
pub use rule::{
    BoardRule, FlowLimit, FlowRule, OriginTest, ParamLimit, ParamRule, PoolSpan, RuleKind, Subject,
    WarmUpNumbers,
};
pub use rule_writer::{CompiledRules, RuleFault, RuleWriter};
pub use runs::Runs;
pub use seat_writer::{Process, SeatWriter};
pub use short::ShortBreaker;
pub use tick_writer::{ClockSource, PublishedScope, TickWriter};
pub use view::{RuleNames, SystemRules, View};

use tidegate_abi::board::{ScopeWord, header, scope};
use tidegate_abi::decision::LossMode;
use tidegate_abi::geometry::Geometry;

use crate::page::Page;
use crate::sync::{Word, peek, put};

/// What is fixed for the life of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoardSettings {
    /// Random number that names this board; the ledger repeats it.
    pub generation: u64,
    /// A heartbeat older than this is a silent agent, ns.
    pub time_to_live_ns: u64,
    /// How long a silent agent's adaptive limits are kept, ns.
    pub grace_ns: u64,
    /// What adaptive limits do after that.
    pub loss_mode: LossMode,
}

/// The writing roles of a board, one of each.
#[derive(Debug)]
pub struct Writers {
    /// Heartbeat, clock and scopes.
    pub tick: TickWriter,
    /// Resource directory and rule records.
    pub rules: RuleWriter,
    /// Who sits where.
    pub seats: SeatWriter,
}

/// Writes the header of a new board on a page of zeros and gives out the roles.
///
/// Returns `None` if the page is shorter than the geometry needs.
pub fn create(page: Page, geometry: Geometry, settings: BoardSettings) -> Option<(Board, Writers)> {
    let map = geometry.board();
    let words = page.words().get(..map.words)?;
    // Relaxed: nobody has the page yet; sending its descriptor orders these stores.
    let set = |field: usize, value: u64| put(words, field, value);
    set(header::MAGIC, tidegate_abi::board::MAGIC);
    set(header::VERSION, u64::from(tidegate_abi::VERSION));
    set(
        header::RESOURCES_SEATS,
        halves(geometry.resources(), geometry.seats()),
    );
    set(
        header::LANES_SCOPES,
        halves(geometry.lanes(), geometry.scopes()),
    );
    set(header::GENERATION, settings.generation);
    set(header::TIME_TO_LIVE_NS, settings.time_to_live_ns);
    set(header::GRACE_NS, settings.grace_ns);
    set(header::LOAD, f64::NAN.to_bits());
    set(header::CPU, f64::NAN.to_bits());
    set(header::LOSS_MODE, u64::from(settings.loss_mode as u8));
    let board = Board::over(page, geometry)?;
    for line in board.scope_lines() {
        // A scope that no tick has judged yet admits everything.
        put(line, scope::DECISION, ScopeWord::OPEN.pack());
        put(line, scope::ALLOWED_QPS_MILLI, u64::MAX);
    }
    let writers = Writers {
        tick: TickWriter::new(board),
        rules: RuleWriter::new(board, page.words()),
        seats: SeatWriter::new(board),
    };
    Some((board, writers))
}

/// Reads the geometry that a board or ledger header names (both have it in the same words).
pub(crate) fn stated_geometry(words: &[Word], magic: u64) -> Result<Geometry, HeaderFault> {
    // Relaxed: the header is written before the descriptor is sent and never changes.
    let word = |field: usize| peek(words, field);
    if word(header::MAGIC) != magic {
        return Err(HeaderFault::Magic {
            found: word(header::MAGIC),
            needed: magic,
        });
    }
    if word(header::VERSION) != u64::from(tidegate_abi::VERSION) {
        return Err(HeaderFault::Version {
            found: word(header::VERSION),
        });
    }
    let (resources, seats) = split(word(header::RESOURCES_SEATS));
    let (lanes, scopes) = split(word(header::LANES_SCOPES));
    Geometry::new(resources, seats, lanes, scopes).map_err(HeaderFault::Size)
}

/// Two halves of a word, low first.
pub(crate) const fn halves(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// The halves of a word, low first.
#[inline]
pub(crate) const fn split(word: u64) -> (u32, u32) {
    ((word & 0xffff_ffff) as u32, (word >> 32) as u32)
}
