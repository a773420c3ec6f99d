//! Limits of a scope that are the same on every machine.

/// No mark on CPU or load says anything.
pub const MARKS_OFF: &str = "
[cpu]
enabled = false
[load]
enabled = false
";

/// Limits of 40 requests under the table `law`, whatever the machine does meanwhile: nothing is learned, the CPU is
/// short from the first tick on, feedback adds nothing, and overload does not end.
#[must_use]
pub fn forty(law: &str) -> String {
    format!(
        "
[{law}.entry]
delay = \"1ms\"
least_requests = 40.0
least_qps = 0.0
[{law}.cold]
entry_per_cpu = 1.0
tight_per_cpu = 1.0
successes = 1000000.0
[{law}.tight]
delay = \"1ms\"
slack_requests = 1.0
floor_requests = 40
grow_ratio = 0.0
reach_factor = 1.0
[{law}.evidence]
ticks = 1
busy_ratio = 0.0
[{law}.release]
demand_under_ratio = 0.0
"
    )
}
