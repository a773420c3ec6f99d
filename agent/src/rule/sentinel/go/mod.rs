//! Rules in the form of Sentinel's Go version, where they mean the same here. What means something else is refused by
//! its name.

mod breaker;
mod flow;
mod hotspot;
mod system;

use super::foreign;
use super::kind::Go;
use crate::rule::Rule;
use crate::schema::FileNode;
use crate::schema::fault::Sink;
use crate::schema::settings::{OptionRow, OptionTable as _, Section};

/// Reads one rule.
pub(super) fn rule(kind: Go, item: &FileNode, path: &str, sink: &mut Sink<'_>) -> Option<Rule> {
    match kind {
        Go::Flow => foreign::<flow::GoFlow>(item, path, sink),
        Go::Isolation => foreign::<flow::GoIsolation>(item, path, sink),
        Go::Breaker => foreign::<breaker::GoBreaker>(item, path, sink),
        Go::Hotspot => foreign::<hotspot::GoHotspot>(item, path, sink),
        Go::System => foreign::<system::GoSystem>(item, path, sink),
    }
}

/// The fields of every kind.
pub(super) fn rows() -> Vec<OptionRow> {
    let kinds = [
        flow::GoFlow::default().rows(),
        flow::GoIsolation::default().rows(),
        breaker::GoBreaker::default().rows(),
        hotspot::GoHotspot::default().rows(),
        system::GoSystem::default().rows(),
    ];
    kinds.concat()
}

/// Refuses a field with a meaning that nothing here has.
fn refuse_unless(
    is_same: bool,
    field: &str,
    (allowed, hint): (&str, &str),
    section: &mut Section<'_, '_>,
) {
    if !is_same {
        section.refuse(&[field], allowed, hint);
    }
}
