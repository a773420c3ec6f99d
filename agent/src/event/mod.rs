//! What has happened, as operators ask for it: each named line of the log, kept and counted.
//!
//! The log has each event anyway. [`listen`] takes it from there, [`book`] keeps the last ones, [`kind`] lists which
//! there are. Nothing of this is on the way of a tick or of a decision: neither logs while nothing happens.

pub mod book;
pub mod kind;
pub mod listen;
