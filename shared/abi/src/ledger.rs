//! The ledger: what the agent and the services of one tenant write. Nothing but atomic words.

/// "TIDELEDG" read as a big-endian number; the first word of a ledger.
pub const MAGIC: u64 = 0x5449_4445_4c45_4447;

/// Word numbers of the header.
pub mod header {
    /// Cache lines of the header.
    pub const LINES: usize = 8;

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
        /// Generation of the board that goes with this ledger now.
        BOARD_GENERATION = 8;
    }
}

/// Word numbers of a scope record.
pub mod scope {
    /// Words of a record.
    pub const WORDS: usize = 16;

    crate::list::listed! {
        FIELDS: usize;
        /// Window of the callers that hold no permit (a window word, 50 ms buckets).
        ONE_SHOT = 0;
        /// Callers without a permit that were admitted, free-running.
        ONE_SHOT_PASSED = 1;
        /// Inbound requests of class critical (and probe) in overload, free-running like all that follow.
        OFFERED_CRITICAL = 2;
        /// Inbound requests of class normal in overload.
        OFFERED_NORMAL = 3;
        /// Inbound requests of class sheddable in overload.
        OFFERED_SHEDDABLE = 4;
        /// Those of all classes that had an origin to tell them apart by.
        OFFERED_KEYED = 5;
        /// Those of all classes that the scope refused.
        REFUSED = 6;
        /// Those of them that were under the cut-off.
        REFUSED_UNDER = 7;
        /// Inbound requests, with and without a permit, that the scope would have refused if it did not only observe.
        OBSERVED = 8;
    }
}

/// Word numbers of a seat record.
pub mod seat {
    /// Words of a record.
    pub const WORDS: usize = 8;

    crate::list::listed! {
        FIELDS: usize;
        /// Decisions made without the agent (heartbeat too old), free-running.
        WITHOUT_AGENT = 0;
        /// Decisions that gave up on a changing board and admitted, free-running.
        CONTENDED = 1;
    }
}

/// Word numbers of a node record.
pub mod node {
    /// Words of a record.
    pub const WORDS: usize = 16;
    /// Response times, by the lowest bit of the bucket's number.
    pub const RT_US: [usize; 2] = [RT_EVEN_US, RT_ODD_US];
    /// Least response times, by the lowest bit of the bucket's number.
    pub const LEAST_RT_MS: [usize; 2] = [LEAST_RT_EVEN_MS, LEAST_RT_ODD_MS];

    crate::list::listed! {
        FIELDS: usize;
        /// Passes in the last second: a window word with buckets of 500 ms.
        PASS_WINDOW = 0;
        /// Passes by whole seconds: a window word with buckets of a second.
        PASS_SECONDS = 1;
        /// Passes borrowed from the next half second by prioritized requests.
        BORROWED = 2;
        /// Requests that ended in the last second: a window word with buckets of 500 ms.
        SUCCESS_WINDOW = 3;
        /// Response times in µs of those that ended in a bucket of 500 ms with an even number.
        RT_EVEN_US = 4;
        /// The same for buckets with an odd number.
        RT_ODD_US = 5;
        /// Least response time in ms of those that ended in a bucket with an even number.
        LEAST_RT_EVEN_MS = 6;
        /// The same for buckets with an odd number.
        LEAST_RT_ODD_MS = 7;
        /// What rules in observe mode would have refused, free-running: QPS low half, concurrency high. On
        /// the inbound node what system rules in observe mode would have refused, low half.
        OBSERVED = 8;
        /// What the plain concurrency rule refused, free-running; on the inbound node what the system rules
        /// did.
        REFUSED = 9;
        /// The last of those: the value measured low half, the limit high half.
        LAST = 10;
        /// When that was, monotonic ns; 0 = never.
        LAST_NS = 11;
        /// The last refusal of the plain QPS rule: the value measured low half, the limit high half.
        QPS_LAST = 12;
        /// When that was, monotonic ns; 0 = never.
        QPS_LAST_NS = 13;
        /// The last of what `OBSERVED` counts: the value measured low half, the limit high half.
        OBSERVED_LAST = 14;
        /// When that was, monotonic ns; 0 = never.
        OBSERVED_LAST_NS = 15;
    }
}

/// Word numbers of the times of a node. All are free-running.
pub mod times {
    /// Words of a record.
    pub const WORDS: usize = 16;
    /// Words for response times.
    pub const BUCKETS: usize = WAITED;
    /// A time of fewer ns than 2 to this power is in no word: it is one of the successes that no word has. So the
    /// calls that are over soonest pay one comparison.
    pub const FIRST_BIT: u32 = 18;

