//! The same for kernels that do not describe their types: plain tracepoints, which name tasks by pid.
//!
//! They tell nothing of a task's group, so the agent says which slot a task counts in.

use aya_ebpf::Global;
use aya_ebpf::macros::{map, tracepoint};
use aya_ebpf::maps::Array;
use aya_ebpf::programs::TracePointContext;
use tidegate_abi::kernel::counter::WAITS_LOST;
use tidegate_abi::kernel::group::ELSEWHERE;
use tidegate_abi::kernel::task::{self, PLACES};

use crate::account::{Run, count, now_ns};
use crate::offset::{
    EVENT_SWITCH_NEXT_PID, EVENT_SWITCH_PREV_PID, EVENT_SWITCH_PREV_STATE, EVENT_WAKEUP_PID,
};
use crate::preempt;
use crate::runqueue::waited;
use crate::task::{Place, Wait};

/// The slot of each task that is in a watched group; the agent writes it.
#[map]
static TASK_SLOTS: Array<u64> = Array::with_max_entries(PLACES, 0);

#[inline(always)]
fn slot_of(pid: u32) -> u32 {
    match TASK_SLOTS.get(task::place(pid)) {
        Some(word) if *word >> 32 == u64::from(pid) => *word as u32,
        _ => ELSEWHERE,
    }
}

#[inline(always)]
fn read<T: Copy>(context: &TracePointContext, offset: &Global<u32>) -> T
where
    T: Default,
{
    // SAFETY: the helper checks that the place can be read.
    unsafe { context.read_at(offset.load() as usize) }.unwrap_or_default()
}

#[inline(always)]
fn wake(context: &TracePointContext) -> u32 {
    if let Some(run) = Run::begin() {
        if let Some(place) = Place::of(read(context, &EVENT_WAKEUP_PID)) {
            place.woken(now_ns());
        }
        run.end();
    }
    0
}

/// A task that slept can run.
#[tracepoint(category = "sched", name = "sched_wakeup")]
pub fn plain_wakeup(context: TracePointContext) -> u32 {
    wake(&context)
}

/// A new task can run.
#[tracepoint(category = "sched", name = "sched_wakeup_new")]
pub fn plain_wakeup_new(context: TracePointContext) -> u32 {
    wake(&context)
}

/// One task leaves the CPU and another takes it.
#[tracepoint(category = "sched", name = "sched_switch")]
pub fn plain_switch(context: TracePointContext) -> u32 {
    if let Some(run) = Run::begin() {
        switch(&context, run.cpu);
        run.end();
    }
    0
}

#[inline(always)]
fn switch(context: &TracePointContext, cpu: u32) {
    let now_ns = now_ns();
    let prev_pid: u32 = read(context, &EVENT_SWITCH_PREV_PID);
    let next_pid: u32 = read(context, &EVENT_SWITCH_NEXT_PID);
    if next_pid != 0
        && let Some(place) = Place::of(next_pid)
    {
        match place.begins(now_ns) {
            Wait::Ended(wait_ns) => waited(slot_of(next_pid), cpu, wait_ns),
            Wait::Lost => _ = count(WAITS_LOST),
            Wait::Unknown => {}
        }
    }
    if prev_pid != 0
        && let Some(place) = Place::of(prev_pid)
    {
        // The low bits are those of a sleep; a bit above them says that it was preempted.
        let state: u64 = read(context, &EVENT_SWITCH_PREV_STATE);
        let can_run = state & 0xFF == 0;
        if can_run {
            place.waits(now_ns);
            if next_pid != 0 {
                preempt::count(slot_of(prev_pid), slot_of(next_pid), cpu);
            }
        } else {
            place.slept();
        }
    }
}
