//! What is known of each task: since when it waits, and in which slot it counts.

use aya_ebpf::macros::map;
use aya_ebpf::maps::Array;
use tidegate_abi::kernel::task::{
    PLACES, SLOT, WAIT, WORDS, found, mark, place, slot, waited_ns, waiting, waits,
};

use crate::offset::{TASK_CGROUPS, field};
use crate::slot::of_set;

/// Two words for each task.
#[map]
static TASKS: Array<[u64; WORDS]> = Array::with_max_entries(PLACES, 0);

/// What the table says of a task that begins to run.
pub enum Wait {
    /// It waited so long, ns.
    Ended(u64),
    /// Another task has its place: how long it waited is lost.
    Lost,
    /// Nobody saw it begin to wait: it waits since before the programs were loaded.
    Unknown,
}

/// A task's place in the table.
#[derive(Clone, Copy)]
pub struct Place {
    words: *mut [u64; WORDS],
    pid: u32,
}

impl Place {
    /// The place of a task.
    #[inline(always)]
    pub fn of(pid: u32) -> Option<Self> {
        let words = TASKS.get_ptr_mut(place(pid))?;
        Some(Self { words, pid })
    }

    /// The task was woken. If it waits already it goes on to wait.
    #[inline(always)]
    pub fn woken(self, now_ns: u64) {
        if !waits(self.word(WAIT), self.pid) {
            self.set(WAIT, waiting(self.pid, now_ns));
        }
    }

    /// The task left its CPU and could go on: it waits again from now.
    #[inline(always)]
    pub fn waits(self, now_ns: u64) {
        self.set(WAIT, waiting(self.pid, now_ns));
    }

    /// The task left its CPU to sleep, or for ever. Where it is not known that a woken one runs, it may seem to wait.
    #[inline(always)]
    pub fn slept(self) {
        if waits(self.word(WAIT), self.pid) {
            self.set(WAIT, 0);
        }
    }

    /// The task begins to run.
    #[inline(always)]
    pub fn begins(self, now_ns: u64) -> Wait {
        let word = self.word(WAIT);
        if waits(word, self.pid) {
            self.set(WAIT, 0);
            Wait::Ended(waited_ns(word, now_ns))
        } else if word == 0 {
            Wait::Unknown
        } else {
            Wait::Lost
        }
    }

    /// The slot that the task counts in.
    ///
    /// # Safety
    /// `task` is the task of this place, as a tracepoint handed it over.
    #[inline(always)]
    pub unsafe fn slot(self, task: *const u8, now_ns: u64) -> u32 {
        // SAFETY: as the caller says.
        let set: *const u8 = unsafe { field(task, &TASK_CGROUPS) };
        // Both are addresses; what is between them is a number, which may be kept.
        let mark = mark((set as u64).wrapping_sub(task as u64), now_ns);
        if let Some(slot) = slot(self.word(SLOT), mark) {
            return slot;
        }
        // SAFETY: it is a field of the task.
        let slot = unsafe { of_set(set) };
        self.set(SLOT, found(mark, slot));
        slot
    }

    #[inline(always)]
    fn word(self, word: usize) -> u64 {
        // SAFETY: the lookup gave the words, and `word` is one of their constants.
        unsafe { *self.words.cast::<u64>().add(word) }
    }

    #[inline(always)]
    fn set(self, word: usize, value: u64) {
        // SAFETY: as in `word`. It is written whole, so another CPU that writes the same place, for a task
        // of the same place, leaves one of both words.
        unsafe { *self.words.cast::<u64>().add(word) = value }
    }
}
