//! Where this kernel has its fields: constants that the agent sets when it loads the programs.

use aya_ebpf::Global;

/// Makes constants of one number each.
macro_rules! offsets {
    ($($(#[$doc:meta])+ $name:ident;)+) => { $(
        $(#[$doc])+
        #[unsafe(no_mangle)]
        pub static $name: Global<u32> = Global::new(0);
    )+ };
}

offsets! {
    /// `task_struct.pid`
    TASK_PID;
    /// `task_struct.thread_info.cpu`, or `task_struct.cpu`
    TASK_CPU;
    /// `task_struct.on_cpu`
    TASK_ON_CPU;
    /// `task_struct.__state`; older kernels do not hand it to the tracepoint.
    TASK_STATE;
    /// `task_struct.cgroups`
    TASK_CGROUPS;
    /// `task_struct.se.cfs_rq`
    TASK_CFS_RQ;
    /// `task_struct.sched_info.last_queued`
    TASK_LAST_QUEUED;
    /// `css_set.dfl_cgrp`: the group of the unified hierarchy
    SET_UNIFIED;
    /// `css_set.subsys[cpu]`: the state of the group that the cpu controller has
    SET_CPU;
    /// `cgroup_subsys_state.cgroup`
    STATE_GROUP;
    /// `cgroup.kn`
    GROUP_NODE;
    /// `kernfs_node.id`
    NODE_ID;
    /// `cfs_rq.rq`
    CFS_RQ_RQ;
    /// `rq.nr_running`
    RQ_RUNNING;
    /// `rq.clock`
    RQ_CLOCK;
    /// `rq.clock_update_flags`
    RQ_CLOCK_FLAGS;

    /// 1 where the cpu controller has a hierarchy of its own, and its groups count; 0 where those of
    /// the unified hierarchy do.
    BY_CPU_CONTROLLER;
    /// 1 where the tracepoint tells the state of the task that leaves, since kernel 5.18.
    TELLS_STATE;
    /// CPUs that the maps have room for.
    CPUS;
    /// Slots that the maps have room for.
    SLOTS;

    /// Places in the records of the plain tracepoints.
    EVENT_WAKEUP_PID;
    /// Likewise.
    EVENT_SWITCH_PREV_PID;
    /// Likewise.
    EVENT_SWITCH_PREV_STATE;
    /// Likewise.
    EVENT_SWITCH_NEXT_PID;
}

/// Reads a field of a struct that a tracepoint handed over, or that such a struct leads to.
///
/// # Safety
/// `base` is a pointer of that kind, so that the verifier lets it be read and the kernel makes a
/// wrong one read as zero.
#[inline(always)]
pub unsafe fn field<T: Copy>(base: *const u8, offset: &Global<u32>) -> T {
    // SAFETY: the verifier refuses an offset outside the struct. Volatile, so that the compiler does
    // not join fields, which the verifier does not follow.
    unsafe { core::ptr::read_volatile(base.add(offset.load() as usize).cast::<T>()) }
}
