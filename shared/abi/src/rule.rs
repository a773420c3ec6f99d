//! A rule record of the table on the board: one rule on one resource.

/// Words of a record.
pub const WORDS: usize = 16;
crate::list::listed! {
    FIELDS: usize;
    /// `[number 32 | zero 8 | flags 8 | mode 8 | kind 8]`: kind is a [`crate::decision::RefusalKind`], mode a
    /// [`crate::decision::Mode`].
    HEAD = 0;
    /// Line of the rule's state in the ledger, low half.
    STATE = 1;
    /// What it does, see [`behavior`], low half (for breakers: least requests); [`trip`] in the high half.
    BEHAVIOR = 2;
    /// Most of what is counted, low half; index of the argument, high half (hot parameter).
    LIMIT = 3;
    /// A run of pool words: start low half, length high half.
    SPAN = 4;
}

/// Word numbers that flow rules have besides.
pub mod flow {
    crate::list::listed! {
        FIELDS: usize;
        /// Who it is for, see [`super::origin`], low half; which node, see [`super::subject`], high half.
        WHO = 5;
        /// Hash of the origin it is for.
        ORIGIN = 6;
        /// Slot or context hash it refers to.
        REFERENCE = 7;
        /// Longest wait, ns.
        MAX_WAIT_NS = 8;
        /// Passes per second, a double (pacing and warm-up).
        COUNT = 9;
        /// Warm-up period in s, low half; cold factor, high half.
        WARM_UP = 10;
        /// Length of the window, ns.
        WINDOW_NS = 11;
    }
}

/// Word numbers that hot-parameter rules have besides.
pub mod param {
    crate::list::listed! {
        FIELDS: usize;
        /// Sets of the value table: start low half, number high half.
        SETS = 12;
        /// Duration in s, low half; burst or longest wait in ms, high half.
        DURATION = 13;
    }
}

/// Word numbers that breakers have besides.
pub mod degrade {
    crate::list::listed! {
        FIELDS: usize;
        /// Ratio or count, a double.
        THRESHOLD = 8;
        /// A call that took longer is slow, ns.
        MAX_RT_NS = 9;
        /// Time from open to the first probe, ns.
        RECOVERY_NS = 10;
        /// Time a probe may take, ns.
        LEASE_NS = 11;
        /// Interval of the statistics, ns.
        INTERVAL_NS = 12;
    }
}

/// Flags of a rule.
pub mod flag {
    crate::list::listed! {
        VALUES: u8;
        /// Sentinel's behaviour, known defects included.
        QUIRKS = 1;
        /// An authority rule's list is a list of those who may not call.
        DENY = 2;
    }
}

/// What a rule does.
pub mod behavior {
    crate::list::listed! {
        VALUES: u32;
        /// Limits requests in flight.
        CONCURRENCY = 1;
        /// Limits passes in an aligned second.
        QPS = 2;
        /// Limits passes in an aligned window.
        WINDOW = 3;
        /// Limits passes in every window.
        STRICT = 4;
        /// Spaces passes evenly.
        PACE = 5;
        /// Limits passes, fewer while cold.
        WARM_UP = 6;
        /// Spaces passes evenly, wider while cold.
        WARM_UP_PACE = 7;
        /// A bucket of tokens.
        BUCKET = 8;
    }
}

/// Who a flow rule is for.
pub mod origin {
    crate::list::listed! {
        VALUES: u32;
        /// All callers.
        ANY = 0;
        /// One origin.
        IS = 1;
        /// Origins that no rule of the resource names.
        OTHER = 2;
    }
}

/// Which node a flow rule looks at.
pub mod subject {
    crate::list::listed! {
        VALUES: u32;
        /// The resource's, or the origin's.
        DIRECT = 0;
        /// Another resource's.
        RELATE = 1;
        /// The context's.
        CHAIN = 2;
    }
}

/// When a breaker opens.
pub mod trip {
    crate::list::listed! {
        VALUES: u32;
        /// Share of slow calls.
        SLOW_RATIO = 1;
        /// Share of failed calls.
        ERROR_RATIO = 2;
        /// Number of failed calls.
        ERROR_COUNT = 3;
    }
}
