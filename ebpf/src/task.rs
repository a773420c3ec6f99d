//! Since when each task waits.

use aya_ebpf::macros::map;
use aya_ebpf::maps::Array;
use tidegate_abi::kernel::task::{PLACES, place, waited_ns, waiting, waits};

/// One word for each task that can run.
#[map]
static TASKS: Array<u64> = Array::with_max_entries(PLACES, 0);

/// What the table says of a task that begins to run.
pub enum Wait {
    /// It waited so long, ns.
    Ended(u64),
    /// Another task has its place: how long it waited is lost.
    Lost,
    /// Nobody saw it begin to wait: it waits since before the programs were loaded.
    Unknown,
}

/// A task was woken. One that waits already goes on to wait.
#[inline(always)]
pub fn woken(pid: u32, now_ns: u64) {
    if let Some(word) = TASKS.get_ptr_mut(place(pid)) {
        // SAFETY: the lookup gave the word. It is written whole, so another CPU that writes the same
        // place, for a task of the same place, leaves one of both words.
        unsafe {
            if !waits(*word, pid) {
                *word = waiting(pid, now_ns);
            }
        }
    }
}

/// A task left its CPU: to wait for the next turn, or to sleep.
#[inline(always)]
pub fn left(pid: u32, can_run: bool, now_ns: u64) {
    if let Some(word) = TASKS.get_ptr_mut(place(pid)) {
        // SAFETY: as in `woken`.
        unsafe {
            if can_run {
                *word = waiting(pid, now_ns);
            } else if waits(*word, pid) {
                // Woken while it ran.
                *word = 0;
            }
        }
    }
}

/// A task begins to run.
#[inline(always)]
pub fn begins(pid: u32, now_ns: u64) -> Wait {
    let Some(place) = TASKS.get_ptr_mut(place(pid)) else {
        return Wait::Unknown;
    };
    // SAFETY: as in `woken`.
    let word = unsafe { *place };
    if waits(word, pid) {
        // SAFETY: as in `woken`.
        unsafe { *place = 0 };
        Wait::Ended(waited_ns(word, now_ns))
    } else if word == 0 {
        Wait::Unknown
    } else {
        Wait::Lost
    }
}
