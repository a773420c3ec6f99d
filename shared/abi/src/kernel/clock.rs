//! The time of a scheduler event, which costs a load where the kernel has just read it and a call where it has not.
//!
//! To ask for the time takes a program longer than all else that it does. The kernel asks for itself and
//! keeps it as the clock of the run queue. At a wake-up that is fresh. At a switch it is too, unless a wake-up
//! has asked for that switch: then the kernel leaves the clock as it was, and the wait between the two would read as nothing. So a
//! wake-up marks the CPU, and the next switch there calls the helper.
//!
//! The helper's clock is another one: it begins elsewhere, and is slewed. So it is moved by how far the queue's clock was
//! ahead of it at a wake-up on the same CPU, which is looked at once in 2^20 ns. There the queue's clock was read a little before
//! the helper's: mostly less than a microsecond, sometimes twenty. So the most that was found lately is kept, and given up slowly.
//!
//! ```text
//! 63                                1   0
//! [ when that was, units of 2^20 ns | stale ]
//! ```

/// In the word: the next switch on this CPU does not find a fresh clock.
pub const STALE: u64 = 1;

/// A millisecond has so many bits of ns.
const UNIT_BITS: u32 = 20;

/// The word after a wake-up at `clock_ns`, as long as nothing is stale.
#[inline(always)]
pub const fn held(clock_ns: u64) -> u64 {
    clock_ns >> UNIT_BITS << 1
}

/// Whether `word` holds at `clock_ns`, so that both clocks need not be compared again.
#[inline(always)]
pub const fn holds(word: u64, clock_ns: u64) -> bool {
    (word ^ held(clock_ns)) & !STALE == 0
}

/// What was found is kept for so many units.
const UNITS_MAX: u64 = 16;
/// A difference of more is no delay, but a clock that was slewed: 65 µs.
const LESS_MAX_NS: u64 = 1 << 16;

/// How far the queue's clock is ahead of the helper's, ns, after what was `kept_ns` with `word` and what is `found_ns` at a
/// wake-up at `clock_ns`. All wrap: either clock may be ahead.
#[inline(always)]
pub const fn ahead_ns(kept_ns: u64, found_ns: u64, word: u64, clock_ns: u64) -> u64 {
    let units = held(clock_ns).wrapping_sub(word & !STALE) >> 1;
    let less_ns = kept_ns.wrapping_sub(found_ns);
    if units <= UNITS_MAX && less_ns < LESS_MAX_NS {
        kept_ns.wrapping_sub(less_ns / 8)
    } else {
        found_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_are_compared_once_in_a_unit_of_time() {
        let first_ns = 7 << UNIT_BITS;
        let last_ns = first_ns + (1 << UNIT_BITS) - 1;
        for word in [held(first_ns), held(first_ns) | STALE] {
            assert!(holds(word, first_ns) && holds(word, last_ns));
            assert!(!holds(word, last_ns + 1) && !holds(word, first_ns - 1));
        }
        assert!(!holds(0, first_ns), "never compared");
        assert!(holds(held(u64::MAX), u64::MAX));
    }

    #[test]
    fn what_was_found_without_a_delay_is_given_up_slowly_and_what_a_slew_made_wrong_at_once() {
        for truth_ns in [5_000_000, 0, 0u64.wrapping_sub(7_000_000)] {
            let mut word = held(100 << UNIT_BITS);
            let mut kept_ns = truth_ns;
            for unit in 101..110 {
                let clock_ns = unit << UNIT_BITS;
                let late_ns = truth_ns.wrapping_sub(1000);
                kept_ns = ahead_ns(kept_ns, late_ns, word, clock_ns);
                word = held(clock_ns) | STALE;
            }
            let lost_ns = truth_ns.wrapping_sub(kept_ns);
            assert!((500..1000).contains(&lost_ns), "{lost_ns}");
            let now_ns = 110 << UNIT_BITS;
            assert_eq!(ahead_ns(kept_ns, truth_ns, word, now_ns), truth_ns);
            let slewed_ns = truth_ns.wrapping_sub(100_000);
            assert_eq!(ahead_ns(kept_ns, slewed_ns, word, now_ns), slewed_ns);
            let later_ns = 200 << UNIT_BITS;
            let drifted_ns = truth_ns.wrapping_sub(5000);
            assert_eq!(ahead_ns(kept_ns, drifted_ns, word, later_ns), drifted_ns);
        }
    }
}
