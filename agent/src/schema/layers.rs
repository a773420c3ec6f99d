//! Several TOML files read as one: a later file says again what an earlier one says.

use std::ops::Range;

use super::fault::{Fault, Sink};
use super::source::Source;
use super::{FileMember, FileNode, Value, toml};

/// Reads files, the first with what the others say over it: options of the same table replace those before, and
/// lists of tables `[[…]]` are added to those before.
///
/// # Errors
/// Every fault of syntax, in each file.
pub fn merged(first: Source, others: &[Source]) -> Result<(Source, FileNode), Vec<Fault>> {
    let mut faults = Vec::new();
    let mut trees = Vec::with_capacity(others.len().saturating_add(1));
    for source in std::iter::once(&first).chain(others) {
        let mut sink = Sink::new(source);
        trees.push(toml::parse(&mut sink));
        faults.extend(sink.finish().0);
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let source = first.followed_by(others);
    let root = trees
        .into_iter()
        .zip(source.starts())
        .map(|(mut tree, start)| {
            tree.shift(start);
            tree
        })
        .reduce(FileNode::overlaid)
        .unwrap_or(FileNode {
            span: 0..0,
            value: Value::Table(Vec::new()),
        });
    Ok((source, root))
}

impl FileNode {
    /// Moves all places by so many bytes.
    fn shift(&mut self, bytes: usize) {
        shift(&mut self.span, bytes);
        match &mut self.value {
            Value::List(items) => items.iter_mut().for_each(|item| item.shift(bytes)),
            Value::Table(members) => {
                for member in members {
                    shift(&mut member.key_span, bytes);
                    member.node.shift(bytes);
                }
            }
            Value::Flag(_)
            | Value::Integer(_)
            | Value::Number(_)
            | Value::Text(_)
            | Value::Null
            | Value::Other(_) => {}
        }
    }

    /// This one with what a later file says over it.
    fn overlaid(self, later: Self) -> Self {
        let Self { span, value } = self;
        match (value, later.value) {
            (Value::Table(members), Value::Table(over)) => Self {
                span,
                value: Value::Table(overlay(members, over)),
            },
            (Value::List(items), Value::List(more)) if are_tables(&items) && are_tables(&more) => {
                Self {
                    span,
                    value: Value::List(items.into_iter().chain(more).collect()),
                }
            }
            (_, value) => Self {
                span: later.span,
                value,
            },
        }
    }
}

fn shift(span: &mut Range<usize>, bytes: usize) {
    *span = span.start.saturating_add(bytes)..span.end.saturating_add(bytes);
}

/// Whether a list is one of tables.
fn are_tables(items: &[FileNode]) -> bool {
    !items.is_empty()
        && items
            .iter()
            .all(|item| matches!(item.value, Value::Table(_)))
}

fn overlay(mut members: Vec<FileMember>, over: Vec<FileMember>) -> Vec<FileMember> {
    for later in over {
        let earlier = members.iter_mut().find(|member| member.key == later.key);
        let Some(earlier) = earlier else {
            members.push(later);
            continue;
        };
        let nothing = FileNode {
            span: 0..0,
            value: Value::Null,
        };
        let node = std::mem::replace(&mut earlier.node, nothing);
        earlier.node = node.overlaid(later.node);
        earlier.key_span = later.key_span;
    }
    members
}
