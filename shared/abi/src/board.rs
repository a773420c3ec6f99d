//! The board: what the agent alone writes and every service maps read-only.

mod surge;

pub use crate::clock_word::ClockWord;
use crate::decision::ScopeState;
pub use crate::seat_word::{CalmWord, SeatWord, ShareWord};
pub use surge::SurgeWord;

/// "TIDEGATE" read as a big-endian number; the first word of a board.
pub const MAGIC: u64 = 0x5449_4445_4741_5445;

/// Word numbers of the header.
pub mod header {
    /// Cache lines of the header.
    pub const LINES: usize = 8;
    /// First words of the two copies of the system rules, see [`super::system`].
    pub const SYSTEM_SETS: [usize; 2] = [SYSTEM_EVEN, SYSTEM_ODD];

    crate::list::listed! {
        FIELDS: usize;
        /// Says what the page is: [`super::MAGIC`].
        MAGIC = 0;
        /// Version of the layout: [`crate::VERSION`].
        VERSION = 1;
        /// Resources in the low half, seats in the high half.
        RESOURCES_SEATS = 2;
        /// Lanes in the low half, scopes in the high half.
        LANES_SCOPES = 3;
        /// Generation of this board: a random number that the ledger's header repeats.
        GENERATION = 4;
        /// Monotonic time of the agent's last tick, ns.
        HEARTBEAT_NS = 8;
        /// Number of the last tick.
        TICK = 9;
        /// A heartbeat older than this is a silent agent, ns.
        TIME_TO_LIVE_NS = 10;
        /// How long a silent agent's adaptive limits are kept, ns.
        GRACE_NS = 11;
        /// [`crate::decision::LossMode`] as a number.
        LOSS_MODE = 12;
        /// Generation of the rule set; its lowest bit names the copy of the records that is in force.
        RULES_GENERATION = 16;
        /// Resource slots handed out; slots at or above it are not to be read.
        RESOURCES_USED = 17;
        /// Seats ever handed out; seats at or above it are not to be read.
        SEATS_USED = 18;
        /// Scopes ever handed out.
        SCOPES_USED = 19;
        /// Bytes of the name text in use.
        NAMES_USED = 20;
        /// Generation that the agent is writing or has written last; while it is at most one ahead of a
        /// reader's generation, the reader's copy is whole.
        RULES_WRITING = 21;
        /// One-minute load average for system rules, a double; not a number = not measured.
        LOAD = 22;
        /// Share of the host's CPUs for system rules, a double; not a number = not measured.
        CPU = 23;
        /// Which clock to read, see [`super::ClockWord`].
        CLOCK = 24;
        /// First of seven rates of the time stamp counter: ns per count, 32 fractional bits. One that a clock word
        /// has named is never written again.
        RATES = 25;
        /// First word of the system rules in force while the generation of the rules is even.
        SYSTEM_EVEN = 48;
        /// First word of the system rules in force while the generation of the rules is odd.
        SYSTEM_ODD = 56;
    }
}

/// Word numbers of the merged system rules, from the start of a copy.
pub mod system {
    /// The marks, in the order of the bits of [`SET`].
    pub const MARKS: [usize; 5] = [QPS, CONCURRENCY, AVERAGE_RT_MS, LOAD, CPU];

    crate::list::listed! {
        FIELDS: usize;
        /// Which marks are set: bit 0 QPS, 1 concurrency, 2 average RT, 3 load, 4 CPU. Bit 8: quirks.
        SET = 0;
        /// Inbound passes per second, a double.
        QPS = 1;
        /// Inbound requests in flight, a double.
        CONCURRENCY = 2;
        /// Average response time in ms, a double.
        AVERAGE_RT_MS = 3;
        /// One-minute load average, a double.
        LOAD = 4;
        /// Share of the CPUs, a double.
        CPU = 5;
        /// Number of the rule, for messages.
        RULE = 6;
        /// A run of pool words with the marks of the rules that observe, laid out as these words: start low
        /// half, length high half; length 0 = none observes.
        OBSERVED = 7;
    }
}

/// Word numbers of a scope record.
pub mod scope {
    /// Words of a record.
    pub const WORDS: usize = 16;

