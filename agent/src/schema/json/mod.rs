//! A JSON text as a tree of nodes, read as fastjson 1.2 does, whose users are Sentinel's readers.
//!
//! More than JSON is taken, always: comments, keys without quotes, texts in single quotes, commas too many, numbers with a
//! letter of their Java type, control characters in texts, `undefined`.

mod scan;

use super::fault::{Fault, SYNTAX, Sink};
use super::{FileMember, FileNode, Value};
use scan::{Broken, Scan};

/// Deepest nesting that is taken. Rules need five levels.
const DEPTH_MAX: u8 = 16;

/// Parses the text of the sink's file. A text that is none of this is one fault and an empty list.
pub fn parse(sink: &mut Sink<'_>) -> FileNode {
    match read(sink.source().text()) {
        Ok(root) => root,
        Err(broken) => {
            refuse(&broken, sink);
            FileNode {
                span: 0..0,
                value: Value::List(Vec::new()),
            }
        }
    }
}

fn refuse(broken: &Broken, sink: &mut Sink<'_>) {
    let text = sink.source().text();
    let place = sink.source().place(broken.at);
    let line = place.point.map_or(0, |point| point.line.saturating_sub(1));
    let line = text.split('\n').nth(line).unwrap_or_default();
    let value = super::source::shown(line.trim());
    sink.push(Fault::at(place, SYNTAX, value, "JSON", broken.why));
}

fn read(text: &str) -> Result<FileNode, Broken> {
    let mut scan = Scan::new(text);
    scan.skip()?;
    if scan.peek().is_none() {
        return scan.broken("the file is empty; write [] for no rules");
    }
    let root = node(&mut scan, DEPTH_MAX)?;
    scan.skip()?;
    if scan.peek().is_some() {
        return scan.broken("the text goes on after its end");
    }
    Ok(root)
}

fn node(scan: &mut Scan<'_>, depth: u8) -> Result<FileNode, Broken> {
    let start = scan.at();
    let value = match scan.peek() {
        Some('{' | '[') => {
            let Some(depth) = depth.checked_sub(1) else {
                return scan.broken("nested deeper than 16 levels");
            };
            if scan.take('{') {
                table(scan, depth)?
            } else {
                scan.bump();
                list(scan, depth)?
            }
        }
        Some(quote @ ('"' | '\'')) => Value::Text(scan.quoted(quote)?),
        Some('-' | '0'..='9') => scan.number()?,
        Some(_) => word(scan)?,
        None => return scan.broken("the text ends where a value is expected"),
    };
    Ok(FileNode {
        span: start..scan.at(),
        value,
    })
}

fn word(scan: &mut Scan<'_>) -> Result<Value, Broken> {
    let start = scan.at();
    match scan.name() {
        "true" => Ok(Value::Flag(true)),
        "false" => Ok(Value::Flag(false)),
        "null" | "undefined" => Ok(Value::Null),
        "NaN" | "Infinity" => Err(Broken {
            at: start,
            why: "a finite number is expected, such as 0.85 or 100",
        }),
        _ => Err(Broken {
            at: start,
            why: "a value is expected: a text in quotes, a number, true, false, null, a list or an object",
        }),
    }
}

fn list(scan: &mut Scan<'_>, depth: u8) -> Result<Value, Broken> {
    let mut items = Vec::new();
    let mut parted = true;
    loop {
        parted |= scan.skip_commas()?;
        match scan.peek() {
            Some(']') => {
                scan.bump();
                return Ok(Value::List(items));
            }
            None => return scan.broken("the text ends inside a list"),
            // fastjson goes on with the next object of a list without a comma, too.
            Some('{') => {}
            Some(_) if !parted => return scan.broken("a comma or ] is expected"),
            Some(_) => {}
        }
        items.push(node(scan, depth)?);
        parted = false;
    }
}

fn table(scan: &mut Scan<'_>, depth: u8) -> Result<Value, Broken> {
    let mut members = Vec::new();
    let mut parted = true;
    loop {
        parted |= scan.skip_commas()?;
        match scan.peek() {
            Some('}') => {
                scan.bump();
                return Ok(Value::Table(members));
            }
            None => return scan.broken("the text ends inside an object"),
            Some(_) if !parted => return scan.broken("a comma or } is expected"),
            Some(_) => {}
        }
        members.push(member(scan, depth)?);
        parted = false;
    }
}

fn member(scan: &mut Scan<'_>, depth: u8) -> Result<FileMember, Broken> {
    let start = scan.at();
    let (key, key_span) = match scan.peek() {
        Some(quote @ ('"' | '\'')) => {
            let key = scan.quoted(quote)?;
            let inside = start.saturating_add(1)..scan.at().saturating_sub(1);
            (key, inside)
        }
        _ => (scan.name().to_owned(), start..scan.at()),
    };
    if key_span.is_empty() && key.is_empty() {
        return scan.broken("the name of a field is expected");
    }
    scan.skip()?;
    if !scan.take(':') {
        return scan.broken("a colon is expected after the name of a field");
    }
    scan.skip()?;
    Ok(FileMember {
        key,
        key_span,
        node: node(scan, depth)?,
    })
}

#[cfg(test)]
mod tests;
