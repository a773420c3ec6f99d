//! What a caller sends, read and checked.

use axum::body::Bytes;
use axum::extract::Query;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::http::{StatusCode, Uri};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tidegate_abi::argument::{Arg, Kind, boolean_hash, float_hash, natural_hash, text_hash};
use tidegate_abi::check_name;
use tidegate_abi::decision::{Class, Direction, Outcome};
use tidegate_abi::message::{ARGS_MAX, TOKEN, VALUES_MAX};
use tidegate_limits::window::COUNT_MAX;
use tidegate_segment::gate::Request;

use super::BODY_MAX;
use super::answer::Wrong;
use crate::door::arguments::Arguments;
use crate::tenant::permit::Token;
use crate::tenant::question;

/// Body of `POST /v1/enter` and query of `GET /v1/admit`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `resource`")]
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
    direction: Option<String>,
    #[serde(default)]
    prioritized: bool,
}

const fn one() -> u64 {
    1
}

/// A question that passed the checks.
#[derive(Debug)]
pub(super) struct Question {
    resource: String,
    origin: String,
    context: String,
    /// All of the request but names and arguments.
    request: Request<'static>,
    arguments: Arguments,
}

impl Question {
    /// The arguments as the gate takes them.
    pub(super) fn args(&self) -> Vec<Arg<'_>> {
        self.arguments.args()
    }

    /// The question as the gate is asked it.
    pub(super) fn with<'q>(&'q self, args: &'q [Arg<'q>]) -> question::Question<'q> {
        question::Question {
            resource: &self.resource,
            origin: &self.origin,
            context: &self.context,
            request: Request {
                args,
                ..self.request
            },
        }
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
        let request = Request {
            count: count(self.count)?,
            direction: match self.direction {
                None => Direction::In,
                Some(way) => word("direction", &way, Direction::ALL, Direction::name)?,
            },
            class: match self.class {
                None => Class::Normal,
                Some(class) => word("class", &class, Class::ALL, Class::name)?,
            },
            prioritized: self.prioritized,
            ..Request::default()
        };
        Ok(Question {
            arguments: arguments(&self.args)?,
            resource: self.resource,
            origin: self.origin.unwrap_or_default(),
            context: self.context.unwrap_or_default(),
            request,
        })
    }
}

fn arguments(given: &[Value]) -> Result<Arguments, Wrong> {
    if given.len() > ARGS_MAX {
        let many = given.len();
        let text = format!("args has {many} values; allowed are {ARGS_MAX}");
        return Err(Wrong::input(text));
    }
    let mut arguments = Arguments::default();
    for (argument, place) in given.iter().zip(0_u32..) {
        match argument {
            Value::Null => arguments.push([]),
            Value::Array(values) => {
                let values = values.iter().map(|one| value(one, place));
                arguments.push(values.collect::<Result<Vec<_>, Wrong>>()?);
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                arguments.push([value(argument, place)?]);
            }
        }
    }
    let many = arguments.values();
    if many > VALUES_MAX {
        let text = format!("args has {many} values in all; allowed are {VALUES_MAX}");
        return Err(Wrong::input(text));
    }
    Ok(arguments)
}

/// Hashes a value. A whole number is an int where it fits, else a long; any other is a double.
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
#[serde(
    deny_unknown_fields,
    expecting = "an object with `permit` and `outcome`"
)]
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
        let text = match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                format!("the body is too long; allowed are {BODY_MAX} bytes")
            }
            _other => format!("the body cannot be read: {}", rejection.body_text()),
        };
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

/// Reads a query.
pub(super) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Wrong> {
    let text = uri.query().unwrap_or_default();
    // The extractor would put a sign of its own in the place of such bytes, and so take one name for another.
    if percent_decode_str(text).decode_utf8().is_err() {
        let text = "the query is not UTF-8; allowed are names in UTF-8, their bytes as %XX";
        return Err(Wrong::input(text));
    }
    let Query(read) = Query::try_from_uri(uri).map_err(|rejection: QueryRejection| {
        let why = rejection.body_text();
        let why = why.trim_start_matches("Failed to deserialize query string: ");
        Wrong::input(format!("query: {why}"))
    })?;
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

pub(super) fn check(field: &str, name: &str) -> Result<(), Wrong> {
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

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::extract::FromRequest as _;
    use axum::http::Request;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "what is at fault is not read")]
    struct Wanted {
        resource: String,
    }

    #[test]
    fn a_query_without_its_field_is_told_which() {
        let uri = Uri::from_static("/v1/explain");
        let wrong = query::<Wanted>(&uri).unwrap_err();
        assert_eq!(wrong, Wrong::input("query: missing field `resource`"));
    }

    #[tokio::test]
    async fn a_body_that_is_too_long_is_told_what_is_allowed() {
        use axum::extract::DefaultBodyLimit;
        let mut request = Request::new(Body::from(vec![b'x'; BODY_MAX + 1]));
        DefaultBodyLimit::max(BODY_MAX).apply(&mut request);
        let wrong = json::<Wanted>(Bytes::from_request(request, &()).await).unwrap_err();
        let text = "the body is too long; allowed are 65536 bytes";
        assert_eq!(wrong, Wrong::new(StatusCode::PAYLOAD_TOO_LARGE, text));
    }
}
