//! Programs in the kernel: run-queue waits and lengths of each group, who takes the CPU from whom,
//! and the pauses of JVMs. The one place that names the loader.
//!
//! # Use
//! ```no_run
//! use tidegate_agent::ebpf::{self, EbpfSettings};
//! use tidegate_agent::procfs::Roots;
//! use tidegate_agent::signal::Sampler;
//!
//! # fn main() -> std::io::Result<()> {
//! let roots = Roots::default();
//! let (telemetry, tick_end) = ebpf::start(EbpfSettings::default(), &roots)?;
//! let mut sampler = Sampler::new(roots);
//! sampler.take_kernel(tick_end); // its samples hold what the programs tell, once they run
//! assert!(!telemetry.report().reason().is_empty());
//! telemetry.stop(); // and the programs are gone
//! # Ok(())
//! # }
//! ```
//! The agent never waits for it: programs are loaded by a thread of their own, and each reading says
//! why it is missing until then, or for ever.
//!
//! # Inside
//! Pure: `btf`, `offsets` (types of this kernel to constants) · `outline` (the few that the loader needs) · `usdt` (notes to probes) · `pauses`,
//! `pause_book` (records to pauses) · `budget` (counters to cost) · `watch` (groups to slots).
//! Doors: `host` (what may be loaded here) · `room` (whether it fits into the memory of the own group) · `program` (loads and attaches) · `view` (mapped words) ·
//! `jvm` (finds libraries) · `thread` (does it all, once a second).
//! `rung` is the ladder, `report` what others read. What the maps hold is `tidegate_abi::kernel`, the
//! programs are in `ebpf/src`.

mod bench;
mod btf;
mod budget;
mod host;
mod jvm;
#[cfg(test)]
mod object_tests;
mod offsets;
mod outline;
mod pause_book;
mod pauses;
mod program;
mod report;
mod room;
mod rung;
mod thread;
#[cfg(test)]
mod unified_tests;
mod usdt;
mod view;
mod watch;
mod worker;

pub use bench::{Measuring, ProgramStats};
pub use report::{PauseTable, PauseTotals, ProgramReport};
pub use rung::{MissedRung, Rung};
pub use thread::{EbpfSettings, Telemetry, TickEnd, start};
pub use view::Counters;
#[cfg(test)]
pub(crate) use view::Extent;
pub(crate) use view::{Histogram, View};
pub(crate) use watch::Watched;
