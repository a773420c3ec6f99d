//! Reading a board: what a decision, a service and the agent itself see.

use tidegate_abi::board::{
    ScopeWord, SeatWord, SurgeWord, directory, header, name_hash, record, scope, seat,
};
use tidegate_abi::decision::{Cause, LossMode};
use tidegate_abi::geometry::{BoardMap, Geometry, LINE, SizeFault};
use tidegate_abi::rule;

use super::{ResourceRecord, Slot, split, stated_geometry};
use crate::page::Page;
use crate::sync::{Ordering, Word, peek};

/// How often a reader tries again when the agent publishes under it. The agent leaves far more than
/// a read's time between two publishes, so the second try finds it done; the rest is margin.
pub(super) const TRIES: u32 = 8;

/// A page that is not a board of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderFault {
    /// Another first word.
    #[error("the page begins with {found:#018x}, {needed:#018x} is needed; it is not Tidegate's")]
    Magic {
        /// What is there.
        found: u64,
        /// What is needed.
        needed: u64,
    },
    /// Another version of the layout.
    #[error(
        "layout version {found}, this program has {}; upgrade the older of the two",
        tidegate_abi::VERSION
    )]
    Version {
        /// What is there.
        found: u64,
    },
    /// A size that cannot be.
    #[error("{} = {} is not in 1..={}", .0.what, .0.value, .0.max)]
    Size(SizeFault),
    /// Shorter than its own header says.
    #[error("the page has {found} words, its header says {needed}")]
    Short {
        /// Words there.
        found: usize,
        /// Words needed.
        needed: usize,
    },
}

/// How the agent is, as the board shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentLife {
    /// Its heartbeat is fresh.
    Present,
    /// It is silent; the adaptive limits stay as they were.
    Grace,
    /// It is silent past the grace time.
    Lost(LossMode),
}

/// What the board says of a scope besides its decision word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopeInfo {
    /// State and limits.
    pub word: ScopeWord,
    /// Allowed QPS × 1000; `u64::MAX` = no limit.
    pub allowed_qps_milli: u64,
    /// Why it is in this state.
    pub cause: Cause,
    /// Monotonic ns of the last change of state.
    pub since_ns: u64,
    /// In flight in the last tick.
    pub inflight: u64,
}

/// What the board says of a seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeatInfo {
    /// Generation, and whether its permits count.
    pub word: SeatWord,
    /// Process id in the agent's namespace.
    pub pid: u32,
    /// Start time of the process, clock ticks since boot.
    pub start: u64,
    /// Real user id.
    pub uid: u32,
    /// Scope of the process's own cgroup.
    pub scope: u32,
}

/// One copy of a rule set: records, rule table, pool.
pub(super) type RuleCopy = (
    &'static [[Word; record::WORDS]],
    &'static [[Word; rule::WORDS]],
    &'static [Word],
);

/// Rule table and pool of one copy.
type Table = (&'static [[Word; rule::WORDS]], &'static [Word]);

fn table(page: Page, map: &BoardMap, copy: usize) -> Table {
    let [rules, pool] = [map.rules, map.pool].map(|[even, odd]| if copy == 0 { even } else { odd });
    let pool_words = pool.start()
        ..pool
            .start()
            .saturating_add(pool.stride().saturating_mul(pool.count()));
    (
        page.records(rules),
        page.words().get(pool_words).unwrap_or(&[]),
    )
}

/// A board, seen by a reader. Copies are views of the same page.
#[derive(Clone, Copy)]
pub struct Board {
    geometry: Geometry,
    header: &'static [Word; header::LINES * LINE],
    scopes: &'static [[Word; scope::WORDS]],
    seats: &'static [[Word; seat::WORDS]],
    directory: &'static [[Word; directory::WORDS]],
    names: &'static [Word],
    /// The records of both copies, apart: the express way reads nothing else of a set.
    records: [&'static [[Word; record::WORDS]]; 2],
    tables: [Table; 2],
}

impl core::fmt::Debug for Board {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Board")
            .field("geometry", &self.geometry)
            .finish_non_exhaustive()
    }
}

impl Board {
    /// Takes a mapped page as a board, after a look at its header.
    ///
    /// # Errors
    /// Another magic or version, or a header that the page is too short for.
    pub fn open(page: Page) -> Result<Self, HeaderFault> {
        let geometry = stated_geometry(page.words(), tidegate_abi::board::MAGIC)?;
        let needed = geometry.board().words;
        Self::over(page, geometry).ok_or(HeaderFault::Short {
            found: page.words().len(),
            needed,
        })
    }

    pub(super) fn over(page: Page, geometry: Geometry) -> Option<Self> {
        let map = geometry.board();
        if page.words().len() < map.words {
            return None;
        }
        let names = map.names.start()..map.records.first()?.start();
        Some(Self {
            geometry,
            header: page.words().first_chunk()?,
            scopes: page.records(map.scopes),
            seats: page.records(map.seats),
            directory: page.records(map.directory),
            names: page.words().get(names)?,
            records: map.records.map(|region| page.records(region)),
            tables: [0, 1].map(|copy| table(page, &map, copy)),
        })
    }

