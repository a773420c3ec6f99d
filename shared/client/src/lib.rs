//! What a Rust service links to ask before it works.
//!
//! [`Client::connect`] finds the agent, maps its pages and keeps the connection in a background
//! thread. A [`Resource`] is a named piece of work; [`Resource::enter`] decides in nanoseconds,
//! without a system call, a lock or an allocation, and gives a [`Permit`] or a [`Refused`].
//!
//! ```no_run
//! use tidegate_client::Client;
//!
//! # fn create_order() -> Result<(), std::io::Error> { Ok(()) }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect()?;
//! let orders = client.resource("order-create")?;
//! match orders.enter() {
//!     Ok(permit) => match create_order() {
//!         Ok(()) => permit.ok(),
//!         Err(_failed) => permit.error(),
//!     },
//!     Err(refused) => println!("{refused}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Without a seat
//! An agent that cannot see a process (another pid namespace), or has no seat left, gives it no pages.
//! The same calls ask the agent over its socket then, one at a time and each within 50 ms; what gets no
//! answer is admitted and counted ([`Status::open`]), and the background thread connects anew. Where a rule lets a
//! request wait for its turn, the answer says how long: its thread or task waits, others ask meanwhile, and
//! another round trip decides. [`Status::door`] says which it is. Here a permit costs a round trip when it is
//! taken and another when it is given back.
//!
//! # Rules that let wait
//! A rule that paces, and borrowing, hold a request back until its turn. [`Resource::enter`] sleeps in its thread until
//! then; [`Resource::enter_async`] and the layer in `tower` let the task wait and take the timer of
//! whatever runtime there is. [`Ask::wait_at_most`] bounds the wait of a request, `max_queueing_time` of a rule
//! that of all. Without a seat the agent holds the request back: an answer that takes longer than 50 ms is
//! not waited for.
//!
//! # Requests that wait at the door
//! A service with few workers holds few requests, however many wait to be accepted. Show the client the
//! listening sockets ([`Client::watch_listener`]), and what waits there counts as well.
//!
//! # When the agent is not there
//! A client that has never met an agent admits everything, and counts that ([`Status::open`]). One
//! that has lost its agent goes on deciding on the agent's last pages: rules stay in force, adaptive
//! limits follow the agent's `agent_loss` settings. In both cases the background thread connects as
//! soon as there is an agent again.
//!
//! # Fork
//! A forked process never touches the permits of its parent: those it inherited do nothing when they
//! are dropped, and at its first decision it connects for itself.
#![forbid(unsafe_code)]
#![expect(
    clippy::inline_always,
    reason = "the way of a decision is one function to the machine, in the service too"
)]

mod admitted;
mod asker;
mod client;
mod connection;
mod current;
mod entry;
mod error;
mod inner;
mod keeper;
mod life;
mod listeners;
mod long_permits;
mod overflow;
mod pages;
mod parts;
mod pending;
mod permit;
mod question;
mod refused;
mod resource;
mod seat;
mod session;
mod slot_word;
mod status;
#[cfg(feature = "tower")]
pub mod tower;
mod way;

#[cfg(test)]
mod asker_tests;
#[cfg(test)]
mod fork_tests;
#[cfg(test)]
mod test_agent;
#[cfg(test)]
mod test_rules;
#[cfg(test)]
mod tests;

pub use client::{Builder, Client, OnMissingAgent};
pub use error::{ConnectError, ListenerError, NameError};
pub use permit::Permit;
pub use refused::Refused;
pub use resource::{Ask, Resource};
pub use status::{Door, Status};
pub use tidegate_abi::argument;
pub use tidegate_abi::decision::{Class, Direction, Reason, RefusalKind};
pub use tidegate_segment::gate::Arg;
