#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![expect(
    clippy::inline_always,
    reason = "the way of a decision is one function to the machine, in the service too"
)]

mod admitted;
mod ask;
mod asker;
mod client;
mod connection;
mod current;
mod entry;
mod entry_request;
mod error;
mod inner;
mod keeper;
mod leftover;
mod life;
mod listeners;
mod long_permits;
mod observer;
#[cfg(feature = "http")]
mod origin;
mod overflow;
mod pages;
mod parts;
mod pending;
mod permit;
#[cfg(feature = "http")]
mod problem;
mod question;
mod refused;
mod resource;
mod run;
mod seat;
mod session;
mod slot_word;
mod status;
#[cfg(feature = "tower")]
pub mod tower;
mod way;

#[cfg(test)]
mod api_tests;
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

pub use ask::Ask;
pub use client::{Builder, Client, OnMissingAgent};
pub use entry_request::EntryRequest;
pub use error::{ConnectError, ConnectErrorKind, ListenerError, NameError};
pub use observer::Observer;
#[cfg(feature = "tracing")]
pub use observer::SpanField;
#[cfg(feature = "http")]
pub use origin::origin_of;
pub use permit::Permit;
pub use refused::Refused;
pub use resource::Resource;
pub use run::RunError;
pub use status::{Status, Transport};
pub use tidegate_abi::NameFault;
pub use tidegate_abi::argument;
pub use tidegate_abi::decision::{Class, Direction, Outcome, Reason, RefusalKind};
pub use tidegate_segment::gate::Arg;
