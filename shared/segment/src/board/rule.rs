//! A rule record of the table: one rule on one resource, for everything that the plain record of a
//! resource has no room for.

use core::num::NonZeroU64;

use tidegate_abi::decision::{Mode, RefusalKind};
use tidegate_limits::authority::OriginListMode;
use tidegate_limits::breaker::Breaker;
use tidegate_limits::quirks::Quirks;

/// A rule on a resource.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoardRule {
    /// Number of the rule in its set, for messages.
    pub number: u32,
    /// Whether it refuses, counts only, or does nothing.
    pub mode: Mode,
    /// Its line of state in the ledger.
    pub state: u32,
    /// Whose behaviour it has where Sentinel has a known defect.
    pub quirks: Quirks,
    /// What it limits.
    pub kind: RuleKind,
}

/// What a rule limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RuleKind {
    /// Who may call.
    Authority {
        /// Allow or deny.
        list: OriginListMode,
        /// The origins' hashes in the pool.
        origins: PoolSpan,
    },
    /// How much of one value of an argument may pass.
    Param(ParamRule),
    /// How much may pass.
    Flow(FlowRule),
    /// A circuit breaker.
    Degrade {
        /// Its thresholds.
        breaker: Breaker,
        /// Interval of its statistics.
        interval_ns: NonZeroU64,
    },
}

/// A run of words in the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolSpan {
    /// First word.
    pub start: u32,
    /// Number of words.
    pub length: u32,
}

/// A flow rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowRule {
    /// Which callers it is for.
    pub origin: OriginTest,
    /// Which node it looks at.
    pub subject: Subject,
    /// Its limit.
    pub limit: FlowLimit,
}

/// Which callers a flow rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginTest {
    /// All.
    Any,
    /// The origin with that hash.
    Is(u64),
    /// Every origin but those that the resource's rules name (hashes in the pool), and not the empty
    /// one.
    Other(PoolSpan),
}

/// Which node a flow rule looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The resource, or the resource and origin where the rule names origins.
    Direct,
    /// Another resource, by slot; not exact, since it is only looked at.
    Relate(u32),
    /// The resource in the context with that hash; other contexts pass.
    Chain(u64),
}

/// What a flow rule holds a node to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FlowLimit {
    /// Requests in flight.
    Concurrency(u32),
    /// Passes in a second of two aligned half-second buckets.
    Qps(u32),
    /// Passes in a window of two aligned buckets, of another length than a second.
    Window {
        /// Most passes.
        limit: u32,
        /// Length of the window.
        window_ns: u64,
    },
    /// Passes in every window of a length.
    Strict {
        /// Most passes.
        limit: u32,
        /// Length of the window.
        window_ns: u64,
    },
    /// Even spacing.
    Pace {
        /// Passes per second.
        count: f64,
        /// Longest wait.
        max_wait_ns: u64,
    },
    /// A limit per second that rises while traffic flows.
    WarmUp(WarmUpNumbers),
    /// Even spacing at such a rate.
    WarmUpPace {
        /// The rate.
        warm_up: WarmUpNumbers,
        /// Longest wait.
        max_wait_ns: u64,
    },
}

/// Numbers of a warm-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmUpNumbers {
    /// Passes per second when warm.
    pub count: f64,
    /// Time to warm up, s.
    pub period_s: u32,
    /// Warm over cold rate.
    pub cold_factor: u32,
}

/// A hot-parameter rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParamRule {
    /// Which argument; negative counts from the end.
    pub index: i32,
    /// How a value is limited.
    pub limit: ParamLimit,
    /// Passes per duration, or calls at once, of a value without an item of its own.
    pub count: u32,
    /// Items in the pool: (hash of the value, limit) pairs; item `i` has the state line after the
    /// rule's by `i / 8`.
    pub items: PoolSpan,
    /// Sets of values in the ledger.
    pub sets: PoolSpan,
}

/// How a hot-parameter rule limits a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamLimit {
    /// A bucket of tokens.
    Bucket {
        /// Tokens on top of the count.
        burst: u32,
        /// Seconds after which it is refilled.
        duration_s: u32,
    },
    /// Passes in every window of the duration.
    Strict {
        /// Seconds.
        duration_s: u32,
    },
    /// Even spacing.
    Pace {
        /// Seconds.
        duration_s: u32,
        /// Longest wait, ms.
        max_wait_ms: u32,
    },
    /// Calls at once.
    Concurrency,
}

impl BoardRule {
    /// Kind of refusal.
    pub const fn refusal_kind(&self) -> RefusalKind {
        match self.kind {
            RuleKind::Authority { .. } => RefusalKind::Authority,
            RuleKind::Param(_) => RefusalKind::Param,
            RuleKind::Flow(_) => RefusalKind::Flow,
            RuleKind::Degrade { .. } => RefusalKind::Degrade,
        }
    }
}

mod codec;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
