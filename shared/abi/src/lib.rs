//! What the agent, its services and the kernel side share: page layout, socket messages, signals.
//!
//! Data only. Nothing here reads a clock, touches memory of another process or allocates; a value
//! that another party wrote is taken apart by masks and checked conversions, so no bit pattern can
//! panic. The byte-for-byte description is `shared/PROTOCOL.md`, pinned by a golden test.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects)]

pub mod argument;
pub mod board;
mod clock_word;
pub mod decision;
pub mod geometry;
pub mod kernel;
pub mod ledger;
pub mod list;
pub mod message;
pub mod place;
pub mod rule;
mod seat_word;
pub mod signal;

/// Version of page layout and messages; both sides must name the same one.
pub const VERSION: u32 = 1;

/// Longest resource, origin or scope name, in bytes of UTF-8.
pub const NAME_MAX: usize = 255;

/// Why a name cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameFault {
    /// No bytes at all.
    Empty,
    /// More than [`NAME_MAX`] bytes.
    TooLong,
    /// Not UTF-8.
    NotUtf8,
    /// Holds a control character.
    Control,
}

impl NameFault {
    /// What is wrong and what is allowed, for the message to a caller.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Empty => "is empty; a name has 1 to 255 bytes",
            Self::TooLong => "is longer than 255 bytes; a name has 1 to 255 bytes",
            Self::NotUtf8 => "is not UTF-8; a name is UTF-8 text of 1 to 255 bytes",
            Self::Control => "holds a control character; a name is printable UTF-8 text",
        }
    }
}

/// Checks a name that came from outside.
///
/// # Errors
/// The first fault found, see [`NameFault`].
pub fn check_name(bytes: &[u8]) -> Result<&str, NameFault> {
    if bytes.is_empty() {
        return Err(NameFault::Empty);
    }
    if bytes.len() > NAME_MAX {
        return Err(NameFault::TooLong);
    }
    let text = core::str::from_utf8(bytes).map_err(|_not_utf8| NameFault::NotUtf8)?;
    if text.chars().any(char::is_control) {
        return Err(NameFault::Control);
    }
    Ok(text)
}
