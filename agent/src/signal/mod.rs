//! Signals told truthfully: each is a finite number or the reason why there is none.
//!
//! # Use
//! ```
//! use tidegate_abi::signal::SignalId;
//! use tidegate_agent::procfs::Roots;
//! use tidegate_agent::signal::Sampler;
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
//! Below it is `procfs`: where the files are, and why one tells nothing. From the bottom: `parse` (bytes to
//! values, pure) · `meter` (counters to rates) · `truth` (which file tells what on which layout: the one
//! table) · `pressure`, `host`, `cgroup` (values to
//! readings) · `runqueue`, `programs` (what the
//! programs in the kernel tell) · `groups`, `search` (which groups there are), `sampler` (the tick). Beside it `pressure_trigger`: what ends the
//! wait for a tick early.
//!
//! A new signal is a row in `tidegate_abi::signal`, a row in `truth`, and a line in `host` or `cgroup`
//! that fills it.

mod accept_queue;
mod cgroup;
#[cfg(test)]
mod fixture;
#[cfg(fuzzing)]
pub mod fuzz;
mod groups;
mod host;
mod jvm;

#[cfg(test)]
mod layout_tests;
mod load;
mod meter;
mod parse;
mod pressure;
mod pressure_trigger;
mod processes;
mod programs;
mod reading;
#[cfg(test)]
mod refusal_tests;
mod remedy;
#[cfg(test)]
mod report_tests;
mod runqueue;
mod same_processes;
mod sampler;
mod search;
#[cfg(test)]
mod search_tests;
mod truth;

pub use accept_queue::AcceptQueues;
pub use cgroup::{CpusBusy, Limiter};
pub use groups::{GROUPS_MAX, GroupKey, PatternKey, WatchedGroup};
pub use host::online_cpus;
pub use pressure_trigger::{
    FiredTriggers, Pressure, PressureTriggers, TriggerForm, TriggerRefusal, TriggerStates,
};
pub use processes::{ThreadGroup, TopThreads};
pub use reading::{Reading, Readings};
pub use runqueue::Neighbour;
pub use sampler::Sampler;
pub use search::{GroupMatches, NoGroup};
