//! The cheaper way: the kernel's own account of since when a task waits.
//!
//! One program instead of three. Short waits are told too short, because the run queue's clock is not
//! always fresh, and nobody is seen to take a CPU from anybody.

use aya_ebpf::macros::btf_tracepoint;
use aya_ebpf::programs::BtfTracePointContext;

use crate::account::Run;
use crate::clock::Queue;
use crate::offset::{TASK_LAST_QUEUED, TASK_PID, field};
use crate::runqueue::waited;
use crate::task::Place;

/// One task leaves the CPU and another takes it.
#[btf_tracepoint(function = "sched_switch")]
pub fn sched_switch_info(context: BtfTracePointContext) -> i32 {
    if let Some(run) = Run::begin() {
        switch(context.arg(2), run.cpu);
        run.end();
    }
    0
}

#[inline(always)]
fn switch(next: *const u8, cpu: u32) {
    // SAFETY: the tracepoint hands over a task.
    let (pid, queued_ns): (u32, u64) =
        unsafe { (field(next, &TASK_PID), field(next, &TASK_LAST_QUEUED)) };
    if pid == 0 || queued_ns == 0 {
        return;
    }
    // SAFETY: as above.
    let clock_ns = unsafe { Queue::of(next) }.clock_ns();
    if clock_ns > queued_ns
        && let Some(place) = Place::of(pid)
    {
        // SAFETY: as above.
        let slot = unsafe { place.slot(next, clock_ns) };
        waited(slot, cpu, clock_ns - queued_ns);
    }
}
