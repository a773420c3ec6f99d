//! What the agent tells operators about itself and its decisions.

pub mod explain;
pub mod fill;
pub mod metric;
pub mod scrape;
pub mod status;
pub mod threads;
