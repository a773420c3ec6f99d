//! Run-queue wait and length of one slot on one CPU: a record of words that only that CPU writes.
//!
//! The record of slot `s` on CPU `c` is number `s * cpus + c`. Its first half is a histogram of
//! waits: two buckets for each power of two, as 32-bit counts that wrap, low half first. All words
//! only grow, so a reader takes differences.

use core::hint::black_box;

/// Buckets of the histogram.
pub const BUCKETS: u32 = 64;
/// Words of the histogram; two buckets each.
pub const BUCKET_WORDS: usize = 32;
/// Word: time that waits took together, ns.
pub const WAITED_NS: usize = 32;
/// Word: samples of the run queue that met a task of the slot.
pub const SAMPLES: usize = 33;
/// Word: tasks on the run queues, summed over those samples.
pub const LENGTHS: usize = 34;
/// Words of a record, a whole number of cache lines.
pub const WORDS: usize = 40;

/// Waits below this are one bucket: 2^10 ns.
const FIRST_BITS: u32 = 10;

/// Samples of the run queue a second and CPU. Not a round number, so that they do not march in step
/// with what programs do.
pub const SAMPLE_HZ: u64 = 99;

/// Number of the word that counts how often a task of slot `victim` had to make way for one of slot
/// `by` on a CPU. The words of one victim on one CPU are a row.
#[inline(always)]
pub const fn pair(victim: u32, by: u32, cpu: u32, slots: u32, cpus: u32) -> u32 {
    let row = victim.wrapping_mul(cpus).wrapping_add(cpu);
    row.wrapping_mul(slots).wrapping_add(by)
}

/// The bucket of a wait.
///
/// Bucket 0 is below 1.024 µs. Then each power of two has two buckets: below and above 1.5 times it.
#[inline(always)]
#[expect(
    clippy::indexing_slicing,
    reason = "the table has a place for each byte"
)]
pub fn bucket(wait_ns: u64) -> u32 {
    let mut scaled = wait_ns >> (FIRST_BITS - 1);
    let mut above = 0;
    // The two highest bits say where in its octave a number is, and a shift keeps them. Up to 131 µs there is
    // nothing to shift, so the machine foresees the way.
    while scaled >> TABLE_BITS != 0 {
        scaled >>= TABLE_BITS - 1;
        above += 2 * (TABLE_BITS - 1);
    }
    // The compiler knows that the number is small now and would leave out the mask; the verifier does not.
    let place = black_box(scaled) as u8;
    let bucket = above + u32::from(FIRST[usize::from(place)]);
    let bucket = if bucket < BUCKETS {
        bucket
    } else {
        BUCKETS - 1
    };
    // The verifiers of Linux 5.10 and 6.1 also follow ways on which the bound above cannot hold, and lose it there.
    // A mask holds on every way; the compiler, which knows that it changes nothing, must not leave it out.
    black_box(bucket) & (BUCKETS - 1)
}

/// Numbers of so many bits have their buckets in a table. The kernel's machine has no instruction for
/// a logarithm, and one of branches is mostly mispredicted.
const TABLE_BITS: u32 = 8;

/// The bucket of each number that is left of a wait. No static: its name would hold a hash that the folder of the
/// build has part in, and the object would be another one in each.
#[expect(
    clippy::indexing_slicing,
    reason = "a compiler that comes to an end has kept in bounds"
)]
const FIRST: [u8; 1 << TABLE_BITS] = {
    let mut table = [0; 1 << TABLE_BITS];
    let mut scaled: usize = 2;
    while scaled < table.len() {
        let octave = scaled.ilog2();
        let upper = (scaled >> (octave - 1)) & 1;
        table[scaled] = (2 * octave - 1) as u8 + upper as u8;
        scaled += 1;
    }
    table
};

/// The least wait of a bucket, ns; of one that is not there, as of the last.
pub const fn bucket_ns(bucket: u32) -> u64 {
    if bucket == 0 {
        return 0;
    }
    let bucket = if bucket < BUCKETS {
        bucket
    } else {
        BUCKETS - 1
    };
    let above = bucket - 1;
    let octave_ns = 1 << (FIRST_BITS + above / 2);
    octave_ns + (octave_ns / 2) * (above % 2) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bucket_begins_where_the_one_before_it_ends() {
        for number in 1..BUCKETS {
            let first_ns = bucket_ns(number);
            assert_eq!(bucket(first_ns), number, "{first_ns} ns");
            assert_eq!(bucket(first_ns - 1), number - 1, "{first_ns} ns less one");
        }
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn buckets_grow_by_half_at_most() {
        for number in 2..BUCKETS {
            let [from_ns, to_ns] = [number - 1, number].map(bucket_ns);
            assert!(from_ns < to_ns && 2 * to_ns <= 3 * from_ns, "{number}");
        }
    }
}
