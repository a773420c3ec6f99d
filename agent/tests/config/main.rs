//! Configuration and rules, from files to typed values.
#![expect(clippy::unwrap_used, reason = "a test ends where its set-up fails")]

mod any_bytes;
mod bad_input;
mod given;
mod golden;
mod layers;
mod reload;
mod rules;
mod sentinel_files;
mod sentinel_rules;
mod sentinel_spellings;
mod shipped;
mod watch;
