//! Every option with the value that is in force and the place that says so.

use std::path::Path;

use super::{Config, layers};
use crate::schema::fault::{Fault, InFile};
use crate::schema::kind::ShownValue;
use crate::schema::layers::merged;
use crate::schema::settings::{OptionRow, OptionTable as _};
use crate::schema::source::Source;
use crate::schema::{FileNode, Value};

/// Column at which the origin of a value stands, unless the value is longer.
const ORIGIN_COLUMN: usize = 40;

impl Config {
    /// This configuration as TOML, each option with what set it: a file and line, `default`, or the command line over
    /// both. `path` is the file that it was read from.
    ///
    /// # Errors
    /// A file that cannot be read any more.
    pub fn with_origins(&self, path: Option<&Path>) -> Result<String, Vec<Fault>> {
        let files = path.map(read).transpose()?;
        let files = files.as_ref().map(|(source, root)| (source, root));
        let of_files = Self::load(path)?.config.rows();
        let mut text = String::new();
        table(&mut text, "", &self.rows(), &of_files, files);
        Ok(text)
    }
}

/// Where an option of a table stands, in a configuration or in the files beside it.
pub fn place_of(path: &Path, [table, option]: [&str; 2]) -> Option<InFile> {
    let (source, root) = read(path).ok()?;
    let (_source, node) = member(member(Some((&source, &root)), table), option)?;
    Some(source.place(node.span.start))
}

fn read(path: &Path) -> Result<(Source, FileNode), Vec<Fault>> {
    let first = Source::read(path).map_err(|fault| vec![*fault])?;
    merged(first, &layers::beside(path)?.files)
}

/// A part of the files: the text, and the node in it.
type Part<'n> = Option<(&'n Source, &'n FileNode)>;

/// Writes a table: its rows as they are in force and as the files alone have them, and its part of the files.
fn table(
    text: &mut String,
    path: &str,
    rows: &[OptionRow],
    of_files: &[OptionRow],
    part: Part<'_>,
) {
    for (row, of_file) in rows.iter().zip(of_files) {
        let line = match &row.shown {
            ShownValue::Value(value) => format!("{} = {value}", row.key),
            // What a table must give is in the file as it is written there.
            ShownValue::Unset(_) => written(member(part, row.key)).map_or_else(
                || format!("# {} is not set", row.key),
                |written| format!("{} = {written}", row.key),
            ),
            ShownValue::Table(_) | ShownValue::Tables(_) => continue,
        };
        let origin = match member(part, row.key) {
            _ if row.shown != of_file.shown => {
                "not from a file: command line, or this user's own directory".to_owned()
            }
            Some((source, node)) => source.place(node.span.start).to_string(),
            None => "default".to_owned(),
        };
        push(text, &format!("{line:ORIGIN_COLUMN$} # {origin}"));
    }
    for (row, of_file) in rows.iter().zip(of_files) {
        let path = if path.is_empty() {
            row.key.to_owned()
        } else {
            format!("{path}.{}", row.key)
        };
        let within = member(part, row.key);
        if let (ShownValue::Table(rows), ShownValue::Table(of_files)) = (&row.shown, &of_file.shown)
        {
            push(text, &format!("\n[{path}]"));
            table(text, &path, rows, of_files, within);
        }
        for (index, (rows, of_files)) in row.items.iter().zip(&of_file.items).enumerate() {
            push(text, &format!("\n[[{path}]]"));
            table(text, &path, rows, of_files, item(within, index));
        }
    }
}

fn member<'n>(part: Part<'n>, key: &str) -> Part<'n> {
    let (source, node) = part?;
    let Value::Table(members) = &node.value else {
        return None;
    };
    let found = members.iter().find(|member| member.key == key)?;
    Some((source, &found.node))
}

fn written(part: Part<'_>) -> Option<&str> {
    let (source, node) = part?;
    source.text().get(node.span.clone())
}

fn item(part: Part<'_>, index: usize) -> Part<'_> {
    let (source, node) = part?;
    let Value::List(items) = &node.value else {
        return None;
    };
    Some((source, items.get(index)?))
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}
