//! What a caller sends, read and checked.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tidegate_abi::argument::{Kind, boolean_hash, float_hash, natural_hash, text_hash};
use tidegate_abi::check_name;
use tidegate_abi::decision::{Class, Direction, Outcome};
use tidegate_abi::message::TOKEN;
use tidegate_limits::window::COUNT_MAX;
use tidegate_segment::gate::{Arg, Request};

use super::answer::Wrong;
use crate::tenant::permit::Token;

/// Body of `POST /v1/enter` and query of `GET /v1/admit`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    resource: String,
    #[serde(default = "one")]
    count: u64,
    origin: Option<String>,
    context: Option<String>,
    /// Arguments for hot-parameter rules.
    #[serde(default)]
    args: Vec<Value>,
    class: Option<String>,
    #[serde(default)]
    prioritized: bool,
}

const fn one() -> u64 {
    1
}

/// Most arguments of a call, and most values of a list among them.
const ARGS_MAX: usize = 16;

/// A question that passed the checks.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) resource: String,
    pub(super) origin: String,
    pub(super) context: String,
    /// All of the request but names and arguments.
    pub(super) request: Request<'static>,
    args: Vec<Argument>,
}

/// An argument, hashed.
#[derive(Debug)]
enum Argument {
    None,
    One(u64),
    Many(Vec<u64>),
}

impl Question {
    /// The arguments as the gate takes them.
    pub(super) fn args(&self) -> Vec<Arg<'_>> {
        let args = self.args.iter().map(|argument| match argument {
            Argument::None => Arg::None,
            Argument::One(value) => Arg::One(*value),
            Argument::Many(values) => Arg::Many(values),
        });
        args.collect()
    }
}

impl Asked {
    /// Checks all of it.
    pub(super) fn check(self) -> Result<Question, Wrong> {
        check("resource", &self.resource)?;
        let named = [("origin", &self.origin), ("context", &self.context)];
        for (field, name) in named {
            name.as_deref().map_or(Ok(()), |name| check(field, name))?;
        }
        check_length("args", self.args.len())?;
        let request = Request {
            count: count(self.count)?,
            direction: Direction::In,
            class: match self.class {
                None => Class::Normal,
                Some(class) => word("class", &class, Class::ALL, Class::name)?,
            },
            prioritized: self.prioritized,
            ..Request::default()
        };
        let args = self.args.iter().zip(0_u32..);
        let args = args.map(|(value, place)| argument(value, place));
        Ok(Question {
            args: args.collect::<Result<_, Wrong>>()?,
            resource: self.resource,
            origin: self.origin.unwrap_or_default(),
            context: self.context.unwrap_or_default(),
            request,
        })
    }
}

fn check_length(field: &str, length: usize) -> Result<(), Wrong> {
    if length > ARGS_MAX {
        let text = format!("{field} has {length} values; allowed are {ARGS_MAX}");
        return Err(Wrong::input(text));
    }
    Ok(())
}

/// Hashes an argument. A whole number is an int where it fits, else a long; any other is a double.
fn argument(argument: &Value, place: u32) -> Result<Argument, Wrong> {
    match argument {
        Value::Null => Ok(Argument::None),
        Value::Array(values) => {
            check_length(&format!("args[{place}]"), values.len())?;
            let values = values.iter().map(|one| value(one, place));
            Ok(Argument::Many(values.collect::<Result<_, Wrong>>()?))
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            value(argument, place).map(Argument::One)
        }
    }
}

fn value(argument: &Value, place: u32) -> Result<u64, Wrong> {
    match argument {
        Value::String(text) => Ok(text_hash(Kind::Text, text)),
        Value::Bool(flag) => Ok(boolean_hash(*flag)),
        Value::Number(number) => Ok(number.as_i64().map_or_else(
            || float_hash(Kind::Double, number.as_f64().unwrap_or(0.0)),
            natural_hash,
        )),
        Value::Null | Value::Array(_) | Value::Object(_) => Err(Wrong::input(format!(
            "args[{place}] = {argument}; allowed are a text, a number, true, false, null, or a list \
             of these without null"
        ))),
    }
}

/// Body of `POST /v1/exit`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ended {
    permit: String,
    outcome: String,
}

impl Ended {
    /// The permit's token and how the request ended.
    pub(super) fn check(&self) -> Result<(Token, Outcome), Wrong> {
        let token = token(&self.permit).ok_or_else(|| {
            Wrong::input("permit is not one of ours; it has 32 hexadecimal digits")
        })?;
        let outcome = word("outcome", &self.outcome, Outcome::ALL, Outcome::name)?;
        Ok((token, outcome))
    }
}

/// Reads a JSON body.
pub(super) fn json<T: DeserializeOwned>(body: Result<Bytes, BytesRejection>) -> Result<T, Wrong> {
    let body = body.map_err(|rejection| {
        let text = format!("the body cannot be read: {}", rejection.body_text());
        Wrong::new(rejection.status(), text)
    })?;
    let mut reader = serde_json::Deserializer::from_slice(&body);
    let read: T = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        match path.as_str() {
            "." => Wrong::input(error.inner().to_string()),
            field => Wrong::input(format!("{field}: {}", error.inner())),
        }
    })?;
    reader
        .end()
        .map_err(|error| Wrong::input(error.to_string()))?;
    Ok(read)
}

/// A token as a caller sees it.
pub(super) fn token_text(token: &Token) -> String {
    format!("{:032x}", u128::from_be_bytes(*token))
}

fn token(text: &str) -> Option<Token> {
    let digits = text.len() == 2 * TOKEN && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u128::from_str_radix(text, 16).ok()?;
    digits.then(|| number.to_be_bytes())
}

fn check(field: &str, name: &str) -> Result<(), Wrong> {
    match check_name(name.as_bytes()) {
        Ok(_name) => Ok(()),
        Err(fault) => Err(Wrong::input(format!("{field} {}", fault.text()))),
    }
}

fn count(count: u64) -> Result<u32, Wrong> {
    let fitting = u32::try_from(count).ok();
    let fitting = fitting.filter(|count| (1..=COUNT_MAX).contains(count));
    fitting.ok_or_else(|| Wrong::input(format!("count = {count}; allowed is 1 to {COUNT_MAX}")))
}

fn word<T: Copy>(
    field: &str,
    text: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, Wrong> {
    let found = all.iter().copied().find(|value| name(*value) == text);
    found.ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|value| name(*value)).collect();
        let allowed = names.join(", ");
        Wrong::input(format!("{field} = {text:?}; allowed are {allowed}"))
    })
}