    /// Sizes of the page pair.
    #[inline(always)]
    pub const fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Random number that names this board.
    pub fn generation(&self) -> u64 {
        // Relaxed: written before the descriptor was sent.
        peek(self.header, header::GENERATION)
    }

    /// Number of the agent's last tick.
    #[inline(always)]
    pub fn tick(&self) -> u64 {
        // Relaxed: a number to compare, it publishes nothing.
        peek(self.header, header::TICK)
    }

    /// Monotonic ns of the agent's last heartbeat.
    pub fn heartbeat_ns(&self) -> u64 {
        peek(self.header, header::HEARTBEAT_NS)
    }

    /// How the agent is at `now_ns`.
    #[inline(always)]
    pub fn agent_life(&self, now_ns: u64) -> AgentLife {
        // Relaxed: each word is read for its own value; a decision one tick old is still right.
        let word = |field: usize| peek(self.header, field);
        let silence_ns = now_ns.saturating_sub(word(header::HEARTBEAT_NS));
        let time_to_live_ns = word(header::TIME_TO_LIVE_NS);
        if silence_ns <= time_to_live_ns {
            return AgentLife::Present;
        }
        if silence_ns <= time_to_live_ns.saturating_add(word(header::GRACE_NS)) {
            return AgentLife::Grace;
        }
        let mode = u8::try_from(word(header::LOSS_MODE))
            .ok()
            .and_then(LossMode::from_u8);
        AgentLife::Lost(mode.unwrap_or(LossMode::Open))
    }

    /// The record of a slot in the set in force; `None` if the slot does not exist or the agent
    /// published under every try.
    #[inline(always)]
    pub fn record(&self, slot: u32) -> Option<ResourceRecord> {
        self.view_of(slot).map(|(_view, record)| record)
    }

    /// Generation of the rule set in force.
    #[inline(always)]
    pub fn rules_generation(&self) -> u64 {
        self.header[header::RULES_GENERATION].load(Ordering::Acquire)
    }

    /// The decision word of a scope, see [`ScopeWord`]; a scope that is not there admits everything.
    #[inline(always)]
    pub fn scope_word(&self, index: u32) -> u64 {
        let line = usize::try_from(index)
            .ok()
            .and_then(|index| self.scopes.get(index));
        // Relaxed: one word says all that a decision takes.
        line.map_or(ScopeWord::OPEN.pack(), |line| {
            line[scope::DECISION].load(Ordering::Relaxed)
        })
    }

    /// What a decision reads of a scope.
    #[inline(always)]
    pub fn scope(&self, index: u32) -> ScopeWord {
        ScopeWord::unpack(self.scope_word(index))
    }

    /// What a surge of a scope is measured from, and how long ago that was, ns.
    pub fn surge(&self, index: u32, now_ns: u64) -> (SurgeWord, u64) {
        let place = usize::try_from(index).ok();
        let line = place.and_then(|place| self.scopes.get(place));
        let word = line.map_or(0, |line| peek(line, scope::SURGE));
        let silence_ns = now_ns.saturating_sub(peek(self.header, header::HEARTBEAT_NS));
        (SurgeWord::unpack(word), silence_ns)
    }

    /// All that the board says of a scope. The words are published one by one: good for people.
    pub fn scope_info(&self, index: u32) -> Option<ScopeInfo> {
        let line = self.scopes.get(usize::try_from(index).ok()?)?;
        let word = |field: usize| peek(line, field);
        Some(ScopeInfo {
            word: ScopeWord::unpack(word(scope::DECISION)),
            allowed_qps_milli: word(scope::ALLOWED_QPS_MILLI),
            cause: u8::try_from(word(scope::CAUSE))
                .ok()
                .and_then(Cause::from_u8)
                .unwrap_or(Cause::None),
            since_ns: word(scope::SINCE_NS),
            inflight: word(scope::INFLIGHT),
        })
    }

