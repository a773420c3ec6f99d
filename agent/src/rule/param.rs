//! Hot-parameter rules: a limit for each value of an argument.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tidegate_abi::decision::Mode;
use tidegate_limits::param::token_bucket::TOKENS_MAX;

use super::cluster::Cluster;
use super::effect::{self, Effects, Idle, OptionEffect};
use super::expiry::{Ending, Expires};
use super::flow::GradeWord;
use super::resource::RuleResource;
use super::{Body, RuleOptions, bounds};
use crate::schema::Value;
use crate::schema::kind::{
    DurationRange, Flag, Groups, Maybe, MaybeGroup, NameText, OneOf, RequiredOption, Scalar, Whole,
    words,
};
use crate::schema::settings::{Section, settings};

/// A limit for each value of an argument.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Param {
    /// The resources it is for.
    pub resource: RuleResource,
    /// Which argument, from 0; negative counts from the end.
    pub index: i32,
    /// Most passes or requests in flight for each value.
    pub count: u32,
    /// What is counted.
    pub grade: ParamGrade,
    /// Values with a count of their own. They never lose their state.
    pub items: Vec<ParamItem>,
    /// The part that other hosts share.
    pub cluster: Option<Cluster>,
}

/// What a hot-parameter rule counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ParamGrade {
    /// Requests in flight.
    Concurrency,
    /// Passes, out of a bucket that is filled once in a window.
    Bucket {
        /// Time in which the bucket is filled.
        window: Duration,
        /// Passes above the count that a full bucket holds.
        burst: u32,
        /// Whether the limit holds in every window of that length.
        strict: bool,
    },
    /// Passes, evenly spaced.
    Pace {
        /// Time for `count` passes.
        window: Duration,
        /// Longest wait; a longer one is a refusal.
        max_queueing_time: Duration,
    },
}

/// A value with a count of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ParamItem {
    /// Type of the value; a request's argument matches only with the same type.
    pub kind: ItemType,
    /// The value.
    pub value: ItemValue,
    /// Its limit.
    pub count: u32,
}

/// A value as it is compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ItemValue {
    /// Of the types text and char.
    Text(String),
    /// Of the types byte, short, int and long.
    Integer(i64),
    /// Of the types float and double: the bits of the double.
    Float(u64),
    /// Of the type boolean.
    Flag(bool),
}

impl Param {
    pub(super) fn clear_limits(&mut self) {
        self.count = 0;
        for item in &mut self.items {
            item.count = 0;
        }
    }
}

words! {
    /// Type of an argument.
    pub enum ItemType {
        /// Text.
        Text = "text",
        /// A whole number of 32 bits.
        Int = "int",
        /// A whole number of 64 bits.
        Long = "long",
        /// A number of 64 bits.
        Double = "double",
        /// A number of 32 bits.
        Float = "float",
        /// A whole number of 8 bits.
        Byte = "byte",
        /// A whole number of 16 bits.
        Short = "short",
        /// true or false.
        Boolean = "boolean",
        /// One character.
        Char = "char",
    }
}

impl ItemType {
    /// Reads a value of this type; `None` if the text is none.
    pub fn value(self, text: &str) -> Option<ItemValue> {
        let float = |number: f64| ItemValue::Float((number + 0.0).to_bits());
        match self {
            Self::Text => Some(ItemValue::Text(text.to_owned())),
            Self::Char => (text.chars().count() == 1).then(|| ItemValue::Text(text.to_owned())),
            Self::Byte => text
                .parse::<i8>()
                .ok()
                .map(|one| ItemValue::Integer(one.into())),
            Self::Short => text
                .parse::<i16>()
                .ok()
                .map(|one| ItemValue::Integer(one.into())),
            Self::Int => text
                .parse::<i32>()
                .ok()
                .map(|one| ItemValue::Integer(one.into())),
            Self::Long => text.parse().ok().map(ItemValue::Integer),
            Self::Float => text
                .parse::<f32>()
                .ok()
                .filter(|one| one.is_finite())
                .map(|one| float(one.into())),
            Self::Double => text
                .parse()
                .ok()
                .filter(|one: &f64| one.is_finite())
                .map(float),
            Self::Boolean => text.parse().ok().map(ItemValue::Flag),
        }
    }
}

/// A value of any type: its text and the type it has by itself.
#[derive(Debug, Clone, Copy)]
pub struct AnyValue;

