#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(
    any(tidegate_stub, not(target_os = "linux")),
    expect(
        dead_code,
        reason = "nothing is decided here, so much is not asked for"
    )
)]
#![expect(
    clippy::inline_always,
    reason = "the way of a decision is one function to the machine, in the service too"
)]

#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod admitted;
mod ask;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod asker;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod client;
mod connect_error_kind;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod connect_fault;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod connection;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod current;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod entry;
mod entry_request;
mod error;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod inner;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod keeper;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod leftover;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod life;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod listeners;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod long_permits;
mod observer;
#[cfg(feature = "http")]
mod origin;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod overflow;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod pages;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod parts;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod pending;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod permit;
#[cfg(feature = "http")]
mod problem;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod question;
mod refused;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod resource;
mod run;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod seat;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod session;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod slot_word;
mod status;
#[cfg(any(tidegate_stub, not(target_os = "linux")))]
mod stub;
#[cfg(feature = "tower")]
pub mod tower;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
mod way;

#[cfg(all(target_os = "linux", not(tidegate_stub)))]
#[cfg(test)]
mod api_tests;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
#[cfg(test)]
mod asker_tests;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
#[cfg(test)]
mod fork_tests;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
#[cfg(test)]
mod test_agent;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
#[cfg(test)]
mod test_rules;
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
#[cfg(test)]
mod tests;

#[cfg(any(tidegate_stub, not(target_os = "linux")))]
use stub::{client, connect_fault, permit, resource, session};

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
pub use tidegate_abi::argument::Arg;
pub use tidegate_abi::decision::{Class, Direction, Outcome, Reason, RefusalKind};
