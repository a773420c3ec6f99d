//! A TOML text as a tree of nodes.

use std::ops::Range;

use toml::de::{DeInteger, DeTable, DeValue};

use super::fault::{Fault, SYNTAX, Sink, TWICE};
use super::source::shown;
use super::{FileMember, FileNode, Value};

/// Parses the text of the sink's file and lets `take` have the tree.
///
/// Syntax faults go into the sink, and what could be read in spite of them is in the tree. What `take` says of the
/// same lines is left out, and of the same tables which options are missing or unknown there: after a header
/// that is not whole, the parser takes options for those of another table.
pub fn read<T>(sink: &mut Sink<'_>, take: impl FnOnce(&FileNode, &mut Sink<'_>) -> T) -> T {
    let root = parse(sink);
    let lines = sink.faulty_lines();
    let output = take(&root, sink);
    let tables = tables_around(sink.source().text(), &lines);
    sink.forget_guesses(lines.len(), &lines, &tables);
    output
}

/// The lines (from 1) of each table that has one of these lines, from its header to the next one.
fn tables_around(text: &str, lines: &[usize]) -> Vec<Range<usize>> {
    let numbered = text.lines().zip(1_usize..);
    let headers = numbered.filter(|(line, _number)| line.trim_start().starts_with('['));
    let headers: Vec<usize> = headers.map(|(_line, number)| number).collect();
    let around = |line: &usize| {
        let next = headers.partition_point(|header| header <= line);
        let own = next.checked_sub(1).and_then(|own| headers.get(own));
        own.copied().unwrap_or(1)..headers.get(next).copied().unwrap_or(usize::MAX)
    };
    lines.iter().map(around).collect()
}

pub(super) fn parse(sink: &mut Sink<'_>) -> FileNode {
    let text = sink.source().text();
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        let place = sink.source().place(span.start);
        let (value, hint) = match error.message() {
            "duplicate key" => stands_twice(text, &span),
            message => (shown(at_fault(text, &span)), hint(message)),
        };
        sink.push(Fault::at(place, SYNTAX, value, "TOML", hint));
    }
    FileNode {
        span: 0..0,
        value: table_value(table.get_ref()),
    }
}

/// What the parser says, but for an advice that no option takes: it knows numbers that are not finite.
fn hint(message: &str) -> String {
    let not_finite = ["expected `nan`", "expected `inf`"];
    if not_finite.iter().any(|advice| message.contains(advice)) {
        return "no number is written so; options take finite ones, such as 0.85 or 100".to_owned();
    }
    message.to_owned()
}

/// What a syntax fault is about: its span, else the rest of the line, else the whole line.
fn at_fault<'t>(text: &'t str, span: &Range<usize>) -> &'t str {
    let before = text.get(..span.start).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |at| at.saturating_add(1));
    let rest = text.get(span.start..).unwrap_or_default();
    let rest = rest.split('\n').next().unwrap_or_default();
    let line_end = span.start.saturating_add(rest.len());
    let own = text.get(span.clone()).unwrap_or_default();
    let line = text.get(line_start..line_end).unwrap_or_default();
    let found = [own, rest, line].map(str::trim);
    found
        .into_iter()
        .find(|text| !text.is_empty())
        .unwrap_or("nothing")
}

/// A header or an option that is there twice: how it is written, and where the first one is.
fn stands_twice(text: &str, span: &Range<usize>) -> (String, String) {
    let before = text.get(..span.start).unwrap_or_default();
    let own = text.get(span.clone()).unwrap_or_default();
    let lines: Vec<&str> = before.lines().collect();
    // The line that it stands in is there up to it, unless it begins the line.
    let is_header = !before.ends_with('\n')
        && lines
            .last()
            .is_some_and(|line| line.trim_start().starts_with('['));
    let header = |line: &str| {
        let name = line.trim_start().strip_prefix('[')?.split(']').next()?;
        Some(name.trim() == own)
    };
    let (value, first) = if is_header {
        let earlier = lines.len().saturating_sub(1);
        let found = lines
            .iter()
            .take(earlier)
            .position(|line| header(line) == Some(true));
        (format!("[{own}]"), found)
    } else {
        let is_of_table = |line: &&str| !line.trim_start().starts_with('[');
        let found = lines.iter().rev().take_while(|line| is_of_table(line));
        let found = found.clone().position(|line| {
            let rest = line.trim_start().strip_prefix(own);
            rest.is_some_and(|rest| rest.trim_start().starts_with('='))
        });
        let from_end = found.and_then(|back| lines.len().checked_sub(back)?.checked_sub(1));
        (own.to_owned(), from_end)
    };
    let hint = first.map_or_else(
        || TWICE.to_owned(),
        |line| format!("{TWICE}, first in line {}", line.saturating_add(1)),
    );
    (shown(&value), hint)
}

fn table_value(table: &DeTable<'_>) -> Value {
    let mut members: Vec<FileMember> = table
        .iter()
        .map(|(key, value)| FileMember {
            key: key.get_ref().to_string(),
            key_span: key.span(),
            node: FileNode {
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
                .map(|one| FileNode {
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
