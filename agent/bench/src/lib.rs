//! What a decision costs on this machine, measured through the same pages, gate and doors that
//! services use.
//!
//! Every figure is the median of several runs; one that cannot be measured here says why. Those of one thread
//! are of moments in which it had its core to itself: see `own_core`.
#![forbid(unsafe_code)]

mod child;
mod cpus;
mod crowd;
mod decision;
mod door;
mod ebpf;
mod echo;
mod figure;
mod own_core;
mod pages;
mod pass;
mod publish;
mod rules;
mod service;
mod share;
mod tick;
mod timing;

pub use child::{Role, SUBCOMMAND};
pub use crowd::SleepingProcesses;
pub use figure::{Allocations, BenchReport, Figure, NoFigure};

/// Measures everything; takes about half a minute, and some minutes where the cores are hardly ever free.
pub fn run(allocations: Allocations) -> BenchReport {
    let clocks = timing::Clocks::find();
    own_core::look_around();
    let mut figures = own_core::twice_if_mistaken(|| {
        let mut figures = decision::figures(&clocks, allocations);
        figures.extend(rules::figures(&clocks));
        figures
    });
    figures.extend(share::figures(&clocks));
    figures.extend(publish::figures(&clocks));
    figures.push(echo::figure());
    figures.extend(door::figures());
    figures.extend(tick::figures(allocations));
    BenchReport {
        clock: clocks.name(),
        figures,
    }
}

/// Measures what programs in the kernel cost; takes some seconds and needs root.
pub fn run_ebpf() -> BenchReport {
    BenchReport {
        clock: timing::Clocks::find().name(),
        figures: ebpf::figures(),
    }
}

/// Plays a role on the socket that is this process's standard input, until the other side ends.
///
/// # Errors
/// Whatever kept it from its part.
pub fn serve(role: Role) -> Result<(), NoFigure> {
    let line = child::line_of_parent()?;
    match role {
        Role::Echo => echo::answer(&line),
        Role::Decide => share::decide(&line),
        Role::Watch => publish::watch(&line),
    }
}
