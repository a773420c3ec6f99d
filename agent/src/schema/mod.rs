//! How every file of the operator is read: one table of options, every fault at once.
//!
//! A file becomes a tree of [`FileNode`]s that know where they stand in it ([`toml`], [`json`]). A table
//! of options, written with `settings!`, takes that tree apart: each option has a
//! [`Kind`](kind::OptionKind), which says what is allowed, reads a value and writes one. From the same table come
//! the typed values, the faults and the shipped file.

pub mod editor;
pub mod effect;
pub mod fault;
pub mod json;
pub mod kind;
pub mod layers;
pub mod settings;
pub mod source;
pub mod toml;

use std::ops::Range;

/// A value of a file and the bytes it stands on.
#[derive(Debug, Clone, PartialEq)]
pub struct FileNode {
    /// Byte range in the file. Of a table with a header, the header.
    pub span: Range<usize>,
    /// The value.
    pub value: Value,
}

/// What TOML and JSON files have in common.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// true or false.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number, also one that is not finite.
    Number(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<FileNode>),
    /// A table, in the order of the file.
    Table(Vec<FileMember>),
    /// JSON's `null`: the option is not given.
    Null,
    /// A value that no option takes; says what it is.
    Other(&'static str),
}

impl Value {
    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self {
            Some(text)
        } else {
            None
        }
    }

    /// The members, if it is a table.
    pub fn members(&self) -> Option<&[FileMember]> {
        if let Self::Table(members) = self {
            Some(members)
        } else {
            None
        }
    }

    /// The whole number, if it is one.
    pub fn integer(&self) -> Option<i64> {
        if let Self::Integer(number) = self {
            Some(*number)
        } else {
            None
        }
    }

    /// The number, if it is one, whole or not, finite or not.
    pub fn number(&self) -> Option<f64> {
        if let Self::Number(number) = self {
            return Some(*number);
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "options are far below 2^53; a larger one is over its range anyway"
        )]
        self.integer().map(|number| number as f64)
    }
}

/// A key of a table and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct FileMember {
    /// The key, without quotes.
    pub key: String,
    /// Byte range of the key.
    pub key_span: Range<usize>,
    /// The value.
    pub node: FileNode,
}