    /// The line of a seat, for those who look at it often; of no seat, a line that nobody sits in.
    pub(crate) fn seat_line(&self, index: u32) -> &'static [Word; seat::WORDS] {
        let line = usize::try_from(index)
            .ok()
            .and_then(|index| self.seats.get(index));
        line.unwrap_or_else(|| Box::leak(Box::new([0; seat::WORDS].map(Word::new))))
    }

    /// The identity word of a seat, see [`SeatWord`]; 0 if there is no such seat.
    #[inline(always)]
    pub fn seat_word(&self, index: u32) -> u64 {
        let line = usize::try_from(index)
            .ok()
            .and_then(|index| self.seats.get(index));
        // Acquire: pairs with the Release in `SeatWriter::seat`; a new holder finds a clean row.
        line.map_or(0, |line| line[seat::IDENTITY].load(Ordering::Acquire))
    }

    /// Who sits in a seat, or sat there last.
    #[inline(always)]
    pub fn seat(&self, index: u32) -> SeatWord {
        SeatWord::unpack(self.seat_word(index))
    }

    /// Scope of the process in a seat.
    #[inline(always)]
    pub fn seat_scope(&self, index: u32) -> u32 {
        let line = usize::try_from(index)
            .ok()
            .and_then(|index| self.seats.get(index));
        line.map_or(0, |line| split(line[seat::SCOPE].load(Ordering::Relaxed)).0)
    }

    /// All that the board says of a seat.
    pub fn seat_info(&self, index: u32) -> Option<SeatInfo> {
        let line = self.seats.get(usize::try_from(index).ok()?)?;
        let word = |field: usize| peek(line, field);
        let (pid, uid) = split(word(seat::PROCESS));
        Some(SeatInfo {
            word: self.seat(index),
            pid,
            start: word(seat::START),
            uid,
            scope: self.seat_scope(index),
        })
    }

    /// Seats ever handed out, at most those that exist.
    #[inline(always)]
    pub fn seats_used(&self) -> u32 {
        self.used(header::SEATS_USED).min(self.geometry.seats())
    }

    /// The lines of those seats.
    #[inline(always)]
    pub(crate) fn seats_in_use(&self) -> &'static [[Word; seat::WORDS]] {
        let used = usize::try_from(self.seats_used()).unwrap_or(0);
        self.seats.get(..used).unwrap_or(self.seats)
    }

    /// Resource slots handed out, at most those that exist.
    pub fn resources_used(&self) -> u32 {
        self.used(header::RESOURCES_USED)
            .min(self.geometry.resources())
    }

    #[inline(always)]
    fn used(&self, word: usize) -> u32 {
        // Acquire: pairs with the Release that hands a place out; what is below is written.
        self.header
            .get(word)
            .map_or(0, |word| split(word.load(Ordering::Acquire)).0)
    }

    /// The slot and name at a place of the directory.
    ///
    /// The name's bytes are copied into `buffer`.
    pub fn name<'b>(&self, index: u32, buffer: &'b mut [u8; 256]) -> Option<(Slot, &'b str)> {
        let [name, _hash] = self.directory.get(usize::try_from(index).ok()?)?;
        // Relaxed: below `resources_used`, whose Acquire orders the entry.
        let (tag, offset) = split(name.load(Ordering::Relaxed));
        let generation = (tag & 0xffff) as u16;
        let length = usize::try_from(tag >> 16).ok()?;
        if generation == 0 {
            return None;
        }
        let offset = usize::try_from(offset).ok()?;
        let target = buffer.get_mut(..length)?;
        for (place, byte) in target.iter_mut().zip(offset..) {
            *place = self.name_byte(byte)?;
        }
        let text = core::str::from_utf8(target).ok()?;
        Some((Slot { index, generation }, text))
    }

    /// The slot of a resource that the directory names, for those who cannot ask the agent.
    pub fn find(&self, name: &str) -> Option<Slot> {
        let hash = name_hash(name.as_bytes());
        let used = usize::try_from(self.resources_used()).ok()?;
        let mut buffer = [0; 256];
        let entries = (0..).zip(self.directory.iter().take(used));
        entries
            // Acquire: pairs with the Release in `RuleWriter::give`; a slot given again has its new name.
            .filter(|(_index, [_name, found])| found.load(Ordering::Acquire) == hash)
            .find_map(|(index, _entry)| {
                let (slot, found) = self.name(index, &mut buffer)?;
                (found == name).then_some(slot)
            })
    }

    fn name_byte(&self, offset: usize) -> Option<u8> {
        let word = self.names.get(offset / 8)?.load(Ordering::Relaxed);
        word.to_le_bytes().get(offset % 8).copied()
    }

    pub(super) const fn header(&self) -> &'static [Word; header::LINES * LINE] {
        self.header
    }
    pub(super) const fn scope_lines(&self) -> &'static [[Word; scope::WORDS]] {
        self.scopes
    }
    pub(super) const fn seat_lines(&self) -> &'static [[Word; seat::WORDS]] {
        self.seats
    }
    pub(super) const fn directory_lines(&self) -> &'static [[Word; directory::WORDS]] {
        self.directory
    }
    /// The copy that a generation names.
    #[inline(always)]
    pub(super) const fn copy(&self, generation: u64) -> RuleCopy {
        let ([even, odd], [even_table, odd_table]) = (self.records, self.tables);
        let (records, (rules, pool)) = if generation & 1 == 0 {
            (even, even_table)
        } else {
            (odd, odd_table)
        };
        (records, rules, pool)
    }

    /// The records of the copy that a generation names.
    #[inline(always)]
    pub(super) fn records(&self, generation: u64) -> Option<&'static [[Word; record::WORDS]]> {
        let odd = usize::from(generation & 1 != 0);
        self.records.get(odd).copied()
    }

    /// Load average and CPU share that the system rules look at; `None` = not measured.
    pub fn samples(&self) -> (Option<f64>, Option<f64>) {
        let sample = |field: usize| {
            let value = f64::from_bits(peek(self.header, field));
            value.is_finite().then_some(value)
        };
        (sample(header::LOAD), sample(header::CPU))
    }
}
