//! What the programs count of themselves on one CPU: a record of words that only grow, but for the last two.

/// Word: runs of the programs on scheduler events.
pub const RUNS: usize = 0;
/// Word: runs whose time was taken, one in [`TIMED_EVERY`].
pub const TIMED: usize = 1;
/// Word: time that those took, ns.
pub const TIMED_NS: usize = 2;
/// Word: waits that were lost, because another task had taken the place.
pub const WAITS_LOST: usize = 3;
/// Word: records that found no room in the ring.
pub const RING_LOST: usize = 4;
/// Word: records put into the ring.
pub const RING_SENT: usize = 5;
/// Word: how far the clock of the run queue is ahead of the helper's, ns.
pub const AHEAD_NS: usize = 6;
/// Word: when that was found, and whether the next switch needs it; see [`clock`](super::clock).
pub const CLOCK: usize = 7;
/// Words of a record: one cache line.
pub const WORDS: usize = 8;

/// One run in so many is timed; a power of two.
pub const TIMED_EVERY: u64 = 1 << TIMED_BITS;
const TIMED_BITS: u32 = 8;

/// Whether a run is one of those that are timed. They are spread, since a wake-up and a switch may follow
/// each other for ever: each 256th run would always be one of the same program.
#[inline(always)]
pub const fn is_timed(run: u64) -> bool {
    // 2^64 divided by the golden ratio.
    run.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - TIMED_BITS) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_in_so_many_is_timed_in_whatever_rhythm_programs_take_turns() {
        for turns in 1..=16 {
            for turn in 0..turns {
                let runs = (0..TIMED_EVERY * 1000).map(|run| run * turns + turn);
                let timed = runs.filter(|run| is_timed(*run)).count();
                assert!((900..1100).contains(&timed), "{turn} of {turns}: {timed}");
            }
        }
    }
}
