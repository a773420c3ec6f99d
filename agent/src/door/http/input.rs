//! What a caller sends, read and checked.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tidegate_abi::check_name;
use tidegate_abi::decision::{Class, Direction, Outcome};
use tidegate_abi::message::TOKEN;
use tidegate_limits::window::COUNT_MAX;
use tidegate_segment::gate::Request;

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
    /// Arguments for hot-parameter rules.
    #[serde(default)]
    args: Vec<serde_json::Value>,
    class: Option<String>,
}

const fn one() -> u64 {
    1
}

/// Most arguments of a call.
const ARGS_MAX: usize = 16;

impl Asked {
    /// The resource's name and the request.
    pub(super) fn check(self) -> Result<(String, Request<'static>), Wrong> {
        check("resource", &self.resource)?;
        if let Some(origin) = &self.origin {
            check("origin", origin)?;
        }
        if self.args.len() > ARGS_MAX {
            let text = format!(
                "args has {} values; allowed are {ARGS_MAX}",
                self.args.len()
            );
            return Err(Wrong::input(text));
        }
        let request = Request {
            count: count(self.count)?,
            direction: Direction::In,
            class: match self.class {
                None => Class::Normal,
                Some(class) => word("class", &class, Class::ALL, Class::name)?,
            },
            ..Request::default()
        };
        Ok((self.resource, request))
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
