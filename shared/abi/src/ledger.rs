//! The ledger: what the agent and the services of one tenant write. Nothing but atomic words.

/// "TIDELEDG" read as a big-endian number; the first word of a ledger.
pub const MAGIC: u64 = 0x5449_4445_4c45_4447;

/// Word numbers of the header.
pub mod header {
    /// Cache lines of the header.
    pub const LINES: usize = 8;
    /// [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// [`crate::VERSION`].
    pub const VERSION: usize = 1;
    /// Resources in the low half, seats in the high half.
    pub const RESOURCES_SEATS: usize = 2;
    /// Lanes in the low half, scopes in the high half.
    pub const LANES_SCOPES: usize = 3;
    /// Generation of the board that goes with this ledger now.
    pub const BOARD_GENERATION: usize = 8;
}

/// Word numbers of a scope record.
pub mod scope {
    /// Words of a record.
    pub const WORDS: usize = 8;
    /// Window of the callers that hold no permit (a window word, 100 ms buckets).
    pub const ONE_SHOT: usize = 0;
}

/// Word numbers of a seat record.
pub mod seat {
    /// Words of a record.
    pub const WORDS: usize = 8;
    /// Decisions made without the agent (heartbeat too old), free-running.
    pub const WITHOUT_AGENT: usize = 0;
    /// Decisions that gave up on a changing board and admitted, free-running.
    pub const CONTENDED: usize = 1;
}

/// Word numbers of a node record.
pub mod node {
    /// Words of a record.
    pub const WORDS: usize = 16;
    /// Passes in the last second: a window word with buckets of 500 ms.
    pub const PASS_WINDOW: usize = 0;
    /// What rules in observe mode would have refused, free-running: QPS low half, concurrency high.
    pub const OBSERVED: usize = 8;
}

/// Word numbers of a lane's totals. One writer: the thread that has the lane (lane 0: any thread of
/// the seat). Free-running counters, wrapping.
pub mod total {
    /// Words of a record.
    pub const WORDS: usize = 8;
    /// Inbound requests in flight, see [`super::CellWord`] (slot generation 0). A lane whose word does
    /// not carry the generation of its seat was never used by it.
    pub const INFLIGHT: usize = 0;
    /// Inbound requests that ended well.
    pub const SUCCESS: usize = 1;
    /// Their response times, ns.
    pub const RT_NS: usize = 2;
    /// Inbound requests admitted.
    pub const PASSED: usize = 3;
    /// Inbound requests refused, for any reason.
    pub const REFUSED: usize = 4;
    /// Inbound requests of class probe that were admitted past a limit.
    pub const PROBES: usize = 5;
    /// Number of the tick in which this lane found its scope near the entry limit.
    pub const NEAR_TICK: usize = 6;
    /// Inbound requests refused because of a scope (they are among `REFUSED` too).
    pub const SHED: usize = 7;
}

/// Word numbers of a cell: what one lane did on one node. One writer, as for [`total`].
pub mod cell {
    /// Words of a record.
    pub const WORDS: usize = 8;
    /// Requests in flight, see [`super::CellWord`].
    pub const INFLIGHT: usize = 0;
    /// Requests admitted.
    pub const PASSED: usize = 1;
    /// Requests that ended well.
    pub const SUCCESS: usize = 2;
    /// Requests that failed.
    pub const ERROR: usize = 3;
    /// Response times of those that ended well, ns.
    pub const RT_NS: usize = 4;
    /// Refused by flow rules.
    pub const REFUSED_FLOW: usize = 5;
    /// Refused by breakers (low half) and hot-parameter rules (high half).
    pub const REFUSED_DEGRADE_PARAM: usize = 6;
    /// Refused because of a scope (low half) and by authority rules (high half).
    pub const REFUSED_SYSTEM_AUTHORITY: usize = 7;
}

/// Requests in flight of one lane on one node: `[seat generation 24 | slot generation 16 | in flight 24]`.
///
/// The count is modulo 2^24: a permit may be given back on another lane than it was taken on, so
/// only the sum over the lanes of a seat means anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellWord {
    /// Generation of the seat that wrote it.
    pub seat: u32,
    /// Generation of the slot it belongs to.
    pub slot: u16,
    /// Requests in flight, modulo 2^24.
    pub inflight: u32,
}

impl CellWord {
    /// Mask of the count.
    pub const COUNT_MASK: u32 = (1 << 24) - 1;

    /// The word.
    #[inline]
    pub const fn pack(self) -> u64 {
        (self.inflight & Self::COUNT_MASK) as u64
            | (self.slot as u64) << 24
            | ((self.seat & Self::COUNT_MASK) as u64) << 40
    }

    /// The parts of a word.
    #[inline]
    pub const fn unpack(word: u64) -> Self {
        Self {
            inflight: (word & 0x00ff_ffff) as u32,
            slot: (word >> 24 & 0xffff) as u16,
            seat: (word >> 40 & 0x00ff_ffff) as u32,
        }
    }
}