    crate::list::listed! {
        FIELDS: usize;
        /// What a decision reads, see [`super::ScopeWord`].
        DECISION = 0;
        /// Allowed QPS × 1000, saturating; `u64::MAX` = no limit.
        ALLOWED_QPS_MILLI = 1;
        /// [`crate::decision::Cause`] as a number.
        CAUSE = 2;
        /// Monotonic ns of the last change of state.
        SINCE_NS = 3;
        /// Generation of the scope in this place.
        GENERATION = 4;
        /// In flight as the agent saw it in the last tick.
        INFLIGHT = 5;
        /// Connections that waited in the accept queues of the scope's listeners in the last tick.
        ACCEPT_QUEUE = 6;
        /// Level from which requests are cut in overload, 1 to 384, the most important lowest; 0 = none is cut.
        CUTOFF = 7;
        /// What a surge is measured from, see [`super::SurgeWord`]; 0 = nothing is a surge.
        SURGE = 8;
        /// Requests of other tenants in flight in the last tick, as far as they count here.
        OTHERS = 9;
    }
}

/// Word numbers of a seat record.
pub mod seat {
    /// Words of a record.
    pub const WORDS: usize = 8;

    crate::list::listed! {
        FIELDS: usize;
        /// Who sits here, see [`super::SeatWord`].
        IDENTITY = 0;
        /// Process id in the agent's pid namespace in the low half, real user id in the high half.
        PROCESS = 1;
        /// Start time of the process, clock ticks since boot.
        START = 2;
        /// Until when decisions need not look at the scopes, see [`super::CalmWord`].
        CALM = 3;
        /// Index of the scope of the process's own cgroup; 0 (the host) where it has none.
        SCOPE = 4;
        /// Hash of the name of its service; processes of one scope with the same are one service.
        SERVICE = 5;
        /// What its service may hold of the host's limit, see [`super::ShareWord`].
        SHARE_OF_HOST = 6;
        /// What its service may hold of its own scope's limit.
        SHARE_OF_SCOPE = 7;
    }
}

/// Word numbers of a directory record.
pub mod directory {
    /// Words of a record.
    pub const WORDS: usize = 2;

    crate::list::listed! {
        FIELDS: usize;
        /// Slot generation in the low 16 bits, length of the name in bytes in bits 16..32, byte offset
        /// of the name in the text in the high half. 0 = free.
        NAME = 0;
        /// 64-bit FNV-1a hash of the name.
        HASH = 1;
    }
}

/// Word numbers of a rule record.
pub mod record {
    /// Words of a record.
    pub const WORDS: usize = 8;

    crate::list::listed! {
        FIELDS: usize;
        /// What the decision needs, see [`super::Needs`], in the low half; slot generation in bits 32..48.
        HEAD = 0;
        /// Most passes in a window, low half; the least limit of the node's plain QPS rules. First of the
        /// resource's rules in the table, high half.
        QPS_LIMIT = 1;
        /// Most requests in flight, low half; the least limit of the node's concurrency rules. Number of
        /// the resource's rules in the table, high half.
        CONCURRENCY_LIMIT = 2;
        /// Index of the QPS rule with that limit, low half; of the concurrency rule, high half.
        RULES = 3;
        /// As [`QPS_LIMIT`], for the rules in observe mode.
        OBSERVED_QPS_LIMIT = 4;
        /// As [`CONCURRENCY_LIMIT`], for the rules in observe mode.
        OBSERVED_CONCURRENCY_LIMIT = 5;
        /// As [`RULES`], for the rules in observe mode.
        OBSERVED_RULES = 6;
    }
}

/// Word numbers of a rule record that has [`Needs::SHORT`].
///
/// The resource's rules in the table are at most one plain QPS limit and then one breaker, both in force,
/// and the numbers that a decision takes of them are here too. The words not named here are as in
/// [`record`].
pub mod short {
    crate::list::listed! {
        FIELDS: usize;
        /// The QPS rule's line of state, low half.
        QPS_STATE = 2;
        /// Number of the QPS rule, low half; of the breaker, high half.
        RULES = 3;
        /// `[zero 1 | shift 7 | trip 2 | least requests 22 | line of state 32]` of the breaker; trip as in
        /// [`crate::rule::trip`]. Epoch of its tally = (ns × `INTERVAL`) >> (64 + shift).
        BREAKER = 4;
        /// A call that took longer is slow, ns; all ones where calls are judged by errors.
        MAX_RT_NS = 5;
        /// `ceil(2^(64 + shift) ÷ interval in ns)`.
        INTERVAL = 6;
        /// Ratio or count over which it opens, a double.
        THRESHOLD = 7;
    }
}

/// What a node's decision needs; a plain rule does not pay for kinds it does not use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs(pub u32);

