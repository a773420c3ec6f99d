//! What the programs cost, counted by themselves.
//!
//! The kernel's own account of run time costs each program of the host and may be switched on by
//! CAP_SYS_ADMIN alone. One run in 256 is timed here instead.

use aya_ebpf::helpers::{bpf_get_smp_processor_id, bpf_ktime_get_ns};
use aya_ebpf::macros::map;
use aya_ebpf::maps::Array;
use tidegate_abi::kernel::counter::{RUNS, TIMED, TIMED_EVERY, TIMED_NS, WORDS};

use crate::record::add;

/// One record for each CPU; the agent sets how many.
#[map]
static COUNTERS: Array<[u64; WORDS]> = Array::with_max_entries(1, aya_ebpf::bindings::BPF_F_MMAPABLE);

/// A program that runs on a scheduler event.
pub struct Run {
    /// The CPU it runs on.
    pub cpu: u32,
    /// When it began, ns.
    pub now_ns: u64,
}

impl Run {
    /// Begins.
    #[inline(always)]
    pub fn begin() -> Self {
        Self {
            // SAFETY: both helpers take nothing and fail never.
            cpu: unsafe { bpf_get_smp_processor_id() },
            // SAFETY: as above.
            now_ns: unsafe { bpf_ktime_get_ns() },
        }
    }

    /// Ends: counts the run, and times some.
    #[inline(always)]
    pub fn end(self) {
        let Some(record) = COUNTERS.get_ptr_mut(self.cpu) else {
            return;
        };
        add(record, RUNS, 1);
        // SAFETY: the lookup gave the record, and the word is one of its constants.
        let runs = unsafe { *record.cast::<u64>().add(RUNS) };
        if runs & (TIMED_EVERY - 1) == 0 {
            // SAFETY: the helper takes nothing and fails never.
            let spent_ns = unsafe { bpf_ktime_get_ns() }.wrapping_sub(self.now_ns);
            add(record, TIMED, 1);
            add(record, TIMED_NS, spent_ns);
        }
    }
}

/// Counts something on this CPU.
#[inline(always)]
pub fn count(word: usize) -> u64 {
    // SAFETY: the helper takes nothing and fails never.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    let Some(record) = COUNTERS.get_ptr_mut(cpu) else {
        return 0;
    };
    add(record, word, 1);
    // SAFETY: the lookup gave the record; callers name its constants.
    unsafe { *record.cast::<u64>().add(word) }
}
