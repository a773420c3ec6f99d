//! Who took the CPU from whom, in pairs of slots.

use aya_ebpf::bindings::BPF_F_MMAPABLE;
use aya_ebpf::macros::map;
use aya_ebpf::maps::Array;
use tidegate_abi::kernel::runqueue::pair;

use crate::offset::{CPUS, SLOTS};

/// One word for each pair and CPU; the agent sets how many.
#[map]
static PREEMPTED: Array<u64> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// A task of slot `victim` could go on and had to make way for one of slot `by`.
#[inline(always)]
pub fn count(victim: u32, by: u32, cpu: u32) {
    let pair = pair(victim, by, cpu, SLOTS.load(), CPUS.load());
    if let Some(word) = PREEMPTED.get_ptr_mut(pair) {
        // SAFETY: the lookup gave the word, and only this CPU writes it, without interrupts.
        unsafe { *word = (*word).wrapping_add(1) };
    }
}
