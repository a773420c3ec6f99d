//! A JSON text as a tree of nodes.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::fault::{Fault, SYNTAX, Sink};
use super::{Member, Node, Value};

/// Deepest nesting that is taken apart. Rules need four levels.
const DEPTH_MAX: u8 = 16;

/// Parses the text of the sink's file. A text that is no JSON is one fault and an empty list.
pub fn parse(sink: &mut Sink<'_>) -> Node {
    let text = sink.source().text();
    match serde_json::from_str::<&RawValue>(text) {
        Ok(raw) => Reader { text }.node(raw, DEPTH_MAX),
        Err(error) => {
            let place = sink.source().place_at(error.line(), error.column());
            let line = text.lines().nth(error.line().saturating_sub(1));
            let value = super::source::shown(line.unwrap_or_default().trim());
            let message = error.to_string();
            // The place is said already.
            let hint = message.split(" at line ").next().unwrap_or_default();
            sink.push(Fault::at(place, SYNTAX, value, "JSON", hint));
            Node {
                span: 0..0,
                value: Value::List(Vec::new()),
            }
        }
    }
}

struct Reader<'t> {
    text: &'t str,
}

impl<'t> Reader<'t> {
    /// Where a piece of the text begins in it.
    fn offset(&self, piece: &str) -> Option<usize> {
        let offset = piece
            .as_ptr()
            .addr()
            .checked_sub(self.text.as_ptr().addr())?;
        (offset <= self.text.len()).then_some(offset)
    }

    fn node(&self, raw: &'t RawValue, depth: u8) -> Node {
        let text = raw.get();
        let start = self.offset(text).unwrap_or_default();
        let value = match (text.bytes().next(), depth.checked_sub(1)) {
            (Some(b'{' | b'['), None) => Value::Other("nested deeper than 16 levels"),
            (Some(b'{'), Some(depth)) => self.table(text, depth),
            (Some(b'['), Some(depth)) => self.list(text, depth),
            _ => scalar(text),
        };
        Node {
            span: start..start.saturating_add(text.len()),
            value,
        }
    }

    fn table(&self, text: &'t str, depth: u8) -> Value {
        let Ok(Members(members)) = serde_json::from_str(text) else {
            return Value::Other("a broken object");
        };
        let member = |(key, raw): (Cow<'t, str>, &'t RawValue)| {
            let node = self.node(raw, depth);
            let key_span = match &key {
                Cow::Borrowed(text) => self
                    .offset(text)
                    .map(|at| at..at.saturating_add(text.len())),
                // Written with escapes: the value's place is the nearest that is known.
                Cow::Owned(_) => None,
            };
            Member {
                key_span: key_span.unwrap_or_else(|| node.span.clone()),
                key: key.into_owned(),
                node,
            }
        };
        Value::Table(members.into_iter().map(member).collect())
    }

    fn list(&self, text: &'t str, depth: u8) -> Value {
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(text) else {
            return Value::Other("a broken array");
        };
        Value::List(items.into_iter().map(|raw| self.node(raw, depth)).collect())
    }
}

fn scalar(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(serde_json::Value::Null) => Value::Null,
        Ok(serde_json::Value::Bool(flag)) => Value::Flag(flag),
        Ok(serde_json::Value::String(text)) => Value::Text(text),
        Ok(serde_json::Value::Number(number)) => number.as_i64().map_or_else(
            || {
                number
                    .as_f64()
                    .map_or(Value::Other("a number"), Value::Number)
            },
            Value::Integer,
        ),
        _ => Value::Other("a number out of range"),
    }
}

/// The members of an object in the order of the text, repeated keys included.
struct Members<'t>(Vec<(Cow<'t, str>, &'t RawValue)>);

#[derive(Deserialize)]
struct Key<'t>(#[serde(borrow)] Cow<'t, str>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((Key(key), raw)) = map.next_entry()? {
                    members.push((key, raw));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}
