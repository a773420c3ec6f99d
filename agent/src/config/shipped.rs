//! The file that is shipped: the defaults with their descriptions.

use super::Config;
use crate::schema::editor;
use crate::schema::kind::ShownValue;
use crate::schema::settings::{OptionRow, OptionTable as _};

const HEAD: &str = "\
# Tidegate. Every option has a default; this file holds just those.
# Durations carry their unit: \"100ms\", \"2s\", \"1m\". A change takes effect on reload (SIGHUP) or,
# for sockets and pages, on restart. `tidegate check FILE` says what is wrong with a file.
# Files conf.d/*.toml beside this one are read after it, in the order of their names: options replace those before, and
# tables [[scope]], [[service]] and [[tenant]] are added. `tidegate check --show` prints what is in force, and from where.
";

/// The schema of `tidegate.toml`, for editors: the text of `config/schema/tidegate.schema.json`.
pub fn schema_text() -> String {
    editor::file("Configuration of Tidegate", &Config::default().rows())
}

/// The text of `config/tidegate.toml`.
pub fn text() -> String {
    let mut text = HEAD.to_owned();
    table(&mut text, "", &Config::default().rows(), "");
    text
}

/// Writes the rows of a table: its options first, then the tables in it.
fn table(text: &mut String, path: &str, rows: &[OptionRow], comment: &str) {
    for row in rows {
        let (mark, value) = match &row.shown {
            ShownValue::Value(value) => (comment, value),
            ShownValue::Unset(example) => ("# ", example),
            ShownValue::Table(_) | ShownValue::Tables(_) => continue,
        };
        docs(text, row);
        push(text, &[mark, row.key, " = ", value]);
    }
    for row in rows {
        let path = if path.is_empty() {
            row.key.to_owned()
        } else {
            format!("{path}.{}", row.key)
        };
        match &row.shown {
            ShownValue::Value(_) | ShownValue::Unset(_) => {}
            ShownValue::Table(rows) => {
                docs(text, row);
                push(text, &[comment, "[", &path, "]"]);
                // In a table that is an example, what its tables hold stands further up.
                if comment.is_empty() {
                    table(text, &path, rows, comment);
                }
            }
            ShownValue::Tables(rows) => {
                docs(text, row);
                push(text, &["# [[", &path, "]]"]);
                table(text, &path, rows, "# ");
            }
        }
    }
}

fn docs(text: &mut String, row: &OptionRow) {
    text.push('\n');
    for line in row.docs {
        push(text, &["#", line]);
    }
    if matches!(row.shown, ShownValue::Value(_) | ShownValue::Unset(_)) {
        push(text, &["# Allowed: ", &row.allowed, "."]);
    }
}

fn push(text: &mut String, parts: &[&str]) {
    for part in parts {
        text.push_str(part);
    }
    text.push('\n');
}
