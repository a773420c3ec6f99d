//! A vector file: rules, events, and what each event gave.

use serde::Deserialize;
use serde_json::Value;
use tidegate_abi::argument::{Kind, boolean_hash, float_hash, natural_hash, text_hash};

/// A vector file.
#[derive(Debug, Deserialize)]
pub(crate) struct Script {
    /// Epoch ms of time 0.
    pub(crate) start_ms: u64,
    pub(crate) rules: Vec<Value>,
    pub(crate) events: Vec<Event>,
    pub(crate) expect: Vec<Value>,
}

/// An event at a time.
#[derive(Debug, Deserialize)]
pub(crate) struct Event {
    pub(crate) t_ms: i64,
    #[serde(flatten)]
    pub(crate) what: What,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
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
    #[serde(other)]
    Server,
}

#[derive(Debug, Deserialize)]
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
        if script.events.len() == script.expect.len() {
            Ok(script)
        } else {
            Err("not one expectation for each event".to_owned())
        }
    }

    pub(crate) fn asks_a_server(&self) -> bool {
        let server = |event: &Event| matches!(event.what, What::Server);
        self.events.iter().any(server)
    }

    pub(crate) fn clock_steps_back(&self) -> bool {
        !self.events.is_sorted_by_key(|event| event.t_ms)
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
        Value::String(text) => Some(text_hash(Kind::Text, text)),
        Value::Bool(flag) => Some(boolean_hash(*flag)),
        Value::Number(number) => Some(number.as_i64().map_or_else(
            || float_hash(Kind::Double, number.as_f64().unwrap_or(0.0)),
            natural_hash,
        )),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
