//! How long tasks wait for a CPU: from the moment they could run to the moment they do.
//!
//! Traps that this stands for: the group is that of the task, never that of who woke it; at a
//! switch the present task is still the one that leaves; a task that leaves and could go on waits
//! again from now; pid 0 is no task.

use aya_ebpf::bindings::BPF_F_MMAPABLE;
use aya_ebpf::macros::{btf_tracepoint, map};
use aya_ebpf::maps::Array;
use aya_ebpf::programs::BtfTracePointContext;
use tidegate_abi::kernel::counter::WAITS_LOST;
use tidegate_abi::kernel::runqueue::{WAITED_NS, WORDS, bucket};

use crate::account::{Run, count};
use crate::clock::Queue;
use crate::offset::{CPUS, TASK_CPU, TASK_ON_CPU, TASK_PID, TASK_STATE, TELLS_STATE, field};
use crate::record::add;
use crate::task::{Place, Wait};
use crate::{preempt, slot};

/// One record for each slot and CPU; the agent sets how many.
#[map]
static RUNQUEUE: Array<[u64; WORDS]> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The record of a slot on a CPU.
#[inline(always)]
pub fn record(slot: u32, cpu: u32) -> Option<*mut [u64; WORDS]> {
    RUNQUEUE.get_ptr_mut(slot.wrapping_mul(CPUS.load()).wrapping_add(cpu))
}

/// A wait has ended.
#[inline(always)]
pub fn waited(slot: u32, cpu: u32, wait_ns: u64) {
    if let Some(record) = record(slot, cpu) {
        add(record, WAITED_NS, wait_ns);
        let bucket = bucket(wait_ns);
        // SAFETY: the lookup gave the record, whose first half is a number of 32 bits for each bucket. Only
        // this CPU writes it, without interrupts.
        unsafe {
            let bucket = record.cast::<u32>().add(bucket as usize);
            *bucket = (*bucket).wrapping_add(1);
        }
    }
}

#[inline(always)]
fn wake(context: &BtfTracePointContext, is_new: bool) -> Option<()> {
    let task: *const u8 = context.arg(0);
    // SAFETY: the tracepoint hands over a task.
    let run = Run::begin_for(unsafe { field(task, &TASK_CPU) })?;
    // A task that was about to sleep and still runs does not wait. If it has to make way, its wait begins then.
    // SAFETY: as above.
    let runs = unsafe { field::<u32>(task, &TASK_ON_CPU) } != 0;
    // SAFETY: as above.
    if !runs && let Some(place) = Place::of(unsafe { field(task, &TASK_PID) }) {
        // SAFETY: as above.
        place.woken(unsafe { Queue::of(task) }.woken_ns(run.record, is_new));
    }
    run.end();
    Some(())
}

/// A task that slept can run.
#[btf_tracepoint(function = "sched_wakeup")]
pub fn sched_wakeup(context: BtfTracePointContext) -> i32 {
    wake(&context, false);
    0
}

/// A new task can run.
#[btf_tracepoint(function = "sched_wakeup_new")]
pub fn sched_wakeup_new(context: BtfTracePointContext) -> i32 {
    wake(&context, true);
    0
}

/// A task is gone: its place is free.
#[btf_tracepoint(function = "sched_process_exit")]
pub fn sched_process_exit(context: BtfTracePointContext) -> i32 {
    let task: *const u8 = context.arg(0);
    // SAFETY: the tracepoint hands over a task.
    if let Some(place) = Place::of(unsafe { field(task, &TASK_PID) }) {
        place.slept();
    }
    0
}

/// One task leaves the CPU and another takes it.
#[btf_tracepoint(function = "sched_switch")]
pub fn sched_switch(context: BtfTracePointContext) -> i32 {
    if let Some(run) = Run::begin() {
        switch(&context, &run);
        run.end();
    }
    0
}

#[inline(always)]
fn switch(context: &BtfTracePointContext, run: &Run) {
    let (prev, next): (*const u8, *const u8) = (context.arg(1), context.arg(2));
    // SAFETY: the tracepoint hands over two tasks.
    let (prev_pid, next_pid): (u32, u32) =
        unsafe { (field(prev, &TASK_PID), field(next, &TASK_PID)) };
    let leaves = prev_pid != 0 && can_run(context, prev);
    // One goes to sleep and the CPU with it: no wait begins or ends.
    if next_pid == 0 && !leaves {
        return;
    }
    // SAFETY: as above.
    let now_ns = unsafe { Queue::of(next) }.switched_ns(run.record);
    let mut next_slot = None;
    if next_pid != 0
        && let Some(place) = Place::of(next_pid)
    {
        match place.begins(now_ns) {
            Wait::Ended(wait_ns) => {
                // SAFETY: as above.
                let slot = unsafe { place.slot(next, now_ns) };
                next_slot = Some(slot);
                waited(slot, run.cpu, wait_ns);
            }
            Wait::Lost => _ = count(WAITS_LOST),
            Wait::Unknown => {}
        }
    }
    if leaves && let Some(place) = Place::of(prev_pid) {
        place.waits(now_ns);
        // The idle task takes nothing from anybody: who makes way for it is held by a quota.
        if next_pid != 0 {
            // SAFETY: as above.
            let by = next_slot.unwrap_or_else(|| unsafe { slot::of_task(next) });
            // SAFETY: as above.
            preempt::count(unsafe { place.slot(prev, now_ns) }, by, run.cpu);
        }
    }
}

/// Whether the task that leaves could go on: it was preempted, or gave its turn away.
#[inline(always)]
fn can_run(context: &BtfTracePointContext, prev: *const u8) -> bool {
    // A task that was about to sleep and is preempted before it did stays on the run queue.
    let preempted: u64 = context.arg(0);
    let state: u32 = if TELLS_STATE.load() == 1 {
        context.arg(3)
    } else {
        // SAFETY: the tracepoint hands over a task.
        unsafe { field(prev, &TASK_STATE) }
    };
    preempted & 1 == 1 || state == 0
}