    crate::list::listed! {
        FIELDS: usize;
        /// Requests that ended well after 2^18 ns and before 2^19. Each of the fourteen words after it is for times
        /// of twice the length, the last one for all from 2^32 ns on.
        TOOK = 0;
        /// How often a rule let a request wait.
        WAITED = 15;
    }
}

/// Word numbers of a line of rule state.
pub mod state {
    /// Words of a line.
    pub const WORDS: usize = 8;

    crate::list::listed! {
        FIELDS: usize;
        /// The rule's own state: window, last release, warm-up tokens or breaker.
        STATE = 0;
        /// A second word of it: last release of warm-up with pacing, completions of a breaker.
        SECOND = 1;
        /// The last refusal: the value measured low half, the limit high half.
        LAST = 2;
        /// When that was, monotonic ns; 0 = never.
        LAST_NS = 3;
        /// Changes of a breaker, free-running: `[half-open 22 | closed 21 | open 21]`.
        CHANGES = 4;
        /// Ratio or count that opened a breaker last, a double.
        OPENED_BY = 5;
        /// Requests that the rule refused, free-running.
        REFUSED = 6;
        /// Requests that it would have refused if it did not only observe, free-running.
        OBSERVED = 7;
    }
}

/// A set of hot-parameter values: one word for each value.
///
/// `[fingerprint 16 | state 48]`, 0 = free. The state of a concurrency rule is
/// `[seat 10 | seat generation 24 | running 14]`.
pub mod value {
    /// Words of a set.
    pub const WORDS: usize = 8;
}

/// Word numbers of a lane's totals. One writer: the thread that has the lane (lane 0: any thread of
/// the seat). Free-running counters, wrapping.
pub mod total {
    /// Words of a record.
    pub const WORDS: usize = 8;

    crate::list::listed! {
        FIELDS: usize;
        /// Inbound requests in flight, see [`super::CellWord`] (slot generation 0). A lane whose word does
        /// not carry the generation of its seat was never used by it.
        INFLIGHT = 0;
        /// Inbound requests that ended well.
        SUCCESS = 1;
        /// Their response times, ns.
        RT_NS = 2;
        /// Inbound requests admitted.
        PASSED = 3;
        /// Inbound requests refused, for any reason.
        REFUSED = 4;
        /// Inbound requests of class probe that were admitted past a limit lately:
        /// `[span 16 | where its passes begin 24 | probes 24]`, a span being 10 s of the clock.
        PROBES = 5;
        /// From how many admitted on this lane sums what its scopes hold before it admits; 0 while it found one
        /// of them near its entry limit.
        NEXT_LOOK = 6;
        /// Inbound requests refused because of a scope (they are among `REFUSED` too).
        SHED = 7;
    }
}

/// Word numbers of a cell: what one lane did on one node. One writer, as for [`total`].
pub mod cell {
    /// Words of a record.
    pub const WORDS: usize = 8;

    crate::list::listed! {
        FIELDS: usize;
        /// Requests in flight, see [`super::CellWord`].
        INFLIGHT = 0;
        /// Requests admitted.
        PASSED = 1;
        /// Requests that ended well.
        SUCCESS = 2;
        /// Requests that failed.
        ERROR = 3;
        /// Response times of those that ended well, ns.
        RT_NS = 4;
        /// Refused by flow rules.
        REFUSED_FLOW = 5;
        /// Refused by breakers (low half) and hot-parameter rules (high half).
        REFUSED_DEGRADE_PARAM = 6;
        /// Refused because of a scope (low half) and by authority rules (high half).
        REFUSED_SYSTEM_AUTHORITY = 7;
    }
}

/// Requests in flight of one lane on one node: `[in flight 24 | seat generation 24 | slot generation 16]`.
///
/// The count is modulo 2^24: a permit may be given back on another lane than it was taken on, so
/// only the sum over the lanes of a seat means anything. It is the high end of the word, so that a plain
/// addition of [`CellWord::ONE`] counts and leaves the generations alone.
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
    /// What one request in flight adds to a word.
    pub const ONE: u64 = 1 << 40;

    /// The word.
    #[inline]
    pub const fn pack(self) -> u64 {
        self.slot as u64
            | ((self.seat & Self::COUNT_MASK) as u64) << 16
            | ((self.inflight & Self::COUNT_MASK) as u64) << 40
    }

    /// The parts of a word.
    #[inline]
    pub const fn unpack(word: u64) -> Self {
        Self {
            slot: (word & 0xffff) as u16,
            seat: (word >> 16 & 0x00ff_ffff) as u32,
            inflight: (word >> 40 & 0x00ff_ffff) as u32,
        }
    }
}
