//! The time of a scheduler event, by the clock of the run queue; why and how: `tidegate_abi::kernel::clock`.

use tidegate_abi::kernel::clock::{STALE, ahead_ns, held, holds};
use tidegate_abi::kernel::counter::{AHEAD_NS, CLOCK};

use crate::account::{Record, now_ns};
use crate::offset::{CFS_RQ_RQ, RQ_CLOCK, RQ_CLOCK_FLAGS, TASK_CFS_RQ, field};
use crate::record::{get, set};

/// `RQCF_REQ_SKIP`: the next switch does not read the clock.
const LEAVES_CLOCK: u32 = 1;

/// A run queue of the kernel.
#[derive(Clone, Copy)]
pub struct Queue(*const u8);

impl Queue {
    /// The queue that a task is on.
    ///
    /// # Safety
    /// `task` is a task that a tracepoint handed over.
    #[inline(always)]
    pub unsafe fn of(task: *const u8) -> Self {
        // SAFETY: as the caller says; each pointer is a field of the struct before it.
        Self(unsafe { field(field(task, &TASK_CFS_RQ), &CFS_RQ_RQ) })
    }

    /// Its clock, ns.
    #[inline(always)]
    pub fn clock_ns(self) -> u64 {
        // SAFETY: `of` made it.
        unsafe { field(self.0, &RQ_CLOCK) }
    }

    /// The time of a wake-up, ns. `record` is that of the queue's CPU; `asks_later`: whether it is only after this that the
    /// kernel asks for a switch.
    #[inline(always)]
    pub fn woken_ns(self, record: Record, asks_later: bool) -> u64 {
        let clock_ns = self.clock_ns();
        let mut word = get(record, CLOCK);
        if !holds(word, clock_ns) {
            let found_ns = clock_ns.wrapping_sub(now_ns());
            let kept_ns = get(record, AHEAD_NS);
            set(
                record,
                AHEAD_NS,
                ahead_ns(kept_ns, found_ns, word, clock_ns),
            );
            word = held(clock_ns) | (word & STALE);
            set(record, CLOCK, word);
        }
        // SAFETY: `of` made it.
        if asks_later || unsafe { field::<u32>(self.0, &RQ_CLOCK_FLAGS) } & LEAVES_CLOCK != 0 {
            set(record, CLOCK, word | STALE);
        }
        clock_ns
    }

    /// The time of a switch, ns. `record` is that of its CPU.
    #[inline(always)]
    pub fn switched_ns(self, record: Record) -> u64 {
        let word = get(record, CLOCK);
        if word & STALE == 0 {
            return self.clock_ns();
        }
        set(record, CLOCK, word & !STALE);
        now_ns().wrapping_add(get(record, AHEAD_NS))
    }
}
