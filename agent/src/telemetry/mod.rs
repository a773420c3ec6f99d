//! What the agent tells operators about itself and its decisions.

pub mod metric;
pub mod scrape;
