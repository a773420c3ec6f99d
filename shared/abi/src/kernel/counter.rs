//! What the programs count of themselves on one CPU: a record of words that only grow.

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
/// Words of a record: one cache line.
pub const WORDS: usize = 8;

/// One run in so many is timed; a power of two.
pub const TIMED_EVERY: u64 = 256;
