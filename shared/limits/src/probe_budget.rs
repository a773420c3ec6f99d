//! How many probes are let past a limit of a scope: the class is self-declared, so it has a budget of 5 % of what
//! passed lately.
//!
//! ```text
//! [span 16 | where its passes begin 24 | probes 24]
//! ```
//!
//! * **span**: number of the 10 s since the clock's zero, modulo 2^16. It comes round after 7.6 days; a word that
//!   was idle for just that long counts its old probes for one span more, and never admits more for it.
//! * **counts**: modulo 2^24 of what passed; probes stay at their maximum.

use crate::number::NS_PER_S;

/// Length of a span, ns.
pub const SPAN_NS: u64 = 10 * NS_PER_S;

/// One probe in this many passes.
const SHARE: u64 = 20;

/// So many passes from before a span count for it at most: nobody counts for those who have not asked yet.
const CARRIED: u64 = 100;

const COUNT_MASK: u64 = (1 << 24) - 1;

/// Asks for a probe more at `now_ns`, where `passed` requests have passed so far (free-running), and gives the
/// word after it.
///
/// A span begins with what up to 100 passes before it have earned, and its first probe is always
/// within the budget.
pub const fn step(word: u64, now_ns: u64, passed: u64) -> (bool, u64) {
    let span = (now_ns / SPAN_NS) & 0xffff;
    let is_same = word >> 48 == span && word != 0;
    let (began, probes) = if is_same {
        (word >> 24 & COUNT_MASK, word & COUNT_MASK)
    } else {
        let carried = if passed < CARRIED { passed } else { CARRIED };
        (passed.wrapping_sub(carried) & COUNT_MASK, 0)
    };
    let since = passed.wrapping_sub(began) & COUNT_MASK;
    if probes.saturating_mul(SHARE) > since {
        return (false, word);
    }
    let more = probes.saturating_add(1);
    let probes = if more > COUNT_MASK { COUNT_MASK } else { more };
    (true, span << 48 | began << 24 | probes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_NS: u64 = 1_000 * SPAN_NS + 5;

    /// Asks so often at a time, with so many passes in all; how often it was let through.
    fn ask(word: &mut u64, now_ns: u64, times: u32, passed: u64) -> u32 {
        let mut admitted = 0;
        for _time in 0..times {
            let (is_admitted, next) = step(*word, now_ns, passed);
            *word = next;
            admitted += u32::from(is_admitted);
        }
        admitted
    }

    #[test]
    fn one_in_twenty_of_what_passed_lately_is_let_through() {
        let mut word = 0;
        assert_eq!(ask(&mut word, NOW_NS, 50, 1_000_000), 6);
        assert_eq!(ask(&mut word, NOW_NS, 50, 1_000_019), 0);
        assert_eq!(ask(&mut word, NOW_NS, 50, 1_000_020), 1);
        assert_eq!(ask(&mut word, NOW_NS, 500, 1_002_000), 99);
    }

    #[test]
    fn what_passed_long_ago_is_next_to_no_budget_for_now() {
        let mut word = 0;
        assert_eq!(ask(&mut word, NOW_NS, 1, 0), 1);
        // A million passed since, and nothing in the new span.
        let later_ns = NOW_NS + SPAN_NS;
        assert_eq!(ask(&mut word, later_ns, 100, 1_000_000), 6);
        assert_eq!(ask(&mut word, later_ns, 100, 1_000_040), 2);
    }

    #[test]
    fn a_count_of_passes_that_comes_round_is_no_matter() {
        let mut word = 0;
        let before = COUNT_MASK - 10;
        assert_eq!(ask(&mut word, NOW_NS, 1, before), 1);
        assert_eq!(ask(&mut word, NOW_NS, 100, before + 200), 15);
    }

    #[test]
    fn any_word_gives_an_answer() {
        for word in [u64::MAX, 1, 1 << 63, 0xffff << 48] {
            for now_ns in [0, u64::MAX] {
                let (_admitted, next) = step(word, now_ns, u64::MAX);
                let (_again, _next) = step(next, now_ns, 0);
            }
        }
    }
}
