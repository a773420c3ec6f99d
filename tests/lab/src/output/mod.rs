//! How a report is told: a table, JSON, a plot.

pub(crate) mod markdown;
pub(crate) mod plot;
pub(crate) mod table;
