//! What the programs cost, counted by themselves.
//!
//! The kernel's own account of run time costs each program of the host and may be switched on by
//! CAP_SYS_ADMIN alone. One run in 256 is timed here instead.

use aya_ebpf::helpers::{bpf_get_smp_processor_id, bpf_ktime_get_ns};
use aya_ebpf::macros::map;
use aya_ebpf::maps::Array;
use tidegate_abi::kernel::counter::{RUNS, TIMED, TIMED_NS, WORDS, is_timed};

use crate::record::add;

/// One record for each CPU; the agent sets how many.
#[map]
static COUNTERS: Array<[u64; WORDS]> =
    Array::with_max_entries(1, aya_ebpf::bindings::BPF_F_MMAPABLE);

/// A program that runs on a scheduler event.
pub struct Run {
    /// The CPU it runs on.
    pub cpu: u32,
    /// When it began, if it is one of those that are timed, ns; 0 if not.
    began_ns: u64,
}

impl Run {
    /// Begins: counts the run, and times some.
    #[inline(always)]
    pub fn begin() -> Self {
        // SAFETY: the helper takes nothing and fails never.
        let cpu = unsafe { bpf_get_smp_processor_id() };
        let mut began_ns = 0;
        if let Some(record) = COUNTERS.get_ptr_mut(cpu) {
            add(record, RUNS, 1);
            // SAFETY: the lookup gave the record, and the word is one of its constants.
            if is_timed(unsafe { *record.cast::<u64>().add(RUNS) }) {
                began_ns = now_ns();
            }
        }
        Self { cpu, began_ns }
    }

    /// The time of the event. It is the dearest part of a program, so only those ask that need it.
    #[inline(always)]
    pub fn now_ns(&self) -> u64 {
        if self.began_ns == 0 {
            now_ns()
        } else {
            self.began_ns
        }
    }

    /// Ends.
    #[inline(always)]
    pub fn end(self) {
        if self.began_ns == 0 {
            return;
        }
        if let Some(record) = COUNTERS.get_ptr_mut(self.cpu) {
            add(record, TIMED, 1);
            add(record, TIMED_NS, now_ns().wrapping_sub(self.began_ns));
        }
    }
}

#[inline(always)]
fn now_ns() -> u64 {
    // SAFETY: the helper takes nothing and fails never.
    unsafe { bpf_ktime_get_ns() }
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
