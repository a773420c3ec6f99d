//! From a control group to its slot.

use aya_ebpf::macros::map;
use aya_ebpf::maps::Array;
use tidegate_abi::kernel::group::{ELSEWHERE, PLACES, TRIES, place, slot};

use crate::offset::{
    BY_CPU_CONTROLLER, GROUP_NODE, NODE_ID, SET_CPU, SET_UNIFIED, STATE_GROUP, TASK_CGROUPS, field,
};

/// Which slot counts for which group; the agent writes it.
#[map]
static GROUPS: Array<u64> = Array::with_max_entries(PLACES, 0);

/// The slot of a group by its id.
#[inline(always)]
pub fn of_group(id: u64) -> u32 {
    let mut attempt = 0;
    while attempt < TRIES {
        let Some(word) = GROUPS.get(place(id, attempt)) else {
            return ELSEWHERE;
        };
        if let Some(slot) = slot(*word, id) {
            return slot;
        }
        // The agent leaves no free place before a group. Most groups are in none, and that is seen at once.
        if *word == 0 {
            return ELSEWHERE;
        }
        attempt += 1;
    }
    ELSEWHERE
}

/// The slot of the tasks that have this set of groups.
///
/// # Safety
/// `set` is `task_struct.cgroups` of a task that a tracepoint handed over.
#[inline(never)]
pub unsafe fn of_set(set: *const u8) -> u32 {
    // SAFETY: each pointer is a field of the struct before it.
    let id: u64 = unsafe {
        let group: *const u8 = if BY_CPU_CONTROLLER.load() == 1 {
            field(field(set, &SET_CPU), &STATE_GROUP)
        } else {
            field(set, &SET_UNIFIED)
        };
        field(field(group, &GROUP_NODE), &NODE_ID)
    };
    of_group(id)
}

/// The slot of a task.
///
/// # Safety
/// `task` is a task that a tracepoint handed over.
#[inline(always)]
pub unsafe fn of_task(task: *const u8) -> u32 {
    // SAFETY: as the caller says.
    unsafe { of_set(field(task, &TASK_CGROUPS)) }
}
