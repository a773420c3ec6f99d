//! What a caller gives by name: the members of a JSON object, or the pairs of a query. Each field is taken out and
//! checked; what is at fault is told with its name, its value and what is allowed.

use std::fmt;

use axum::extract::Query;
use axum::http::Uri;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::answer::Wrong;
use crate::schema::settings::nearest;
use crate::schema::source::shown;

/// What a route takes.
#[derive(Debug)]
pub(super) struct Form {
    /// Names of its fields.
    pub(super) fields: &'static [&'static str],
    /// A question that it takes.
    pub(super) example: &'static str,
}

/// The fields that were given and are not taken out yet.
#[derive(Debug)]
pub(super) struct Fields {
    given: Vec<(String, Value)>,
    /// Whether all values are texts, also those of numbers.
    is_query: bool,
    form: &'static Form,
}

impl Fields {
    /// Reads a JSON body.
    ///
    /// # Errors
    /// It is no JSON object, or has a field that the form has not, or twice.
    pub(super) fn of_json(body: &[u8], form: &'static Form) -> Result<Self, Wrong> {
        let example = form.example;
        let Members(given) = serde_json::from_slice(body).map_err(|error| {
            let what = if error.is_data() {
                "no object"
            } else {
                "no JSON"
            };
            Wrong::input(format!(
                "the body is {what} ({error}); allowed is a JSON object such as {example}"
            ))
        })?;
        Self::of(given, false, form)
    }

    /// Reads a query.
    ///
    /// # Errors
    /// It is not UTF-8, or has a field that the form has not, or twice.
    pub(super) fn of_query(uri: &Uri, form: &'static Form) -> Result<Self, Wrong> {
        let text = uri.query().unwrap_or_default();
        // The extractor would put a sign of its own in the place of such bytes, and so take one name for another.
        if percent_decode_str(text).decode_utf8().is_err() {
            let text = "the query is not UTF-8; allowed are names in UTF-8, their bytes as %XX";
            return Err(Wrong::input(text));
        }
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri).map_err(|error| {
            let (why, example) = (error.body_text(), form.example);
            Wrong::input(format!("{why}; allowed is a query such as {example}"))
        })?;
        let given = pairs.into_iter();
        let given = given.map(|(name, value)| (name, Value::String(value)));
        Self::of(given.collect(), true, form)
    }

    fn of(given: Vec<(String, Value)>, is_query: bool, form: &'static Form) -> Result<Self, Wrong> {
        let mut seen: Vec<&str> = Vec::new();
        for (name, _value) in &given {
            let name = name.as_str();
            if !form.fields.contains(&name) {
                let hint = nearest("field", name, form.fields);
                let (name, allowed) = (shown(name), form.fields.join(", "));
                return Err(Wrong::input(format!(
                    "{name}: {hint}; allowed are {allowed}"
                )));
            }
            if seen.contains(&name) {
                return Err(Wrong::input(format!("{name} is given twice; give it once")));
            }
            seen.push(name);
        }
        Ok(Self {
            given,
            is_query,
            form,
        })
    }

    /// A text that must be given.
    pub(super) fn needed(&mut self, name: &str, allowed: &str) -> Result<String, Wrong> {
        let example = self.form.example;
        self.text(name, allowed)?.ok_or_else(|| {
            Wrong::input(format!(
                "{name} is missing; allowed is {allowed}, as in {example}"
            ))
        })
    }

    /// A text; `None` where it is not given.
    pub(super) fn text(&mut self, name: &str, allowed: &str) -> Result<Option<String>, Wrong> {
        self.take(name, allowed, |value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => None,
        })
    }

    /// A whole number from 0.
    pub(super) fn whole(&mut self, name: &str, allowed: &str) -> Result<Option<u64>, Wrong> {
        let is_query = self.is_query;
        self.take(name, allowed, |value| match value {
            Value::Number(number) => number.as_u64(),
            Value::String(text) if is_query => text.parse().ok(),
            Value::Null
            | Value::Bool(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => None,
        })
    }

    /// True or false.
    pub(super) fn flag(&mut self, name: &str) -> Result<Option<bool>, Wrong> {
        let is_query = self.is_query;
        self.take(name, "true or false", |value| match value {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) if is_query => text.parse().ok(),
            Value::Null
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => None,
        })
    }

    /// A list of any values.
    pub(super) fn list(&mut self, name: &str, allowed: &str) -> Result<Vec<Value>, Wrong> {
        let list = self.take(name, allowed, |value| match value {
            Value::Array(values) => Some(values.clone()),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => None,
        });
        Ok(list?.unwrap_or_default())
    }

    /// Takes a field out; null is as good as not given.
    fn take<T>(
        &mut self,
        name: &str,
        allowed: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, Wrong> {
        let at = self.given.iter().position(|(given, _value)| given == name);
        let value = at.map(|at| self.given.swap_remove(at).1);
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        let read = read(&value);
        read.map(Some)
            .ok_or_else(|| not_allowed(name, &value, allowed))
    }
}

/// The error about a value that a field does not take.
pub(super) fn not_allowed(name: &str, value: &Value, allowed: &str) -> Wrong {
    let value = shown(&value.to_string());
    Wrong::input(format!("{name} = {value}; allowed is {allowed}"))
}

/// The members of an object in their order; of a map, the last of two would win in silence.
struct Members(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InOrder)
    }
}

struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = Members;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: Form = Form {
        fields: &["resource", "count"],
        example: "?resource=order-create",
    };

    fn query(text: &str) -> Result<Fields, Wrong> {
        let uri = format!("/v1/admit{text}").parse().unwrap();
        Fields::of_query(&uri, &FORM)
    }

    #[test]
    fn a_query_without_its_field_is_told_which_and_how_to_give_it() {
        let wrong = query("").unwrap().needed("resource", "a name").unwrap_err();
        let text = "resource is missing; allowed is a name, as in ?resource=order-create";
        assert_eq!(wrong, Wrong::input(text));
    }

    #[test]
    fn in_a_query_texts_are_numbers_where_one_is_asked_for() {
        let mut fields = query("?count=7&resource=8").unwrap();
        assert_eq!(fields.needed("resource", "").unwrap(), "8");
        assert_eq!(fields.whole("count", "").unwrap(), Some(7));
        assert_eq!(fields.whole("count", "").unwrap(), None);
        let wrong = query("?count=x").unwrap().whole("count", "1 to 5");
        let text = "count = \"x\"; allowed is 1 to 5";
        assert_eq!(wrong.unwrap_err(), Wrong::input(text));
    }
}
