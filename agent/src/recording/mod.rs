//! What every tick measured, on disk: for `tidegate replay`.
//!
//! # Format
//! Lines of JSON, one thing each ([`line::Line`]). The same lines may be written by hand:
//!
//! ```json
//! {"start":{"version":1,"part":0}}
//! {"about":"a service that is half busy, then full"}
//! {"config":"[cpu]\nenabled = false\n"}
//! {"scope":{"place":1,"name":"orders","cgroup":"/orders","new":true}}
//! {"tick":{"scope":1,"cpus":2,"busy":0.5,"passed":10,"successes":10,"rt_ns":100000000,"times":50}}
//! {"repeat":{"times":600,"ticks":[{"busy":0.79,"times":10},{"busy":0.81,"times":10}]}}
//! {"expect":{"scope":1,"state":"healthy","changes":[0,1]}}
//! ```
//!
//! # Files
//! `samples.jsonl` grows to half of the size that is set, then becomes `samples.1.jsonl` in place of
//! the older half. Each file begins with a start line, the configuration and the scopes, so each can
//! be read alone. Whoever is killed in the middle of a write leaves half a line; readers pass over
//! it and the next life of the agent begins a new one.
//!
//! # Threads
//! The tick puts a record of plain values into a bounded queue ([`Tap`]); it neither allocates nor
//! waits, and a record that finds no room is counted. The thread `recorder` empties the queue and
//! writes ([`Recorder`]). What cannot be written is counted too, and never ends the agent.

pub mod line;
mod read;
mod recorder;
mod ring;

pub use read::{ReadError, Reader};
pub use recorder::{Notes, PendingRecords, Recorder, Tap, TickRecord, tap};
pub use ring::{NEWER, OLDER};

/// Version of the format.
pub const VERSION: u32 = 1;
