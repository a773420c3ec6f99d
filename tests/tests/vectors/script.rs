//! A vector file: rules, events, and what each event gave.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Map, Value};
use tidegate_abi::argument::{ArgumentKind, boolean_hash, float_hash, natural_hash, text_hash};

/// A vector file. A field that is not here is refused: what is not read would not be tested.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    schema: u32,
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "about")]
    _about: String,
    #[serde(rename = "source")]
    _source: String,
    /// Epoch ms of time 0.
    pub(crate) start_ms: u64,
    pub(crate) rules: Vec<Value>,
    pub(crate) events: Vec<Event>,
    pub(crate) expect: Vec<Value>,
}

/// An event at a time.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub(crate) struct Event {
    pub(crate) t_ms: u64,
    pub(crate) what: What,
}

/// Events that only a token server answers; they are not read.
const SERVER: &[&str] = &[
    "token",
    "param_token",
    "connect",
    "disconnect",
    "server_config",
    "concurrent_acquire",
    "concurrent_release",
];

/// Events that are read.
const OURS: &[&str] = &[
    "enter",
    "exit",
    "breakers",
    "stats",
    "set_system",
    "load_rules",
];

/// The last ms of the epoch that a clock of ns holds with all times of rules behind it (the year 2191).
const TIME_MAX_MS: u64 = 7_000_000_000_000;

impl TryFrom<Map<String, Value>> for Event {
    type Error = String;