impl Scalar for AnyValue {
    type Output = (String, ItemType);
    fn allowed(&self) -> String {
        "a text, a number, true or false".to_owned()
    }
    fn parse(&self, value: &Value) -> Result<(String, ItemType), String> {
        match value {
            Value::Text(text) => Ok((text.clone(), ItemType::Text)),
            Value::Integer(number) => Ok((number.to_string(), ItemType::Long)),
            Value::Number(number) if number.is_finite() => {
                Ok((number.to_string(), ItemType::Double))
            }
            Value::Flag(flag) => Ok((flag.to_string(), ItemType::Boolean)),
            Value::Number(_) | Value::List(_) | Value::Table(_) | Value::Null | Value::Other(_) => {
                Err(String::new())
            }
        }
    }
    fn written(&self, value: &(String, ItemType)) -> String {
        NameText.written(&value.0)
    }
    fn json_schema(&self) -> Json {
        json!({"type": ["string", "number", "boolean"]})
    }
}

words! {
    /// What happens to requests over the limit of a value.
    pub enum ParamBehavior {
        /// They are refused.
        Reject = "reject",
        /// They wait for their slot.
        Pace = "pace",
    }
}

settings! {
    /// A value with a count of its own.
    pub struct ItemOptions {
        /// The value.
        value: (String, ItemType) = ("vip".to_owned(), ItemType::Text), RequiredOption(AnyValue, "\"vip\"");
        /// Its type. Not set: text, long, double or boolean, as the value is written.
        kind as "type": Option<ItemType> = None, Maybe(OneOf::<ItemType>::ANY, "\"int\"");
        /// Its limit.
        count: u32 = 0, RequiredOption(Whole { min: 0, max: u32::MAX }, "20");
    }
    check check_item;
}

fn check_item(item: &ItemOptions, section: &mut Section<'_, '_>) {
    if item.proven().is_none() {
        section.refuse(
            &["value", "type"],
            "a value of this type",
            "the limit could never match",
        );
    }
}

impl ItemOptions {
    /// What no two of a rule have in common.
    pub(super) fn key(&self) -> Option<(ItemType, ItemValue)> {
        self.proven().map(|item| (item.kind, item.value))
    }

    fn proven(&self) -> Option<ParamItem> {
        let (text, natural) = &self.value;
        let kind = self.kind.unwrap_or(*natural);
        let value = kind.value(text)?;
        let count = self.count;
        Some(ParamItem { kind, value, count })
    }
}

settings! {
    /// A limit for each value of an argument.
    pub struct ParamOptions {
        /// Name in refusals, metrics and logs. Not set: file and place.
        id: Option<String> = None, Maybe(NameText, "\"orders-by-user\"");
        /// `enforce` refuses; `observe` counts what it would have refused; `off` does nothing.
        mode: Mode = Mode::Enforce, OneOf::<Mode>::ANY;
        /// When it ends by itself: after a time in force, or at a time. Not set: never. Reading the same
        /// text again does not begin anew; a restart of the agent does.
        expires: Option<Expires> = None, Maybe(Ending, "\"30s\"");
        /// Name of the resource.
        resource: String = String::new(), RequiredOption(NameText, "\"order-query\"");
        /// Whether `resource` is a regular expression for the whole name.
        regex: bool = false, Flag;
        /// Which argument, from 0; negative counts from the end. Requests without it pass.
        index: i32 = 0, RequiredOption(Whole { min: -255, max: 255 }, "0");
        /// What is counted: passes in a window, or requests in flight.
        grade: GradeWord = GradeWord::Qps, OneOf::<GradeWord>::ANY;
        /// The limit of each value.
        count: u32 = 0, RequiredOption(Whole { min: 0, max: u32::MAX }, "20");
        /// Time that the count is for, in whole seconds.
        window: Duration = Duration::from_secs(1), DurationRange::ms(1_000, 86_400_000);
        /// Passes above the count that an unused value may take at once.
        burst: u32 = 0, Whole { min: 0, max: u32::MAX };
        /// Whether the limit holds in every window of that length, not on refill alone. Then it is at most 16383
        /// in at most 73 minutes. Room comes back along an even line, not pass by pass: of a burst of `count` at once
        /// little is free again a window later, and all of it after two.
        strict: bool = false, Flag;
        /// What happens to requests over the limit of a value.
        behavior: ParamBehavior = ParamBehavior::Reject, OneOf::<ParamBehavior>::ANY;
        /// Longest wait of a paced request.
        max_queueing_time: Duration = Duration::ZERO, DurationRange::ms(0, 3_600_000);
        /// Values with a count of their own.
        items: Vec<ItemOptions> = Vec::new(), Groups { template: ItemOptions::default() };
        /// The part that other hosts share.
        cluster: Option<Cluster> = None, MaybeGroup::<Cluster>::OF;
    }
}

