//! Names of slots: resources, their nodes for origins and contexts, and those that the agent made itself.

use super::super::rule_index::Part;
pub use super::super::rule_index::overflow::NAME as OVERFLOW_NAME;

/// Name of the slot whose node counts all inbound requests together.
pub const INBOUND_NAME: &str = "__inbound__";

/// Between a resource and an origin in the name of a node.
const ORIGIN_SEPARATOR: char = '\u{1f}';
/// Between a resource and a context in the name of a node.
const CONTEXT_SEPARATOR: char = '\u{1e}';
/// Neither can be in a name that comes from outside.
const SEPARATORS: [char; 2] = [ORIGIN_SEPARATOR, CONTEXT_SEPARATOR];

/// The name of a resource's node for an origin or a context.
pub fn part_name(resource: &str, part: Part, name: &str) -> String {
    let separator = match part {
        Part::Origin => ORIGIN_SEPARATOR,
        Part::Context => CONTEXT_SEPARATOR,
    };
    format!("{resource}{separator}{name}")
}

/// The resource of a node's name, and the part of it that the node counts.
pub fn parts_of(name: &str) -> (&str, Option<(Part, &str)>) {
    for (separator, part) in [
        (ORIGIN_SEPARATOR, Part::Origin),
        (CONTEXT_SEPARATOR, Part::Context),
    ] {
        if let Some((resource, own)) = name.split_once(separator) {
            return (resource, Some((part, own)));
        }
    }
    (name, None)
}

/// Whether a name is that of a node for an origin or a context.
pub(super) fn is_part(name: &str) -> bool {
    name.contains(SEPARATORS)
}
