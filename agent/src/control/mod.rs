//! The control loop: what the tick does with each scope.
//!
//! # Use
//! ```no_run
//! use std::time::Duration;
//! use tidegate_agent::control::{Driver, Plan, start};
//! use tidegate_agent::procfs::Roots;
//! use tidegate_agent::signal::{PressureTriggers, Sampler};
//!
//! # fn main() -> std::io::Result<()> {
//! # let pages = Vec::new();
//! // `pages` holds the tick's role on each tenant's board, with the ledger that goes with it.
//! let (driver, handle) = Driver::new(Sampler::new(Roots::default()), pages, Plan::default());
//! let triggers = PressureTriggers::arm(true, &Roots::default());
//! let ticking = start(driver, triggers, Duration::from_millis(100), |_late| {})?;
//! let snapshot = handle.snapshot(); // for status and metrics
//! assert!(snapshot.scopes.iter().any(|scope| &*scope.name == "host"));
//! ticking.stop();
//! # Ok(())
//! # }
//! ```
//!
//! # Inside
//! `thread` wakes at absolute times, or earlier when a pressure trigger fires, and takes down how late it was · `driver` is one tick: take
//! `request`s out of the `mailbox`, sample, and for each `scope` turn readings and `counts` into a sample of the law
//! (`measure`, `declared_cpus`), step the law, divide its limit (`fairness`), publish; then `clock_watch` and the heartbeat · `listeners` looks at accept queues · `plan` says which
//! settings a scope has, `configured` and `missed` which scopes have no group, `scope_finder` which scope a process is in, `group_path` which group is below which · `snapshot` is what others read of it all.
//!
//! The tick allocates nothing and waits for nobody: a reader that holds the snapshot makes it keep
//! the old one for a tick, and requests and events go through bounded queues. Only a new scope
//! allocates.

mod clock_watch;
mod configured;
mod counts;
mod declared_cpus;
mod driver;
mod fairness;
mod group_path;
mod held_nodes;
mod lateness;
mod listeners;
mod mailbox;
mod measure;
mod missed;
mod pages;
mod plan;
mod request;
mod scheduling;
mod scope;
mod scope_finder;
mod services_cpu;
mod snapshot;
mod stepped;
mod tenant_laws;
mod thread;
mod tick_time;

pub use clock_watch::ClockWatch;
pub use configured::{ConfiguredScope, DeclaredCpus, WithoutGroup};
pub use driver::Driver;
pub use mailbox::Handle;
pub use measure::WaiterRung;
pub use pages::TenantPages;
pub use plan::{DeclaredGroup, Plan, Weights};
pub use request::{Event, HeldResource, Overrun};
pub use scheduling::Scheduling;
pub use scope_finder::ScopeFinder;
pub use snapshot::{ScopeSnapshot, Snapshot, Triggers};
pub use thread::{Ticking, start};
