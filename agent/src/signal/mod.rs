//! Signals told truthfully: each is a finite number or the reason why there is none.
//!
//! # Use
//! ```
//! use tidegate_abi::signal::SignalId;
//! use tidegate_agent::signal::{Roots, Sampler};
//!
//! let mut sampler = Sampler::new(Roots::default()); // once, on the sampler's thread
//! let own = sampler.watch_own();                    // once for each group to watch
//! sampler.sample(1_000_000_000);                    // each tick, with monotonic time
//! sampler.sample(1_100_000_000);
//! match sampler.host().get(SignalId::Cpu).get() {
//!     Ok(share) => assert!(share >= 0.0),
//!     Err(missing) => assert!(!missing.to_string().is_empty()), // "/proc/stat: first sample; …"
//! }
//! if let Some(group) = own.ok().and_then(|key| sampler.group(key)) {
//!     let _effective_cpus = group.readings().value(SignalId::EffectiveCpus);
//! }
//! ```
//! [`Sampler::watch_process`] takes the pid of a connected service, [`Sampler::watch_pattern`] a path
//! or pattern from the configuration, whose groups are looked for each second; both lead to a
//! [`GroupKey`], the same for the same group. A group that disappears is dropped by the sample that
//! misses it, and [`Sampler::group`] then answers `None`; when it comes back it has a new key, so
//! that state kept for the old one cannot be taken for its own.
//!
//! # Inside
//! From the bottom: `parse` (bytes to values, pure) · `kept_file`, `directory` (bytes and names without
//! allocating) · `meter` (counters to rates) · `truth` (which file tells what on which layout: the one
//! table) · `layout`, `pattern` (where the files of a group are) · `pressure`, `host`, `cgroup` (values to
//! readings) · `runqueue`, `kernel` (what the
//! programs in the kernel tell) · `groups`, `sampler` (the tick). Beside it `pressure_trigger`: what ends the
//! wait for a tick early.
//!
//! A new signal is a row in `tidegate_abi::signal`, a row in `truth`, and a line in `host` or `cgroup`
//! that fills it.

mod accept_queue;
mod cause;
mod cgroup;
mod directory;
#[cfg(test)]
mod fixture;
#[cfg(fuzzing)]
pub mod fuzz;
mod group_finder;
mod groups;
mod host;
mod jvm;
mod kept_file;
mod kernel;
mod layout;
#[cfg(test)]
mod layout_tests;
mod load;
mod meter;
mod parse;
mod pattern;
mod pressure;
mod pressure_trigger;
mod processes;
mod reading;
#[cfg(test)]
mod refusal_tests;
mod remedy;
#[cfg(test)]
mod report_tests;
mod roots;
mod runqueue;
mod same_processes;
mod sampler;
mod truth;
mod view;

pub use accept_queue::AcceptQueues;
pub use cgroup::{CpusBusy, Limiter};
pub(crate) use directory::open_below;
pub use group_finder::GroupFinder;
pub use groups::{GROUPS_MAX, Group, GroupKey, PatternKey};
pub use host::online_cpus;
pub(crate) use jvm::names_jvm;
pub(crate) use layout::{Layout, readable};
pub use pattern::{GroupPattern, PatternFault};
pub use pressure_trigger::{
    Fired, Pressure, PressureTriggers, TriggerForm, TriggerRefusal, TriggerStates,
};
pub use processes::{ThreadGroup, TopThreads};
pub use reading::{Fault, Missing, Reading, Readings};
pub(crate) use roots::CGROUP_ROOT;
pub use roots::Roots;
pub use runqueue::Neighbour;
pub use sampler::Sampler;
