//! What is known of each task: two words in a table that tasks share.
//!
//! ```text
//! 63        42 41                               0
//! [    pid    |  ns, the low 42 bits            ]   since when it waits, 0 if it does not
//! [ from the task to its set | second |   slot  ]   which slot it counts in
//! 63                       22 21     8 7       0
//! ```
//! A task's place is the low bits of its pid. Two tasks whose pids differ by a multiple of the table
//! share a place; the later one takes it, and the wait of the other is lost and counted. So the
//! table is bounded, needs no entry made or removed, and a look into it is one load. The time is that of
//! [`clock`](super::clock) and wraps after 73 minutes: a wait of more than half of that is taken for none, as is one that begins on a
//! CPU whose clock is ahead of that of the CPU it ends on.
//!
//! The way from a task to its group leads over four structs of the kernel, so the slot that it ends at is kept beside the wait.
//! It holds for a second (2^30 ns) at most, and only while the task has the same set of groups: then it is looked up again.

/// Places in the table: 4 MiB of kernel memory.
pub const PLACES: u32 = 1 << 18;

/// Word: since when the task waits.
pub const WAIT: usize = 0;
/// Word: which slot it counts in.
pub const SLOT: usize = 1;
/// Words of a place.
pub const WORDS: usize = 2;

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
    let waited_ns = now_ns.wrapping_sub(word) & TIME;
    if waited_ns > TIME / 2 { 0 } else { waited_ns }
}

/// Bits of a slot's number.
const SLOT_BITS: u32 = 8;
/// Bits of the second, which wraps after five hours.
const SECOND_BITS: u32 = 14;
/// A second has so many bits of ns.
const SECOND_NS_BITS: u32 = 30;
/// No struct of a task or a set is smaller than this many bits of bytes.
const STRUCT_BITS: u32 = 6;

/// What must still be so for a slot to hold: how far the set of groups is from the task, bytes, and
/// in which second that was.
#[inline(always)]
pub const fn mark(to_set: u64, now_ns: u64) -> u64 {
    let second = (now_ns >> SECOND_NS_BITS) & ((1 << SECOND_BITS) - 1);
    ((to_set >> STRUCT_BITS) << (SECOND_BITS + SLOT_BITS)) | (second << SLOT_BITS)
}

/// The word of a slot that was found under a mark.
#[inline(always)]
pub const fn found(mark: u64, slot: u32) -> u64 {
    mark | slot as u64
}

/// The slot in a word, if the same mark stands there.
#[inline(always)]
pub const fn slot(word: u64, mark: u64) -> Option<u32> {
    let slot = word ^ mark;
    if slot >> SLOT_BITS == 0 {
        Some(slot as u32)
    } else {
        None
    }
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
        assert_eq!(waited_ns(word, began_ns - 100), 0, "by another CPU's clock");
        assert!(!waits(0, 0));
    }

    #[test]
    fn a_slot_holds_for_the_same_set_of_groups_and_a_second() {
        let to_set = 0u64.wrapping_sub(0x1_2345_6640);
        let now_ns = 7 << SECOND_NS_BITS;
        for kept in [0, 9, u32::from(u8::MAX)] {
            let word = found(mark(to_set, now_ns), kept);
            assert_eq!(slot(word, mark(to_set, now_ns + 1_000_000_000)), Some(kept));
            assert_eq!(
                slot(word, mark(to_set, now_ns + (1 << SECOND_NS_BITS))),
                None
            );
            assert_eq!(slot(word, mark(to_set + (1 << STRUCT_BITS), now_ns)), None);
        }
        assert_eq!(slot(0, mark(to_set, now_ns)), None, "a free place");
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
