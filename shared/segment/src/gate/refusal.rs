//! What a refusal says: who, why, by how much, and when to come again.

use tidegate_abi::decision::{Reason, RefusalKind};

/// How long a caller is told to wait when its scope is in overload, ns, before the spread.
const OVERLOAD_WAIT_NS: u64 = 1_000_000_000;

/// When to come again after a concurrency rule refused, ns: nobody knows when a request ends.
const CONCURRENCY_WAIT_NS: u64 = 100_000_000;

/// A request that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Kind of rule.
    pub kind: RefusalKind,
    /// What was over its limit.
    pub reason: Reason,
    /// Whether trying again makes sense, after the time below.
    pub retry: bool,
    /// Number of the rule, [`Refusal::NO_RULE`] where none refused.
    pub rule: u32,
    /// The value measured.
    pub value: u32,
    /// The limit it was held against.
    pub limit: u32,
    /// When to try again, ns from now; spread, so that the refused do not come back as one.
    pub retry_after_ns: u64,
}

impl Refusal {
    /// Rule number where no rule refused.
    pub const NO_RULE: u32 = u32::MAX;

    /// A QPS rule refused. `room_ns` is the time until there is room.
    #[cold]
    pub(super) fn qps(rule: u32, value: u32, limit: u32, room_ns: u64) -> Self {
        Self::flow(Reason::Qps, rule, value, limit, room_ns)
    }

    /// An authority rule refused: trying again does not help.
    #[cold]
    pub(super) fn origin(rule: u32) -> Self {
        Self {
            kind: RefusalKind::Authority,
            retry: false,
            ..Self::flow(Reason::Origin, rule, 0, 0, OVERLOAD_WAIT_NS)
        }
    }

    /// A concurrency rule refused.
    #[cold]
    pub(super) fn concurrency(rule: u32, value: u32, limit: u32) -> Self {
        Self::flow(Reason::Concurrency, rule, value, limit, CONCURRENCY_WAIT_NS)
    }

    /// A flow rule refused. `room_ns` is the time until there is room.
    #[inline(always)]
    pub(super) const fn flow(
        reason: Reason,
        rule: u32,
        value: u32,
        limit: u32,
        room_ns: u64,
    ) -> Self {
        Self {
            kind: RefusalKind::Flow,
            reason,
            retry: true,
            rule,
            value,
            limit,
            retry_after_ns: room_ns,
        }
    }

    /// A scope refused.
    #[cold]
    pub(super) const fn scope(reason: Reason, value: u32, limit: u32) -> Self {
        Self {
            kind: RefusalKind::System,
            reason,
            retry: true,
            rule: Self::NO_RULE,
            value,
            limit,
            retry_after_ns: OVERLOAD_WAIT_NS,
        }
    }

    /// A user holds all that it may have of a scope's limit while others ask for some.
    #[cold]
    pub const fn share(held: u32, most: u32, now_ns: u64) -> Self {
        Self::scope(Reason::Overload, held, most).spread(now_ns)
    }

    /// Lengthens the wait by up to a quarter, by the low bits of the clock.
    pub(super) const fn spread(mut self, now_ns: u64) -> Self {
        // A multiplication mixes the low bits up; the top ten are the share of a quarter, in 1/1024.
        let share = now_ns.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
        let quarter = self.retry_after_ns / 4;
        self.retry_after_ns = self
            .retry_after_ns
            .saturating_add(quarter.saturating_mul(share) / 1024);
        self
    }
}
