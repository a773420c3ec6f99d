//! The machine that the lab runs on: its CPUs, its control groups, the processes that the lab starts.

pub(crate) mod cpu;
pub(crate) mod group;
pub(crate) mod interrupt;
pub(crate) mod process;
pub(crate) mod readiness;
pub(crate) mod wait;
