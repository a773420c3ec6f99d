//! Where a JVM stops and goes on: its probes.

use aya_ebpf::helpers::{bpf_get_current_pid_tgid, bpf_ktime_get_ns};
use aya_ebpf::macros::{map, uprobe};
use aya_ebpf::maps::RingBuf;
use aya_ebpf::programs::ProbeContext;
use aya_log_ebpf::warn;
use tidegate_abi::kernel::counter::{RING_LOST, RING_SENT};
use tidegate_abi::kernel::pause::{PauseKind, ProbeRecord, WORDS};

use crate::account::count;

/// Room for 8192 records; at ten collections and a hundred safepoints a second of one JVM, minutes.
const RING_BYTES: u32 = 256 * 1024;

/// Records on their way to the agent.
#[map]
static PAUSES: RingBuf = RingBuf::with_byte_size(RING_BYTES, 0);

#[inline(always)]
fn tell(context: &ProbeContext, kind: PauseKind) -> u32 {
    let process = (bpf_get_current_pid_tgid() >> 32) as u32;
    // SAFETY: the helper takes nothing and fails never.
    let now_ns = unsafe { bpf_ktime_get_ns() };
    if let Some(mut room) = PAUSES.reserve::<[u64; WORDS]>(0) {
        room.write(ProbeRecord::words(kind, process, now_ns));
        room.submit(0);
        count(RING_SENT);
    } else {
        let lost = count(RING_LOST);
        // Said at 1, 2, 4, 8, ... lost ones: a full ring must not fill the log.
        if lost & lost.wrapping_sub(1) == 0 {
            warn!(
                context,
                "the ring of pauses is full: {} records lost on this CPU", lost
            );
        }
    }
    0
}

/// Garbage collection has stopped the JVM.
#[uprobe]
pub fn gc_begin(context: ProbeContext) -> u32 {
    tell(&context, PauseKind::GcBegin)
}

/// It goes on.
#[uprobe]
pub fn gc_end(context: ProbeContext) -> u32 {
    tell(&context, PauseKind::GcEnd)
}

/// The JVM begins to stop its threads.
#[uprobe]
pub fn safepoint_begin(context: ProbeContext) -> u32 {
    tell(&context, PauseKind::SafepointBegin)
}

/// They go on.
#[uprobe]
pub fn safepoint_end(context: ProbeContext) -> u32 {
    tell(&context, PauseKind::SafepointEnd)
}
