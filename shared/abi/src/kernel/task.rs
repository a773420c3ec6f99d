//! Since when a task waits: one word for each task that can run, in a table that tasks share.
//!
//! ```text
//! 63        42 41                               0
//! [    pid    |  ns, the low 42 bits            ]
//! ```
//! A task's place is the low bits of its pid. Two tasks whose pids differ by a multiple of the table
//! share a place; the later one takes it, and the wait of the other is lost and counted. So the
//! table is bounded, needs no entry made or removed, and a look into it is one load. The time wraps
//! after 73 minutes: a longer wait is taken for a shorter one.

/// Places in the table: 2 MiB of kernel memory.
pub const PLACES: u32 = 1 << 18;

/// Bits of the time.
const TIME_BITS: u32 = 42;
const TIME: u64 = (1 << TIME_BITS) - 1;

/// The largest pid of any kernel, and so what is left of a word beside the time.
pub const PID_MAX: u32 = (1 << (64 - TIME_BITS)) - 1;

/// The task's place.
#[inline(always)]
pub const fn place(pid: u32) -> u32 {
    pid & (PLACES - 1)
}

/// The word of a task that waits since `now_ns`.
#[inline(always)]
pub const fn waiting(pid: u32, now_ns: u64) -> u64 {
    ((pid as u64) << TIME_BITS) | (now_ns & TIME)
}

/// Whether a word is that of this task, and it waits.
#[inline(always)]
pub const fn waits(word: u64, pid: u32) -> bool {
    word != 0 && word >> TIME_BITS == pid as u64
}

/// For how long the task of a word has waited, ns.
#[inline(always)]
pub const fn waited_ns(word: u64, now_ns: u64) -> u64 {
    now_ns.wrapping_sub(word) & TIME
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_known_by_its_task_and_survives_the_wrap_of_its_time() {
        let began_ns = 3 * TIME - 5;
        let word = waiting(PID_MAX, began_ns);
        assert!(waits(word, PID_MAX));
        assert!(!waits(word, PID_MAX & (PLACES - 1)), "of the same place");
        assert_eq!(waited_ns(word, began_ns + 1_000_000), 1_000_000);
        assert!(!waits(0, 0));
    }

    #[test]
    fn every_task_has_a_place() {
        assert!(
            [0, 1, PLACES, PID_MAX, u32::MAX]
                .map(place)
                .iter()
                .all(|place| *place < PLACES)
        );
    }
}
