//! How long run queues are: a look 99 times a second on each CPU.
//!
//! An idle CPU is not woken for it; the agent takes looks that did not come for looks at nothing.

use aya_ebpf::Global;
use aya_ebpf::helpers::generated::bpf_get_current_task;
use aya_ebpf::helpers::{bpf_get_smp_processor_id, bpf_probe_read_kernel};
use aya_ebpf::macros::perf_event;
use aya_ebpf::programs::PerfEventContext;
use tidegate_abi::kernel::runqueue::{LENGTHS, SAMPLES};

use crate::offset::{
    BY_CPU_CONTROLLER, CFS_RQ_RQ, GROUP_NODE, NODE_ID, RQ_RUNNING, SET_CPU, SET_UNIFIED,
    STATE_GROUP, TASK_CFS_RQ, TASK_CGROUPS, TASK_PID,
};
use crate::record::add;
use crate::runqueue::record;
use crate::slot;

/// Looks at the run queue of this CPU.
#[perf_event]
pub fn runqueue_sample(_context: PerfEventContext) -> u32 {
    // What cannot be read counts as a look that did not come.
    _ = look();
    0
}

#[inline(always)]
fn look() -> Result<(), i32> {
    // SAFETY: the helper takes nothing and fails never.
    let task = unsafe { bpf_get_current_task() } as *const u8;
    if read::<u32>(task, &TASK_PID)? == 0 {
        return Ok(());
    }
    let queue = read(read(task, &TASK_CFS_RQ)?, &CFS_RQ_RQ)?;
    let running: u32 = read(queue, &RQ_RUNNING)?;
    // SAFETY: as above.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    if let Some(record) = record(slot::of_group(group(task)?), cpu) {
        add(record, SAMPLES, 1);
        add(record, LENGTHS, u64::from(running));
    }
    Ok(())
}

/// Id of the group that a task is in.
#[inline(always)]
fn group(task: *const u8) -> Result<u64, i32> {
    let set = read(task, &TASK_CGROUPS)?;
    let group = if BY_CPU_CONTROLLER.load() == 1 {
        read(read(set, &SET_CPU)?, &STATE_GROUP)?
    } else {
        read(set, &SET_UNIFIED)?
    };
    read(read(group, &GROUP_NODE)?, &NODE_ID)
}

/// Reads a field by address: this program gets no pointer that the verifier follows.
#[inline(always)]
fn read<T>(base: *const u8, offset: &Global<u32>) -> Result<T, i32> {
    // SAFETY: the helper checks that the address can be read.
    unsafe { bpf_probe_read_kernel(base.add(offset.load() as usize).cast::<T>()) }
}
