//! What the agent tells operators about itself and its decisions.

pub mod fill;
pub mod metric;
pub mod scrape;
pub mod status;