impl Needs {
    crate::list::listed! {
        BITS: u32;
        /// A QPS limit in force.
        QPS = 1;
        /// A concurrency limit in force.
        CONCURRENCY = 1 << 1;
        /// A QPS limit that only observes.
        OBSERVED_QPS = 1 << 2;
        /// A concurrency limit that only observes.
        OBSERVED_CONCURRENCY = 1 << 3;
        /// Rules in the table, to be walked in their order.
        RULES = 1 << 4;
        /// The pass window is kept although no limit of this node needs it: a rule looks at it.
        COUNTED = 1 << 5;
        /// Passes are kept by whole seconds too (warm-up).
        SECONDS = 1 << 6;
        /// System rules are in force, or Sentinel's quirks: inbound requests are counted together.
        SYSTEM = 1 << 7;
        /// Sentinel's behaviour, known defects included.
        QUIRKS = 1 << 8;
        /// The rules in the table are short enough for the record, see [`crate::board::short`].
        SHORT = 1 << 9;
        /// A rule in the table counts requests of an origin apart, on a node of their own.
        ORIGINS = 1 << 10;
        /// The same for requests in a context.
        CONTEXTS = 1 << 11;
    }

    /// Whether any of these bits is set.
    #[inline]
    pub const fn any(self, bits: u32) -> bool {
        self.0 & bits != 0
    }
}

/// What a decision reads of a scope, in one word so that it is published as one:
/// `[tight 28 | entry 28 | zero 2 | observe 1 | near 1 | short 1 | state 3]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopeWord {
    /// State.
    pub state: ScopeState,
    /// The CPU was short in the last tick (the law's evidence P).
    pub short: bool,
    /// Count at each decision: in flight was at half the entry limit or more, or the limit is small.
    pub near: bool,
    /// Refuse nothing: what would be refused is counted, see [`crate::ledger::scope::OBSERVED`].
    pub observe: bool,
    /// Wide limit: overload begins here.
    pub entry: u32,
    /// Tight limit: overload admits below it.
    pub tight: u32,
}

impl ScopeWord {
    /// The largest limit that can be published; it stands for "no limit".
    pub const LIMIT_MAX: u32 = (1 << 28) - 1;

    /// A scope that admits everything.
    pub const OPEN: Self = Self {
        state: ScopeState::Healthy,
        short: false,
        near: false,
        observe: false,
        entry: Self::LIMIT_MAX,
        tight: Self::LIMIT_MAX,
    };

    /// The word; limits over [`Self::LIMIT_MAX`] are published as that.
    pub const fn pack(self) -> u64 {
        let entry = if self.entry > Self::LIMIT_MAX {
            Self::LIMIT_MAX
        } else {
            self.entry
        };
        let tight = if self.tight > Self::LIMIT_MAX {
            Self::LIMIT_MAX
        } else {
            self.tight
        };
        self.state as u64
            | (self.short as u64) << 3
            | (self.near as u64) << 4
            | (self.observe as u64) << 5
            | (entry as u64) << 8
            | (tight as u64) << 36
    }

    /// Whether a word admits everything without a look at what is in flight.
    #[inline]
    pub const fn is_open(word: u64) -> bool {
        word & 7 <= ScopeState::Cold as u64 && word >> 8 & 0x0fff_ffff == Self::LIMIT_MAX as u64
    }

    /// Whether a word admits everything but for a look now and then: healthy or cold, and not near.
    #[inline]
    pub const fn is_calm(word: u64) -> bool {
        word & 0b1_0111 <= ScopeState::Cold as u64
    }

    /// Whether a word admits what its entry limit leaves room for: healthy or cold.
    #[inline]
    pub const fn is_at_rest(word: u64) -> bool {
        word & 7 <= ScopeState::Cold as u64
    }

    /// The parts of a word; an unknown state reads as healthy.
    #[inline]
    pub const fn unpack(word: u64) -> Self {
        let state = match ScopeState::from_u8((word & 7) as u8) {
            Some(state) => state,
            None => ScopeState::Healthy,
        };
        Self {
            state,
            short: word & 8 != 0,
            near: word & 16 != 0,
            observe: word & 32 != 0,
            entry: (word >> 8 & 0x0fff_ffff) as u32,
            tight: (word >> 36 & 0x0fff_ffff) as u32,
        }
    }
}

/// 64-bit FNV-1a of a name, as the directory stores it.
pub const fn name_hash(name: &[u8]) -> u64 {
    fnv(FNV_START, name)
}

/// Where FNV-1a begins.
pub(crate) const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// Goes on with FNV-1a over more bytes.
pub(crate) const fn fnv(start: u64, bytes: &[u8]) -> u64 {
    let mut hash = start;
    let mut rest = bytes;
    while let [byte, tail @ ..] = rest {
        hash = (hash ^ *byte as u64).wrapping_mul(0x0000_0100_0000_01b3);
        rest = tail;
    }
    hash
}
