//! What the agent tells operators about itself and its decisions.

pub mod explain;
pub mod facts;
pub mod fill;
mod kernel;
pub mod metric;
pub mod reload;
pub mod rules;
pub mod scrape;
pub mod signal;
pub mod status;
pub mod threads;
pub mod turned;
mod turned_away;
pub mod warnings;
pub mod why;
