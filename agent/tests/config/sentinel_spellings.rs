//! However a rule list is spelt, if Sentinel's readers take it, it loads to the same rules.

use std::fmt::Write as _;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_agent::rule::{Body, QuirksOption, RuleSet};
use tidegate_agent::rule_source::form;
use tidegate_agent::schema::source::Source;

fn flow() -> impl Strategy<Value = Value> {
    let behavior = prop_oneof![Just(0), Just(2), Just(3)];
    (any::<bool>(), 1..1000_u32, 0..=1_u8, behavior, 1..600_u32).prop_map(
        |(regex, count, grade, behavior, wait)| {
            let behavior = if regex { 0 } else { behavior };
            json!({"resource": "a", "count": count, "grade": grade, "regex": regex, "limitApp": "web",
                "controlBehavior": behavior, "maxQueueingTimeMs": wait, "warmUpPeriodSec": 7})
        },
    )
}

fn degrade() -> impl Strategy<Value = Value> {
    (0..=1_u8, 1..60_u32, 1..500_u32).prop_map(|(grade, open, least)| {
        json!({"resource": "it's \"b\"", "grade": grade, "count": 1, "timeWindow": open,
            "minRequestAmount": least, "statIntervalMs": 1000, "slowRatioThreshold": 0.25})
    })
}

fn param() -> impl Strategy<Value = Value> {
    (-3..4_i32, 0..1000_u32, 1..60_u32, 0..9_u32).prop_map(|(index, count, duration, burst)| {
        json!({"resource": "c\\d", "paramIdx": index, "count": count, "durationInSec": duration, "burstCount": burst,
            "paramFlowItemList": [{"object": "7", "classType": "int", "count": count}]})
    })
}

fn system() -> impl Strategy<Value = Value> {
    (0..9000_u32, -1..100_i32).prop_map(|(rt, threads)| {
        json!({"highestSystemLoad": -1, "highestCpuUsage": 0.5, "avgRt": rt, "maxThread": threads, "qps": 9})
    })
}

fn rule() -> impl Strategy<Value = Value> {
    let authority = Just(json!({"resource": "d", "limitApp": "x,y", "strategy": 1}));
    prop_oneof![flow(), degrade(), param(), system(), authority]
}

/// Writes values in spellings that it picks by these bytes.
struct Speller<'p> {
    picks: std::iter::Cycle<std::slice::Iter<'p, u8>>,
    text: String,
}

impl Speller<'_> {
    fn pick(&mut self, of: usize) -> usize {
        usize::from(*self.picks.next().unwrap()) % of
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        let picked = self.pick(all.len());
        *all.get(picked).unwrap()
    }

    fn push(&mut self, of: &[&str]) {
        let picked = self.one_of(of);
        self.text.push_str(picked);
    }

    fn blank(&mut self) {
        self.push(&["", " ", "\n", "/* , } ] */", "// \" [ {\n", "\t\r\n"]);
    }

    fn value(&mut self, value: &Value) {
        self.blank();
        match value {
            Value::Number(number) => self.number(&number.to_string()),
            Value::Bool(true) => self.push(&["true", "'true'", "1", "\"1\""]),
            Value::Bool(false) => self.push(&["false", "'false'", "0", "\"0\""]),
            Value::String(text) => self.quoted(text),
            Value::Array(items) => {
                self.text.push('[');
                for item in items {
                    self.commas("");
                    self.value(item);
                    self.commas(",");
                }
                self.text.push(']');
            }
            Value::Object(members) => {
                self.text.push('{');
                for (key, value) in members {
                    self.commas("");
                    self.key(key);
                    self.blank();
                    self.text.push(':');
                    self.value(value);
                    self.commas(",");
                }
                if members.contains_key("resource") || members.contains_key("avgRt") {
                    self.push(&["", "gmtCreate: null", "'app': 'shop'"]);
                }
                self.text.push('}');
            }
            Value::Null => self.push(&["null", "undefined"]),
        }
        self.blank();
    }

    fn commas(&mut self, least: &str) {
        self.text.push_str(least);
        self.blank();
        self.push(&["", "", ","]);
    }

    fn number(&mut self, digits: &str) {
        let whole = !digits.contains('.');
        let written = match self.pick(if whole { 6 } else { 3 }) {
            0 => digits.to_owned(),
            1 => format!("\"{digits}\""),
            2 => format!("{digits}D"),
            3 => format!("{digits}.0"),
            4 => format!("'{digits}.00'"),
            _ => format!("{digits}e+0"),
        };
        self.text.push_str(&written);
    }

    fn quoted(&mut self, text: &str) {
        let quote = self.one_of(&['"', '\'']);
        self.text.push(quote);
        for one in text.chars() {
            match self.pick(8) {
                0 => write!(self.text, "\\u{:04x}", u32::from(one)).unwrap(),
                1 => write!(self.text, "\\x{:02X}", u32::from(one)).unwrap(),
                _ if one == quote || one == '\\' => write!(self.text, "\\{one}").unwrap(),
                _ => self.text.push(one),
            }
        }
        self.text.push(quote);
    }

    fn key(&mut self, key: &str) {
        let humps = |between: char| -> String {
            let parts = key.chars().map(|one| {
                let hump = one.is_uppercase().then_some(between);
                hump.into_iter()
                    .chain(one.to_lowercase())
                    .collect::<String>()
            });
            parts.collect()
        };
        match self.pick(6) {
            0 => self.text.push_str(key),
            1 => self.text.push_str(&humps('_')),
            2 => write!(self.text, "'{}'", humps('-')).unwrap(),
            3 => self.text.push_str(&key.to_uppercase()),
            _ => write!(self.text, "\"{key}\"").unwrap(),
        }
    }
}

fn bodies(text: &str) -> Result<Vec<Body>, String> {
    let name = "rules.json";
    let read = form::read(Path::new(name), &Source::new(name, text));
    if !read.faults.is_empty() {
        return Err(format!("{:?} in {text}", read.faults));
    }
    let set =
        RuleSet::build(read.rules, QuirksOption::None).map_err(|faults| format!("{faults:?}"))?;
    Ok(set.rules().iter().map(|rule| rule.body.clone()).collect())
}

proptest! {
    #[test]
    fn field_r1_any_spelling_loads_to_the_same_rules(
        rules in prop::collection::vec(rule(), 1..5),
        wrapped: bool,
        mark: bool,
        picks in prop::collection::vec(any::<u8>(), 1..200),
    ) {
        let expected = bodies(&Value::from(rules.clone()).to_string()).unwrap();
        let entity = |rule: &Value| json!({"id": 7, "app": "shop", "ip": "10.0.0.7", "port": 8719, "rule": rule});
        let rules: Vec<Value> = if wrapped { rules.iter().map(entity).collect() } else { rules };
        let one = rules.len() == 1 && picks.len() % 2 == 0;
        let list = if one { rules[0].clone() } else { rules.into() };
        let mut speller = Speller { picks: picks.iter().cycle(), text: String::new() };
        if mark {
            speller.text.push('\u{feff}');
        }
        speller.value(&list);
        let given = bodies(&speller.text);
        prop_assert_eq!(given.as_ref(), Ok(&expected));
    }
}
