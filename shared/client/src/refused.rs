//! What a caller hears who may not go on.

use std::fmt;
use std::time::Duration;

use tidegate_abi::decision::{Reason, RefusalKind};
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
use tidegate_segment::gate::Refusal;

/// A request that was refused: who, why, and when to come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("refused by {} ({}){}, retry in {} ms", .kind.name(), .reason.name(), measured(*.value, *.limit), .retry_after.as_millis())]
pub struct Refused {
    /// Kind of rule.
    pub kind: RefusalKind,
    /// What was over its limit.
    pub reason: Reason,
    /// Number of the rule; `None` where a scope refused.
    pub rule: Option<u32>,
    /// The value measured.
    pub value: u32,
    /// The limit it was held against.
    pub limit: u32,
    /// When to come again, already spread so that the refused do not come back as one.
    pub retry_after: Duration,
    /// Whether trying again makes sense at all.
    pub retry: bool,
}

/// What was held against what, where that is known.
fn measured(value: u32, limit: u32) -> String {
    if (value, limit) == (0, 0) {
        return String::new();
    }
    format!(": {value} of {limit}")
}

impl Refused {
    /// What refused, in a few words of a fixed set: `flow/qps rule 3`, `system/overload`.
    pub fn by(&self) -> impl fmt::Display + use<> {
        By(self.kind, self.reason, self.rule)
    }

    /// HTTP status: 503 where a scope is overloaded, 429 where a rule refused.
    pub const fn http_status(&self) -> u16 {
        match self.kind {
            RefusalKind::System => 503,
            RefusalKind::Authority
            | RefusalKind::Param
            | RefusalKind::Flow
            | RefusalKind::Degrade => 429,
        }
    }

    /// Value of HTTP's `Retry-After`: whole seconds, rounded up, at least 1.
    pub fn retry_after_s(&self) -> u64 {
        let seconds = self.retry_after.as_secs();
        let started = u64::from(self.retry_after.subsec_nanos() > 0);
        seconds.saturating_add(started).max(1)
    }
}

/// See [`Refused::by`].
struct By(RefusalKind, Reason, Option<u32>);

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(kind, reason, rule) = self;
        write!(f, "{}/{}", kind.name(), reason.name())?;
        match rule {
            Some(rule) => write!(f, " rule {rule}"),
            None => Ok(()),
        }
    }
}

#[cfg(all(target_os = "linux", not(tidegate_stub)))]
impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self {
            kind: refusal.kind,
            reason: refusal.reason,
            rule: (refusal.rule != Refusal::NO_RULE).then_some(refusal.rule),
            value: refusal.value,
            limit: refusal.limit,
            retry_after: Duration::from_nanos(refusal.retry_after_ns),
            retry: refusal.retry,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSED: Refused = Refused {
        kind: RefusalKind::Flow,
        reason: Reason::Qps,
        rule: Some(3),
        value: 100,
        limit: 100,
        retry_after: Duration::from_millis(213),
        retry: true,
    };

    #[test]
    fn a_refusal_says_who_why_and_when() {
        assert_eq!(
            REFUSED.to_string(),
            "refused by flow (qps): 100 of 100, retry in 213 ms"
        );
        let not_counted = Refused {
            value: 0,
            limit: 0,
            ..REFUSED
        };
        assert_eq!(
            not_counted.to_string(),
            "refused by flow (qps), retry in 213 ms"
        );
    }

    #[test]
    fn http_hears_whole_seconds_and_whether_a_rule_or_the_host_refused() {
        let of = |ms| Refused {
            retry_after: Duration::from_millis(ms),
            ..REFUSED
        };
        assert_eq!(of(0).retry_after_s(), 1);
        assert_eq!(of(1000).retry_after_s(), 1);
        assert_eq!(of(1001).retry_after_s(), 2);
        assert_eq!(REFUSED.http_status(), 429);
        let system = Refused {
            kind: RefusalKind::System,
            ..REFUSED
        };
        assert_eq!(system.http_status(), 503);
    }
}
