//! What the programs cost, counted by themselves.
//!
//! The kernel's own account of run time costs each program of the host and may be switched on by
//! CAP_SYS_ADMIN alone. One run in 256 is timed here instead.

use aya_ebpf::helpers::{bpf_get_smp_processor_id, bpf_ktime_get_ns};
use aya_ebpf::macros::map;
use aya_ebpf::maps::Array;
use tidegate_abi::kernel::counter::{RUNS, TIMED, TIMED_NS, WORDS, is_timed};

use crate::record::{add, get};

/// One record for each CPU; the agent sets how many.
#[map]
static COUNTERS: Array<[u64; WORDS]> =
    Array::with_max_entries(1, aya_ebpf::bindings::BPF_F_MMAPABLE);

/// The record of a CPU.
pub type Record = *mut [u64; WORDS];

/// The record of a CPU, if there is one.
#[inline(always)]
pub fn record(cpu: u32) -> Option<Record> {
    COUNTERS.get_ptr_mut(cpu)
}

/// A program that runs on a scheduler event.
pub struct Run {
    /// The CPU it counts for.
    pub cpu: u32,
    /// The record of that CPU.
    pub record: Record,
    /// When it began, if it is one of those that are timed, ns; 0 if not.
    began_ns: u64,
}

impl Run {
    /// Begins: counts the run, and times some. `None` on a CPU that has no record, which none is.
    #[inline(always)]
    pub fn begin() -> Option<Self> {
        // SAFETY: the helper takes nothing and fails never.
        Self::begin_for(unsafe { bpf_get_smp_processor_id() })
    }

    /// Begins, and counts for another CPU: one whose run queue is locked, so that nothing else writes its record.
    #[inline(always)]
    pub fn begin_for(cpu: u32) -> Option<Self> {
        let record = record(cpu)?;
        add(record, RUNS, 1);
        let began_ns = if is_timed(get(record, RUNS)) {
            now_ns()
        } else {
            0
        };
        Some(Self {
            cpu,
            record,
            began_ns,
        })
    }

    /// Ends.
    #[inline(always)]
    pub fn end(self) {
        if self.began_ns != 0 {
            let ended_ns = now_ns();
            // What two looks at the clock without anything between them tell is no part of the run.
            let look_ns = now_ns().wrapping_sub(ended_ns);
            let ran_ns = ended_ns.wrapping_sub(self.began_ns);
            add(self.record, TIMED, 1);
            add(self.record, TIMED_NS, ran_ns.saturating_sub(look_ns));
        }
    }
}

/// The time by the helper. It is the dearest part of a program, so only those ask that need it.
#[inline(always)]
pub fn now_ns() -> u64 {
    // SAFETY: the helper takes nothing and fails never.
    unsafe { bpf_ktime_get_ns() }
}

/// Counts something on this CPU.
#[inline(always)]
pub fn count(word: usize) -> u64 {
    // SAFETY: the helper takes nothing and fails never.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    let Some(record) = record(cpu) else {
        return 0;
    };
    add(record, word, 1);
    get(record, word)
}
