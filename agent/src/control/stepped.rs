//! What the tick hands on from a scope to its pages.

use tidegate_abi::board::SurgeWord;
use tidegate_segment::board::PublishedScope;

use crate::tenant::OPEN_SCOPE;

/// What a tick came to for a scope.
#[derive(Debug)]
pub(super) struct Stepped {
    pub report: PublishedScope,
    /// Requests of a whole tick.
    pub capacity: Option<f64>,
    pub surge: SurgeWord,
}

impl Stepped {
    /// The group is gone, and its place is free.
    pub(super) const GONE: Self = Self {
        report: OPEN_SCOPE,
        capacity: None,
        surge: SurgeWord::NONE,
    };
}