    fn try_from(mut fields: Map<String, Value>) -> Result<Self, String> {
        let t_ms = fields.remove("t_ms").and_then(|time| time.as_u64());
        let t_ms = t_ms.ok_or_else(|| format!("an event without a whole t_ms: {fields:?}"))?;
        let op = fields.get("op").and_then(Value::as_str);
        let op = op.ok_or_else(|| format!("an event without an op: {fields:?}"))?;
        let what = if SERVER.contains(&op) {
            What::Server
        } else if OURS.contains(&op) {
            let told = Value::Object(fields.clone());
            serde_json::from_value(told).map_err(|error| format!("{error} in {fields:?}"))?
        } else {
            What::Unknown(op.to_owned())
        };
        Ok(Self { t_ms, what })
    }
}

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum What {
    Enter(Enter),
    Exit {
        id: u64,
        error: bool,
    },
    Breakers {
        resource: String,
    },
    Stats {
        resource: String,
        origin: Option<String>,
    },
    SetSystem {
        load: Option<f64>,
        cpu: Option<f64>,
    },
    LoadRules {
        rules: Vec<Value>,
    },
    /// For a token server.
    #[serde(skip)]
    Server,
    /// None that the runner knows.
    #[serde(skip)]
    Unknown(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Enter {
    pub(crate) id: u64,
    pub(crate) resource: String,
    #[serde(default)]
    pub(crate) origin: String,
    pub(crate) context: Option<String>,
    #[serde(default)]
    pub(crate) entry: Entry,
    #[serde(default = "one")]
    pub(crate) count: u32,
    #[serde(default)]
    pub(crate) prioritized: bool,
    #[serde(default)]
    pub(crate) args: Vec<Value>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Entry {
    In,
    #[default]
    Out,
}

/// An argument, hashed.
#[derive(Debug)]
pub(crate) enum Hashed {
    None,
    One(u64),
    Many(Vec<u64>),
}

const fn one() -> u32 {
    1
}

impl Script {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let script: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if script.schema != 1 {
            return Err(format!("schema {}; this runner reads 1", script.schema));
        }
        let (events, expected) = (script.events.len(), script.expect.len());
        if events != expected {
            return Err(format!("{events} events and {expected} expectations"));
        }
        let last_ms = script.events.iter().map(|event| event.t_ms).max();
        let last_ms = script.start_ms.saturating_add(last_ms.unwrap_or(0));
        if last_ms > TIME_MAX_MS {
            return Err(format!(
                "a time of {last_ms} ms since the epoch; at most {TIME_MAX_MS}"
            ));
        }
        script.check_ids()?;
        Ok(script)
    }

    /// An exit is of a request that entered before and has not ended.
    fn check_ids(&self) -> Result<(), String> {
        let (mut entered, mut ended) = (HashSet::new(), HashSet::new());
        for event in &self.events {
            if let What::Enter(enter) = &event.what
                && !entered.insert(enter.id)
            {
                return Err(format!("two requests have the id {}", enter.id));
            }
            let What::Exit { id, .. } = &event.what else {
                continue;
            };
            if !entered.contains(id) {
                return Err(format!("request {id} ends, and never entered"));
            }
            if !ended.insert(*id) {
                return Err(format!("request {id} ends twice"));
            }
        }
        Ok(())
    }

    /// Every list of rules in it.
    pub(crate) fn rule_lists(&self) -> impl Iterator<Item = &[Value]> {
        let loaded = self.events.iter().filter_map(|event| {
            let What::LoadRules { rules } = &event.what else {
                return None;
            };
            Some(rules.as_slice())
        });
        std::iter::once(self.rules.as_slice()).chain(loaded)
    }

    /// Why it cannot be run here, if it cannot.
    pub(crate) fn foreign(&self) -> Option<String> {
        let unknown = self.events.iter().find_map(|event| {
            let What::Unknown(op) = &event.what else {
                return None;
            };
            Some(op)
        });
        if self.asks_a_server() {
            Some("it asks a token server".to_owned())
        } else if let Some(op) = unknown {
            Some(format!("it has an event `{op}`, of which nothing is known"))
        } else if !self.events.is_sorted_by_key(|event| event.t_ms) {
            Some("its clock steps back; ours is monotonic".to_owned())
        } else {
            None
        }
    }

    fn asks_a_server(&self) -> bool {
        let is_servers = |rule: &Value| {
            let kind = rule["type"].as_str();
            kind.is_some_and(|kind| kind.starts_with("cluster_"))
        };
        let server = |event: &Event| matches!(event.what, What::Server);
        self.events.iter().any(server) || self.rule_lists().flatten().any(is_servers)
    }
}

impl Enter {
    /// The name of the context it runs in.
    pub(crate) fn context_name(&self) -> &str {
        match &self.context {
            Some(context) => context,
            None if self.origin.is_empty() => "sentinel_default_context",
            None => "golden_ctx",
        }
    }

    pub(crate) fn hashed(&self) -> Vec<Hashed> {
        self.args.iter().map(hashed).collect()
    }
}

fn hashed(argument: &Value) -> Hashed {
    if let Value::Array(values) = argument {
        return Hashed::Many(values.iter().filter_map(value).collect());
    }
    value(argument).map_or(Hashed::None, Hashed::One)
}

fn value(argument: &Value) -> Option<u64> {
    match argument {
        Value::String(text) => Some(text_hash(ArgumentKind::Text, text)),
        Value::Bool(flag) => Some(boolean_hash(*flag)),
        Value::Number(number) => Some(number.as_i64().map_or_else(
            || float_hash(ArgumentKind::Double, number.as_f64().unwrap_or(0.0)),
            natural_hash,
        )),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[test]
fn a_field_that_is_not_read_is_refused() {
    let with = |event: &str| {
        let head =
            "{\"schema\": 1, \"name\": \"\", \"about\": \"\", \"source\": \"\", \"start_ms\": 0";
        Script::parse(&format!(
            "{head}, \"rules\": [], \"events\": [{event}], \"expect\": [null]}}"
        ))
    };
    let enter = "\"op\": \"enter\", \"id\": 1, \"resource\": \"r\"";
    with(&format!("{{\"t_ms\": 0, {enter}}}")).unwrap();
    for (event, told) in [
        (format!("{{\"t_ms\": 0, {enter}, \"colour\": 1}}"), "colour"),
        (format!("{{\"t_ms\": 0.5, {enter}}}"), "whole t_ms"),
        ("{\"t_ms\": -1, \"op\": \"stats\"}".to_owned(), "whole t_ms"),
        ("{\"t_ms\": 0}".to_owned(), "without an op"),
        (
            "{\"t_ms\": 7000000000001, \"op\": \"leave\"}".to_owned(),
            "at most",
        ),
        (
            "{\"t_ms\": 0, \"op\": \"exit\", \"id\": 1, \"error\": true}".to_owned(),
            "never entered",
        ),
        (
            "{\"t_ms\": 0, \"op\": \"exit\", \"id\": 1, \"error\": true, \"count\": 2}".to_owned(),
            "count",
        ),
    ] {
        let fault = with(&event).unwrap_err();
        assert!(fault.contains(told), "{fault}");
    }
    Script::parse("{").unwrap_err();
    let leaves = with("{\"t_ms\": 0, \"op\": \"leave\"}").unwrap();
    assert!(leaves.foreign().unwrap().contains("`leave`"));
}
