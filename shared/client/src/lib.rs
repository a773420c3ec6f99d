//! The client.
#![forbid(unsafe_code)]
