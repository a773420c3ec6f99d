//! What the agent counts and remembers of itself for operators: the table of metrics, the scrape, the last reload.

pub mod config_warnings;
pub mod facts;
pub mod form;
pub mod metric;
pub mod reload;
pub mod scrape;
pub mod turned;
pub mod verdict;
