//! The constants of the programs, for this kernel and these mounts.

use super::btf::{Btf, BtfFault};

/// A constant by its name in `ebpf/src/offset.rs`.
pub(super) type Constant = (&'static str, u32);

/// Fields that all rungs with types need.
const FIELDS: &[(&str, &str, &str)] = &[
    ("TASK_PID", "task_struct", "pid"),
    ("TASK_ON_CPU", "task_struct", "on_cpu"),
    ("TASK_CGROUPS", "task_struct", "cgroups"),
    ("TASK_CFS_RQ", "task_struct", "se.cfs_rq"),
    ("SET_UNIFIED", "css_set", "dfl_cgrp"),
    ("STATE_GROUP", "cgroup_subsys_state", "cgroup"),
    ("GROUP_NODE", "cgroup", "kn"),
    ("NODE_ID", "kernfs_node", "id"),
    ("CFS_RQ_RQ", "cfs_rq", "rq"),
    ("RQ_RUNNING", "rq", "nr_running"),
    ("RQ_CLOCK", "rq", "clock"),
    ("RQ_CLOCK_FLAGS", "rq", "clock_update_flags"),
];

/// A pointer of the kernel, in bytes.
const POINTER: u32 = 8;
/// What the tracepoint of a switch hands over where it tells the state of the task that leaves.
const WITH_STATE: usize = 4;

/// What the programs on typed tracepoints need. `by_cpu_controller` says whose groups count: those
/// of the cpu controller's own hierarchy, or those of the unified one.
pub(super) fn typed(btf: &Btf<'_>, by_cpu_controller: bool) -> Result<Vec<Constant>, BtfFault> {
    let mut constants = Vec::with_capacity(FIELDS.len());
    for (constant, of, field) in FIELDS {
        constants.push((*constant, btf.offset(of, field)?));
    }
    if by_cpu_controller {
        let first = btf.offset("css_set", "subsys")?;
        let number = btf.value("cgroup_subsys_id", "cpu_cgrp_id")?;
        let place = number.saturating_mul(POINTER).saturating_add(first);
        constants.push(("SET_CPU", place));
    }
    constants.push(("BY_CPU_CONTROLLER", by_cpu_controller.into()));
    // Moved into `thread_info` with kernel 5.16.
    let cpu = btf.offset("task_struct", "thread_info.cpu");
    let cpu = cpu.or_else(|_absent| btf.offset("task_struct", "cpu"))?;
    constants.push(("TASK_CPU", cpu));
    let tells_state = btf.arguments("sched_switch")? >= WITH_STATE;
    constants.push(("TELLS_STATE", tells_state.into()));
    if !tells_state {
        // Called `state` before kernel 5.14.
        let state = btf.offset("task_struct", "__state");
        let state = state.or_else(|_absent| btf.offset("task_struct", "state"))?;
        constants.push(("TASK_STATE", state));
    }
    Ok(constants)
}

/// What the cheaper program needs besides: a kernel that keeps account itself.
pub(super) fn sched_info(btf: &Btf<'_>) -> Result<Constant, BtfFault> {
    let queued = btf.offset("task_struct", "sched_info.last_queued")?;
    Ok(("TASK_LAST_QUEUED", queued))
}

/// Where a plain tracepoint keeps a field, from the `format` file that tracefs has for it.
pub(super) fn plain(format: &str, field: &str) -> Option<u32> {
    let line = format.lines().find(|line| {
        let declared = line.split(';').next().unwrap_or_default();
        declared.split_whitespace().next_back() == Some(field)
    })?;
    let offset = line
        .split(';')
        .find_map(|part| part.trim().strip_prefix("offset:"))?;
    offset.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "\
name: sched_switch
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;

\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;
";

    #[test]
    fn a_plain_field_is_where_its_line_says() {
        assert_eq!(plain(SWITCH, "prev_pid"), Some(24));
        assert_eq!(plain(SWITCH, "prev_state"), Some(32));
        assert_eq!(plain(SWITCH, "next_pid"), None);
        assert_eq!(plain("field:pid_t prev_pid;\toffset:x;", "prev_pid"), None);
    }
}
