//! Tables of options as JSON Schema (draft 2020-12), for editors.
//!
//! A schema lets pass what the agent takes, and more: ranges of durations and what options demand of each other
//! are known to `tidegate check` alone.

use serde_json::{Map, Value, json};

use super::kind::ShownValue;
use super::settings::OptionRow;

/// The schema of a whole file, as text.
pub fn file(title: &str, rows: &[OptionRow]) -> String {
    let mut schema = table(rows);
    if let Value::Object(members) = &mut schema {
        let dialect = json!("https://json-schema.org/draft/2020-12/schema");
        members.insert("$schema".to_owned(), dialect);
        members.insert("title".to_owned(), json!(title));
    }
    format!("{schema:#}\n")
}

/// The schema of a table of options.
pub fn table(rows: &[OptionRow]) -> Value {
    let properties: Map<String, Value> = rows
        .iter()
        .map(|row| (row.key.to_owned(), option(row)))
        .collect();
    let required: Vec<&str> = rows
        .iter()
        .filter(|row| row.required)
        .map(|row| row.key)
        .collect();
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if let (Value::Object(members), false) = (&mut schema, required.is_empty()) {
        members.insert("required".to_owned(), json!(required));
    }
    schema
}

/// The schema of any number of such tables.
pub fn tables(rows: &[OptionRow]) -> Value {
    json!({"type": "array", "items": table(rows)})
}

fn option(row: &OptionRow) -> Value {
    let mut schema = row.json_schema.clone();
    let Value::Object(members) = &mut schema else {
        return schema;
    };
    let docs: Vec<&str> = row.docs.iter().map(|line| line.trim()).collect();
    let mut description = docs.join(" ");
    if matches!(row.shown, ShownValue::Value(_) | ShownValue::Unset(_)) {
        description = format!("{description} Allowed: {}.", row.allowed);
    }
    members.insert("description".to_owned(), json!(description));
    if let ShownValue::Value(value) = &row.shown {
        // The default as the shipped file writes it; what TOML and JSON write alike is a value here too.
        if let Ok(default) = serde_json::from_str::<Value>(value) {
            members.insert("default".to_owned(), default);
        }
    }
    schema
}
