//! The cheaper way: the kernel's own account of since when a task waits.
//!
//! One program instead of three. Short waits are told too short, because the run queue's clock is not
//! always fresh, and nobody is seen to take a CPU from anybody.

use aya_ebpf::macros::btf_tracepoint;
use aya_ebpf::programs::BtfTracePointContext;

use crate::account::Run;
use crate::offset::{CFS_RQ_RQ, RQ_CLOCK, TASK_CFS_RQ, TASK_LAST_QUEUED, TASK_PID, field};
use crate::runqueue::waited;
use crate::task::Place;

/// One task leaves the CPU and another takes it.
#[btf_tracepoint(function = "sched_switch")]
pub fn sched_switch_info(context: BtfTracePointContext) -> i32 {
    let run = Run::begin();
    let next: *const u8 = context.arg(2);
    // SAFETY: the tracepoint hands over a task.
    let pid: u32 = unsafe { field(next, &TASK_PID) };
    if pid != 0 {
        // SAFETY: as above.
        let queued_ns: u64 = unsafe { field(next, &TASK_LAST_QUEUED) };
        // SAFETY: each pointer is a field of the struct before it.
        let clock_ns: u64 =
            unsafe { field(field(field(next, &TASK_CFS_RQ), &CFS_RQ_RQ), &RQ_CLOCK) };
        if queued_ns != 0 && clock_ns > queued_ns {
            if let Some(place) = Place::of(pid) {
                // SAFETY: as above.
                let slot = unsafe { place.slot(next, clock_ns) };
                waited(slot, run.cpu, clock_ns - queued_ns);
            }
        }
    }
    run.end();
    0
}
