//! A TOML text as a tree of nodes.

use toml::de::{DeInteger, DeTable, DeValue};

use super::fault::Sink;
use super::{Member, Node, Value};

/// Parses the text of the sink's file and lets `take` have the tree.
///
/// Syntax faults go into the sink; what could be read in spite of them is in the tree, and what
/// `take` says about the same lines is left out.
pub fn read<T>(sink: &mut Sink<'_>, take: impl FnOnce(&Node, &mut Sink<'_>) -> T) -> T {
    let root = parse(sink);
    let lines = sink.faulty_lines();
    let output = take(&root, sink);
    sink.forget_on(lines.len(), &lines);
    output
}

fn parse(sink: &mut Sink<'_>) -> Node {
    let text = sink.source().text();
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        let line_end = text
            .get(span.start..)
            .and_then(|rest| rest.find('\n'))
            .map_or(text.len(), |length| span.start.saturating_add(length));
        let shown = if span.is_empty() {
            span.start..line_end
        } else {
            span
        };
        sink.refuse(&shown, "syntax", "TOML", error.message());
    }
    Node {
        span: 0..0,
        value: table_value(table.get_ref()),
    }
}

fn table_value(table: &DeTable<'_>) -> Value {
    let mut members: Vec<Member> = table
        .iter()
        .map(|(key, value)| Member {
            key: key.get_ref().to_string(),
            key_span: key.span(),
            node: Node {
                span: value.span(),
                value: node_value(value.get_ref()),
            },
        })
        .collect();
    members.sort_by_key(|member| member.key_span.start);
    Value::Table(members)
}

fn node_value(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => integer(number),
        // Over the range of f64 it reads as infinite, which no option takes.
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .map_or(Value::Other("a number"), Value::Number),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(_) => Value::Other("a date or time"),
        DeValue::Array(list) => Value::List(
            list.iter()
                .map(|one| Node {
                    span: one.span(),
                    value: node_value(one.get_ref()),
                })
                .collect(),
        ),
        DeValue::Table(table) => table_value(table),
    }
}

fn integer(number: &DeInteger<'_>) -> Value {
    i64::from_str_radix(number.as_str(), number.radix()).map_or(
        Value::Other("a whole number of more than 64 bits"),
        Value::Integer,
    )
}
