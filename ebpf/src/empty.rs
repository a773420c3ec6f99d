//! Nothing: what the kernel's own account tells of this program is what that account takes of every one.

use aya_ebpf::macros::btf_tracepoint;
use aya_ebpf::programs::BtfTracePointContext;

/// Does nothing on a switch; `tidegate bench --ebpf` alone attaches it.
#[btf_tracepoint(function = "sched_switch")]
pub fn sched_switch_empty(_context: BtfTracePointContext) -> i32 {
    0
}
