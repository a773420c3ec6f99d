//! What an option may hold.

mod coerced;
mod group;
mod number;
mod text;
mod word;

pub use group::{Groups, ListOf, Maybe, MaybeGroup, RequiredOption, TableOf};
pub use number::{DurationRange, Flag, Number, Percent, Whole};
pub use text::{Address, AnyText, FileMode, Location, NameText};
pub(crate) use word::words;
pub use word::{OneOf, OptionWord};

use serde_json::{Value as Json, json};

use super::fault::Sink;
use super::settings::OptionRow;
use super::{FileNode, Value};

/// What an option may hold: says it, reads it, writes it.
pub trait OptionKind {
    /// What the agent works with.
    type Output;
    /// What may stand in the file, in words.
    fn allowed(&self) -> String;
    /// Reads a value; `None` and a fault in the sink where it is not allowed. `base` is what the
    /// option holds without the file.
    fn read(
        &self,
        node: &FileNode,
        base: &Self::Output,
        path: &str,
        sink: &mut Sink<'_>,
    ) -> Option<Self::Output>;
    /// How a value is written.
    fn shown(&self, value: &Self::Output) -> ShownValue;
    /// The options of each table of a list of tables.
    fn items(&self, _value: &Self::Output) -> Vec<Vec<OptionRow>> {
        Vec::new()
    }
    /// What may stand in the file, as a JSON Schema; anything, where a kind does not say.
    fn json_schema(&self) -> Json {
        json!({})
    }
    /// Whether the file must give it.
    fn required(&self) -> bool {
        false
    }
}

/// A value as the shipped file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShownValue {
    /// The text after `key = `.
    Value(String),
    /// Not set; the text that a user might write.
    Unset(String),
    /// A table `[key]`.
    Table(Vec<OptionRow>),
    /// Tables `[[key]]`, none by default; what one holds.
    Tables(Vec<OptionRow>),
}

/// A kind that looks at one value alone.
pub trait Scalar {
    /// What the agent works with.
    type Output;
    /// What may stand in the file, in words.
    fn allowed(&self) -> String;
    /// Reads a value.
    ///
    /// # Errors
    /// A hint, empty where [`Self::allowed`] says it all.
    fn parse(&self, value: &Value) -> Result<Self::Output, String>;
    /// The value as TOML.
    fn written(&self, value: &Self::Output) -> String;
    /// What may stand in the file, as a JSON Schema; anything, where a kind does not say. It may let more pass than
    /// [`Self::parse`], never less.
    fn json_schema(&self) -> Json {
        json!({})
    }
    /// What is odd about a value that is taken; `None` where nothing is.
    fn odd(&self, _value: &Value) -> Option<String> {
        None
    }
}

/// Reads the value of an option; `None` and a fault in the sink where it is not allowed.
fn read_scalar<K: Scalar>(
    kind: &K,
    node: &FileNode,
    path: &str,
    sink: &mut Sink<'_>,
) -> Option<K::Output> {
    let read = if sink.is_of_sentinel() {
        coerced::parse(kind, &node.value)
    } else {
        kind.parse(&node.value).map(|output| (output, None))
    };
    match read {
        Ok((output, lost)) => {
            if let Some(hint) = lost.map(str::to_owned).or_else(|| kind.odd(&node.value)) {
                sink.warn(&node.span, path, Scalar::allowed(kind), hint);
            }
            Some(output)
        }
        Err(hint) => {
            sink.refuse(&node.span, path, Scalar::allowed(kind), hint);
            None
        }
    }
}

impl<K: Scalar> OptionKind for K {
    type Output = K::Output;
    fn allowed(&self) -> String {
        Scalar::allowed(self)
    }
    fn read(
        &self,
        node: &FileNode,
        _base: &Self::Output,
        path: &str,
        sink: &mut Sink<'_>,
    ) -> Option<Self::Output> {
        read_scalar(self, node, path, sink)
    }
    fn shown(&self, value: &Self::Output) -> ShownValue {
        ShownValue::Value(self.written(value))
    }
    fn json_schema(&self) -> Json {
        Scalar::json_schema(self)
    }
}

/// A text as TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
