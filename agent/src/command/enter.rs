//! `tidegate enter`.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tidegate_abi::decision::{Class, Direction, Outcome};
use tidegate_abi::message::{Answer, Ask};

use super::output::{Failure, REFUSED, say};
use super::place::Surroundings;
use crate::caller::GateConnection;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tidegate enter order-create              ask once and give the permit back
  tidegate enter order-create --hold 2.5   keep it in flight for 2.5 seconds
  tidegate enter nightly --hold 60 || echo \"not now\"

Exit codes: 0 admitted, 1 no answer, 3 refused.")]
pub(super) struct Options {
    /// Name of the resource
    resource: String,
    /// How many requests at once
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// Seconds to keep the permit
    #[arg(long, value_name = "SECS", default_value = "0", value_parser = seconds)]
    hold: Duration,
    /// Name of the caller, for rules that look at it
    #[arg(long, default_value = "")]
    origin: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Directory of the agent's sockets
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_no_number| allowed())?;
    Duration::try_from_secs_f64(seconds).map_err(|_out_of_range| allowed())
}

fn allowed() -> String {
    "a number of seconds, 0 or more, such as 2.5".to_owned()
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let directory = Surroundings::here().to_ask(options.runtime_dir.as_deref());
    let mut caller = GateConnection::connect(&directory).map_err(Failure::of)?;
    let answer = caller
        .enter(Ask {
            resource: &options.resource,
            origin: &options.origin,
            count: options.count,
            class: Class::Normal,
            direction: Direction::In,
        })
        .map_err(Failure::of)?;
    say(if options.json {
        answer_json(answer).to_string()
    } else {
        answer_text(&options.resource, answer)
    });
    match answer {
        Answer::Admitted { token, .. } => {
            caller.wait(options.hold).map_err(Failure::of)?;
            caller.exit(token, Outcome::Ok).map_err(Failure::of)
        }
        Answer::Refused { .. } => Err(Failure::Told(REFUSED)),
    }
}

fn answer_json(answer: Answer) -> serde_json::Value {
    match answer {
        Answer::Admitted { waited_ms, .. } => json!({"admitted": true, "wait_ms": waited_ms}),
        Answer::Refused {
            kind,
            reason,
            retry,
            rule,
            retry_after_ms,
        } => json!({
            "admitted": false,
            "kind": kind.name(),
            "rule": (rule != u32::MAX).then_some(rule),
            "reason": reason.name(),
            "retry": retry,
            "retry_after_ms": retry_after_ms,
        }),
    }
}

fn answer_text(resource: &str, answer: Answer) -> String {
    match answer {
        Answer::Admitted { waited_ms: 0, .. } => format!("{resource}: admitted"),
        Answer::Admitted { waited_ms, .. } => {
            format!("{resource}: admitted after a wait of {waited_ms} ms")
        }
        Answer::Refused {
            kind,
            reason,
            rule,
            retry_after_ms,
            ..
        } => {
            let by = if rule == u32::MAX {
                kind.name().to_owned()
            } else {
                format!("{} rule {rule}", kind.name())
            };
            let reason = reason.name();
            format!("{resource}: refused by {by} ({reason}); come again in {retry_after_ms} ms")
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_abi::decision::{Reason, RefusalKind};

    use super::*;

    const BY_RULE: Answer = Answer::Refused {
        kind: RefusalKind::Flow,
        reason: Reason::Qps,
        retry: true,
        rule: 4,
        retry_after_ms: 120,
    };
    const BY_SCOPE: Answer = Answer::Refused {
        kind: RefusalKind::System,
        reason: Reason::Overload,
        retry: false,
        rule: u32::MAX,
        retry_after_ms: 1000,
    };

    #[test]
    fn a_refusal_says_who_why_and_when() {
        assert_eq!(
            answer_text("a", BY_RULE),
            "a: refused by flow rule 4 (qps); come again in 120 ms"
        );
        assert_eq!(
            answer_text("a", BY_SCOPE),
            "a: refused by system (overload); come again in 1000 ms"
        );
        assert_eq!(answer_json(BY_RULE)["rule"], 4);
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
