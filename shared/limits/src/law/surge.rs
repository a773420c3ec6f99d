//! A surge: in flight grows faster than a service with enough CPU could let it.
//!
//! What is in flight grows by what arrives and falls by what ends, so it never grows faster than requests
//! arrive. Where it grows by more than the capacity, more arrives than can be done, whatever the CPU was
//! in the last tick; those whom the service waits for can be as slow as they like, that alone makes it grow
//! by no more than the load. At the entry limit a surge is evidence, for decisions in the middle of a tick
//! and for the law at the end of one.
//!
//! Without it a step to five times the capacity and more queues up to [`super::FAR_OVER`] entry limits
//! before the first tick sees a short CPU.

use tidegate_abi::board::SurgeWord;

use super::number::ceil_u32;

/// Growth that is a surge, as times of the capacity. Requests arrive by chance, so a tick at the very
/// capacity whose requests all wait for others may reach a little more than once.
const TIMES: f64 = 1.2;

/// Growth is judged over this at least, ns, so that a handful at one moment is none.
const LEAST_SPAN_NS: u64 = 50_000_000;

const NS_PER_S: u64 = 1_000_000_000;

/// Growth, requests per second, from which on a scope of this capacity has a surge.
pub(super) fn least_qps(capacity_qps: f64) -> u32 {
    at_least(capacity_qps * TIMES)
}

/// This growth, requests per second.
pub(super) fn at_least(growth_qps: f64) -> u32 {
    ceil_u32(growth_qps).max(1)
}

/// Whether `held` is a surge over what was held `span_ns` ago.
#[inline]
pub const fn is_surge(before: SurgeWord, held: u32, span_ns: u64) -> bool {
    if before.least_qps == 0 {
        return false;
    }
    let span_ns = if span_ns < LEAST_SPAN_NS {
        LEAST_SPAN_NS
    } else {
        span_ns
    };
    let grown = held.saturating_sub(before.held) as u64;
    // Both fit: the first is under 2^62, and the second stops at the top.
    grown.saturating_mul(NS_PER_S) > span_ns.saturating_mul(before.least_qps as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn growth_beyond_the_capacity_is_a_surge_and_a_handful_is_none() {
        let before = SurgeWord {
            held: 5,
            least_qps: least_qps(200.0),
        };
        assert_eq!(before.least_qps, 240);
        // 24 in 100 ms are the mark; in a moment 12.
        assert!(!is_surge(before, 29, 100 * MS));
        assert!(is_surge(before, 30, 100 * MS));
        assert!(!is_surge(before, 17, 0));
        assert!(is_surge(before, 18, 0));
        // A late tick tells less.
        assert!(!is_surge(before, 200, 1000 * MS));
        assert!(!is_surge(before, 0, 100 * MS));
    }

    #[test]
    fn where_no_capacity_is_known_nothing_is_a_surge() {
        assert!(!is_surge(SurgeWord::NONE, u32::MAX, 0));
        let fast = SurgeWord {
            held: 0,
            least_qps: u32::MAX,
        };
        assert!(!is_surge(fast, u32::MAX, u64::MAX));
    }
}
