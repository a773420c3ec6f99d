//! `tidegate enter`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::json;
use tidegate_abi::argument::Arg;
use tidegate_abi::decision::{Class, Direction, Outcome};
use tidegate_abi::message::{ArgsBuffer, EnterAnswer, EnterRequest};
use tidegate_limits::window::COUNT_MAX;

use super::argument::{self, Argument};
use super::output::{Failure, REFUSED, say, say_json};
use super::place::Surroundings;
use crate::caller::GateConnection;
use crate::plain::plain;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tidegate enter order-create              ask once and give the permit back
  tidegate enter order-create --hold 2.5   keep it in flight for 2.5 seconds
  tidegate enter nightly --hold 60 || echo \"not now\"
  tidegate enter query --arg 1001 --arg text:1001 --arg char:x

Exit codes: 0 admitted, 1 no answer, 3 refused.")]
pub(super) struct Options {
    /// Name of the resource
    resource: String,
    /// Number of requests to ask for at once
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(COUNT_MAX)))]
    count: u32,
    /// Seconds to hold the permit before it is given back
    #[arg(long, value_name = "SECS", default_value = "0", allow_negative_numbers = true, value_parser = seconds)]
    hold: Duration,
    /// Name of the caller, for rules that look at it
    #[arg(long, default_value = "")]
    origin: String,
    /// Context in which the work runs, for chain rules
    #[arg(long, default_value = "")]
    context: String,
    /// An argument, for hot-parameter rules; repeat for more. TYPE:VALUE names its type: text, int, long, short, byte,
    /// double, float, boolean, char, or none: for an argument that is left out. Without a type a whole number is an
    /// int (a long when it does not fit), anything else a text
    #[arg(long = "arg", value_name = "[TYPE:]VALUE", allow_hyphen_values = true, value_parser = argument::parse)]
    args: Vec<Argument>,
    /// Priority class: in overload the least important requests are refused first
    #[arg(long, default_value = "normal", value_parser = named(Class::ALL, Class::name))]
    class: Class,
    /// Whether the request comes in, or is a call that the service makes
    #[arg(long, default_value = "in", value_parser = named(Direction::ALL, Direction::name))]
    direction: Direction,
    /// Allow borrowing from the next half second when a QPS rule is full
    #[arg(long)]
    prioritized: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Directory of the agent's sockets
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
}

/// Takes one of these by its name.
fn named<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let names = all.iter().map(move |one| name(*one));
    PossibleValuesParser::new(names).try_map(move |given| {
        let mut all = all.iter().copied();
        all.find(|one| name(*one) == given).ok_or("no such name")
    })
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_no_number| allowed())?;
    Duration::try_from_secs_f64(seconds).map_err(|_out_of_range| allowed())
}

fn allowed() -> String {
    "a number of seconds, 0 or more, such as 2.5".to_owned()
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let (here, given) = (Surroundings::here(), options.runtime_dir.as_deref());
    let caller = GateConnection::connect(&here.to_ask(given));
    let mut caller = caller.map_err(|error| here.unanswered(given, &error))?;
    let values = options.args.iter().map(Argument::as_arg);
    let arguments = ArgsBuffer::of(&values.collect::<Vec<Arg<'_>>>());
    let answer = caller
        .enter(EnterRequest {
            origin: &options.origin,
            context: &options.context,
            count: options.count,
            class: options.class,
            direction: options.direction,
            prioritized: options.prioritized,
            args: arguments.args(),
            ..EnterRequest::of(&options.resource)
        })
        .map_err(Failure::of)?;
    if options.json {
        say_json(answer_json(answer));
    } else {
        say(plain(&answer_text(&options.resource, answer)));
    }
    match answer {
        EnterAnswer::Admitted { token, .. } => {
            caller.wait(options.hold).map_err(Failure::of)?;
            caller.exit(token, Outcome::Ok).map_err(Failure::of)
        }
        EnterAnswer::Refused { .. } => Err(Failure::Told(REFUSED)),
    }
}

fn answer_json(answer: EnterAnswer<'_>) -> serde_json::Value {
    match answer {
        EnterAnswer::Admitted { waited_ms, .. } => json!({"admitted": true, "wait_ms": waited_ms}),
        EnterAnswer::Refused {
            kind,
            reason,
            retry,
            rule: _,
            retry_after_ms,
            value,
            limit,
            id,
        } => json!({
            "admitted": false,
            "kind": kind.name(),
            "rule": (!id.is_empty()).then_some(id),
            "reason": reason.name(),
            "value": value,
            "limit": limit,
            "retry": retry,
            "retry_after_ms": retry_after_ms,
        }),
    }
}

fn answer_text(resource: &str, answer: EnterAnswer<'_>) -> String {
    match answer {
        EnterAnswer::Admitted { waited_ms: 0, .. } => format!("{resource}: admitted"),
        EnterAnswer::Admitted { waited_ms, .. } => {
            format!("{resource}: admitted after a wait of {waited_ms} ms")
        }
        EnterAnswer::Refused {
            kind,
            reason,
            retry_after_ms,
            value,
            limit,
            id,
            ..
        } => {
            let by = if id.is_empty() {
                kind.name().to_owned()
            } else {
                format!("{} rule {id}", kind.name())
            };
            let reason = reason.name();
            let measured = if (value, limit) == (0, 0) {
                String::new()
            } else {
                format!(": {value} of {limit}")
            };
            format!(
                "{resource}: refused by {by} ({reason}{measured}); retry in {retry_after_ms} ms"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_abi::decision::{Reason, RefusalKind};

    use super::*;

    const BY_RULE: EnterAnswer<'_> = EnterAnswer::Refused {
        kind: RefusalKind::Flow,
        reason: Reason::Qps,
        retry: true,
        rule: 4,
        retry_after_ms: 120,
        value: 100,
        limit: 99,
        id: "orders",
    };
    const BY_SCOPE: EnterAnswer<'_> = EnterAnswer::Refused {
        kind: RefusalKind::System,
        reason: Reason::Overload,
        retry: false,
        rule: u32::MAX,
        retry_after_ms: 1000,
        value: 0,
        limit: 0,
        id: "",
    };

    #[test]
    fn a_refusal_says_who_why_and_when() {
        assert_eq!(
            answer_text("a", BY_RULE),
            "a: refused by flow rule orders (qps: 100 of 99); retry in 120 ms"
        );
        assert_eq!(
            answer_text("a", BY_SCOPE),
            "a: refused by system (overload); retry in 1000 ms"
        );
        assert_eq!(answer_json(BY_RULE)["rule"], "orders");
        assert_eq!(answer_json(BY_SCOPE)["rule"], serde_json::Value::Null);
    }

    #[test]
    fn seconds_that_are_none_are_refused() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        for text in ["-1", "nan", "inf", "1e400", "two", ""] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
