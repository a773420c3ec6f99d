//! The `tidegate` binary.

use std::alloc::System;
use std::process::ExitCode;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// Counts allocations, so that the bench can show that a decision makes none.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> ExitCode {
    tidegate_agent::command::main(|| {
        let stats = ALLOCATOR.stats();
        let made = stats.allocations.saturating_add(stats.reallocations);
        u64::try_from(made).ok()
    })
}