impl RuleOptions for ParamOptions {
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }
    fn mode(&self) -> Mode {
        self.mode
    }
    fn expires(&self) -> Option<Expires> {
        self.expires
    }
    fn body(&self, section: &mut Section<'_, '_>) -> Option<Body> {
        if self.cluster.is_some() && self.grade == GradeWord::Concurrency {
            section.refuse(
                &["grade", "cluster"],
                "qps",
                "only passes can be shared by hosts",
            );
        }
        if self.cluster.is_some() && self.regex {
            section.refuse(
                &["cluster", "regex"],
                "no cluster part",
                "a regex rule has none",
            );
        }
        self.check_items(section);
        self.check_bounds(section);
        Some(Body::Param(Param {
            resource: RuleResource::prove(&self.resource, self.regex, section)?,
            index: self.index,
            count: self.count,
            grade: self.grade(),
            items: self.items.iter().filter_map(ItemOptions::proven).collect(),
            cluster: self.cluster.clone(),
        }))
    }
}

impl Effects for ParamOptions {
    const EFFECTS: &'static [OptionEffect<Self>] = &[
        OptionEffect::always("id"),
        OptionEffect::new("expires", |rule| effect::ended(rule.expires)),
        OptionEffect::new("mode", |param| effect::off(param.mode)),
        OptionEffect::new("resource", |param| {
            effect::literal(&param.resource, true).filter(|_| !param.regex)
        }),
        OptionEffect::always("regex"),
        OptionEffect::always("index"),
        OptionEffect::always("grade"),
        OptionEffect::new("count", |param| {
            let unlimited = param.is_bucket() && !param.strict && param.count > TOKENS_MAX;
            Idle::when(
                unlimited,
                "a count that is reached",
                "no value passes as much, so this limits nobody",
            )
        }),
        OptionEffect::new("window", |param| {
            Idle::when(param.is_in_flight(), "with grade qps", IN_FLIGHT)
        }),
        OptionEffect::always("burst"),
        OptionEffect::always("strict"),
        OptionEffect::new("behavior", |param| {
            let idle = param.is_in_flight() && param.behavior == ParamBehavior::Pace;
            Idle::when(
                idle,
                "with grade qps",
                "a concurrency rule refuses; it does not queue",
            )
        }),
        OptionEffect::new("max_queueing_time", |param| {
            let paces = !param.is_in_flight() && param.behavior == ParamBehavior::Pace;
            Idle::when(!paces, "with grade qps and behavior pace", "nobody waits")
        }),
        OptionEffect::always("items"),
        OptionEffect::new("cluster", |param| {
            effect::alone(param.cluster.as_ref(), false)
        }),
    ];
}

const IN_FLIGHT: &str = "a concurrency rule does not use it";

impl ParamOptions {
    fn is_in_flight(&self) -> bool {
        self.grade == GradeWord::Concurrency
    }

    fn is_bucket(&self) -> bool {
        !self.is_in_flight() && self.behavior == ParamBehavior::Reject
    }

    fn check_items(&self, section: &mut Section<'_, '_>) {
        if !section.is_sound("items") {
            return;
        }
        let mut seen = HashMap::new();
        let keys = (0_usize..).zip(self.items.iter().filter_map(ItemOptions::key));
        for (index, key) in keys {
            let first = *seen.entry(key).or_insert(index);
            if first != index {
                let hint = format!("items[{first}] has it");
                section.refuse(&[&format!("items[{index}].value")], "each value once", hint);
            }
        }
    }

    fn check_bounds(&self, section: &mut Section<'_, '_>) {
        let reject = self.grade == GradeWord::Qps && self.behavior == ParamBehavior::Reject;
        if self.strict && !reject {
            let hint = "only a qps rule that rejects has windows";
            section.refuse(&["strict", "behavior", "grade"], "false", hint);
        }
        if self.burst > 0 && (self.strict || !reject) {
            section.refuse(
                &["burst", "strict", "behavior", "grade"],
                "0",
                "only a bucket has a burst",
            );
        }
        if self.grade != GradeWord::Qps {
            return;
        }
        bounds::check_seconds("window", self.window, section);
        if self.behavior == ParamBehavior::Reject {
            let items = self.items.iter().map(|item| ("items", item.count));
            let limits = std::iter::once(("count", self.count)).chain(items);
            bounds::check_bucket(limits, self.window, self.burst, self.strict, section);
        }
    }

    fn grade(&self) -> ParamGrade {
        match (self.grade, self.behavior) {
            (GradeWord::Concurrency, _) => ParamGrade::Concurrency,
            (GradeWord::Qps, ParamBehavior::Reject) => ParamGrade::Bucket {
                window: self.window,
                burst: self.burst,
                strict: self.strict,
            },
            (GradeWord::Qps, ParamBehavior::Pace) => ParamGrade::Pace {
                window: self.window,
                max_queueing_time: self.max_queueing_time,
            },
        }
    }
}
