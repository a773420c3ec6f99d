//! What an option may hold.

mod group;
mod number;
mod text;
mod word;

pub use group::{Group, Groups, List, Maybe, MaybeGroup, Required};
pub use number::{Flag, Number, Percent, Span, Whole};
pub use text::{Address, AnyText, FileMode, Location, Name};
pub(crate) use word::words;
pub use word::{OneOf, Word};

use super::fault::Sink;
use super::settings::Row;
use super::{Node, Value};

/// What an option may hold: says it, reads it, writes it.
pub trait Kind {
    /// What the agent works with.
    type Output;
    /// What may stand in the file, in words.
    fn allowed(&self) -> String;
    /// Reads a value; `None` and a fault in the sink where it is not allowed. `base` is what the
    /// option holds without the file.
    fn read(
        &self,
        node: &Node,
        base: &Self::Output,
        path: &str,
        sink: &mut Sink<'_>,
    ) -> Option<Self::Output>;
    /// How a value is written.
    fn shown(&self, value: &Self::Output) -> Shown;
    /// Whether the file must give it.
    fn required(&self) -> bool {
        false
    }
}

/// A value as the shipped file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// The text after `key = `.
    Value(String),
    /// Not set; the text that a user might write.
    Unset(String),
    /// A table `[key]`.
    Table(Vec<Row>),
    /// Tables `[[key]]`, none by default; what one holds.
    Tables(Vec<Row>),
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
}

impl<K: Scalar> Kind for K {
    type Output = K::Output;
    fn allowed(&self) -> String {
        Scalar::allowed(self)
    }
    fn read(
        &self,
        node: &Node,
        _base: &Self::Output,
        path: &str,
        sink: &mut Sink<'_>,
    ) -> Option<Self::Output> {
        match self.parse(&node.value) {
            Ok(output) => Some(output),
            Err(hint) => {
                sink.refuse(&node.span, path, Scalar::allowed(self), hint);
                None
            }
        }
    }
    fn shown(&self, value: &Self::Output) -> Shown {
        Shown::Value(self.written(value))
    }
}

/// A text as TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
