//! What a caller sends, read and checked.

use serde_json::Value;
use tidegate_abi::argument::{
    Arg, ArgumentKind, boolean_hash, float_hash, natural_hash, text_hash,
};
use tidegate_abi::check_name;
use tidegate_abi::decision::{Class, Direction, Outcome};
use tidegate_abi::message::{ARGS_MAX, TOKEN, VALUES_MAX};
use tidegate_limits::window::COUNT_MAX;
use tidegate_segment::gate::Request;

use super::answer::Wrong;
use super::fields::{Fields, Form, not_allowed};
use crate::door::arguments::Arguments;
use crate::schema::source::shown;
use crate::tenant::permit::PermitToken;
use crate::tenant::question;

/// Body of `POST /v1/enter`.
pub(super) const ENTER: Form = Form {
    fields: &[
        "resource",
        "count",
        "origin",
        "context",
        "args",
        "class",
        "direction",
        "prioritized",
    ],
    example: r#"{"resource":"order-create"}"#,
};

/// Query of `GET /v1/admit`.
pub(super) const ADMIT: Form = Form {
    fields: &[
        "resource",
        "count",
        "origin",
        "context",
        "class",
        "direction",
        "prioritized",
    ],
    example: "?resource=order-create",
};

/// Body of `POST /v1/exit`.
pub(super) const EXIT: Form = Form {
    fields: &["permit", "outcome"],
    example: r#"{"permit":"...","outcome":"ok"}"#,
};

/// Query of `GET /v1/explain`.
pub(super) const EXPLAIN: Form = Form {
    fields: &["resource", "tenant"],
    example: "?resource=order-create",
};

/// Query of `GET /v1/events`.
pub(super) const EVENTS: Form = Form {
    fields: &["after"],
    example: "?after=1796000000000",
};

const NAME: &str = "a text of 1 to 255 bytes without control characters";
const A_PERMIT: &str = "the 32 hexadecimal digits that /v1/enter gave";
const A_VALUE: &str = "a text, a number, true, false, null, or a list of these without null";

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

impl Question {
    /// Takes all fields out and checks them.
    pub(super) fn take(mut fields: Fields) -> Result<Self, Wrong> {
        let resource = resource(&mut fields)?;
        let origin = name(&mut fields, "origin")?.unwrap_or_default();
        let context = name(&mut fields, "context")?.unwrap_or_default();
        let request = Request {
            count: count(&mut fields)?,
            direction: word(&mut fields, "direction", Direction::ALL, Direction::name)?
                .unwrap_or(Direction::In),
            class: word(&mut fields, "class", Class::ALL, Class::name)?.unwrap_or(Class::Normal),
            prioritized: fields.flag("prioritized")?.unwrap_or(false),
            ..Request::default()
        };
        let allowed = format!("a list of at most {ARGS_MAX} arguments");
        Ok(Self {
            arguments: arguments(&fields.list("args", &allowed)?)?,
            resource,
            origin,
            context,
            request,
        })
    }
}

fn arguments(given: &[Value]) -> Result<Arguments, Wrong> {
    if given.len() > ARGS_MAX {
        let many = given.len();
        let text = format!(
            "args has {many} values; allowed are {ARGS_MAX}: leave out those that no rule is for"
        );
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
        Value::String(text) => Ok(text_hash(ArgumentKind::Text, text)),
        Value::Bool(flag) => Ok(boolean_hash(*flag)),
        Value::Number(number) => Ok(number.as_i64().map_or_else(
            || float_hash(ArgumentKind::Double, number.as_f64().unwrap_or(0.0)),
            natural_hash,
        )),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(not_allowed(&format!("args[{place}]"), argument, A_VALUE))
        }
    }
}

/// The permit's token and how the request ended.
pub(super) fn ended(mut fields: Fields) -> Result<(PermitToken, Outcome), Wrong> {
    let permit = fields.needed("permit", A_PERMIT)?;
    let token =
        token(&permit).ok_or_else(|| not_allowed("permit", &Value::String(permit), A_PERMIT))?;
    let names = names(Outcome::ALL, Outcome::name);
    let outcome = fields.needed("outcome", &names)?;
    let outcome = one_of("outcome", &outcome, Outcome::ALL, Outcome::name)?;
    Ok((token, outcome))
}

/// A token as a caller sees it.
pub(super) fn token_text(token: &PermitToken) -> String {
    format!("{:032x}", u128::from_be_bytes(*token))
}

fn token(text: &str) -> Option<PermitToken> {
    let digits = text.len() == 2 * TOKEN && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u128::from_str_radix(text, 16).ok()?;
    digits.then(|| number.to_be_bytes())
}

/// The name of a resource, which must be given.
pub(super) fn resource(fields: &mut Fields) -> Result<String, Wrong> {
    let given = fields.needed("resource", NAME)?;
    checked("resource", given)
}

/// A name that may be given.
pub(super) fn name(fields: &mut Fields, field: &str) -> Result<Option<String>, Wrong> {
    let given = fields.text(field, NAME)?;
    given.map(|given| checked(field, given)).transpose()
}

fn checked(field: &str, name: String) -> Result<String, Wrong> {
    match check_name(name.as_bytes()) {
        Ok(_name) => Ok(name),
        Err(fault) => {
            let (value, why) = (shown(&name), fault.text());
            Err(Wrong::input(format!("{field} = \"{value}\" {why}")))
        }
    }
}

fn count(fields: &mut Fields) -> Result<u32, Wrong> {
    let allowed = format!("a whole number from 1 to {COUNT_MAX}");
    let count = fields.whole("count", &allowed)?.unwrap_or(1);
    let fitting = u32::try_from(count).ok();
    let fitting = fitting.filter(|count| (1..=COUNT_MAX).contains(count));
    fitting.ok_or_else(|| not_allowed("count", &count.into(), &allowed))
}

fn word<T: Copy>(
    fields: &mut Fields,
    field: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<Option<T>, Wrong> {
    let given = fields.text(field, &names(all, &name))?;
    given
        .map(|text| one_of(field, &text, all, &name))
        .transpose()
}

fn one_of<T: Copy>(
    field: &str,
    text: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, Wrong> {
    let found = all.iter().copied().find(|value| name(*value) == text);
    found.ok_or_else(|| not_allowed(field, &text.into(), &names(all, &name)))
}

/// All words of a field, as a message names them.
fn names<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str) -> String {
    let names: Vec<_> = all.iter().map(|value| name(*value)).collect();
    format!("one of {}", names.join(", "))
}
