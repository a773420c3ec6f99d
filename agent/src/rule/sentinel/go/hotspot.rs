//! Hot-parameter rules.

use tidegate_abi::decision::Mode;

use super::refuse_unless;
use crate::rule::effect::{Effects, OptionEffect};
use crate::rule::flow::GradeWord;
use crate::rule::param::{AnyValue, ItemOptions, ItemType, ParamBehavior, ParamOptions};
use crate::rule::sentinel::Foreign;
use crate::rule::sentinel::code::{Code, INT_MAX, Id, UpTo, id, millis, seconds};
use crate::schema::fault::Sink;
use crate::schema::kind::{
    AnyText, Maybe, NameText, OneOf, OptionKind, RequiredOption, ShownValue, Whole,
};
use crate::schema::settings::{OptionTable as _, Section, settings};
use crate::schema::{FileNode, Value};

const METRICS: Code<GradeWord> = Code {
    codes: &[(0, GradeWord::Concurrency), (1, GradeWord::Qps)],
    other: None,
};

const BEHAVIORS: Code<ParamBehavior> = Code {
    codes: &[(0, ParamBehavior::Reject), (1, ParamBehavior::Pace)],
    other: None,
};

const TYPES: Code<ItemType> = Code {
    codes: &[
        (0, ItemType::Long),
        (1, ItemType::Text),
        (2, ItemType::Boolean),
        (3, ItemType::Double),
    ],
    other: None,
};

settings! {
    /// The fields of a hot-parameter rule.
    pub(super) struct GoHotspot {
        /// Only echoed.
        id: Option<String> = None, Maybe(Id, "17");
        /// Ours: enforce, observe or off.
        mode: Mode = Mode::Enforce, OneOf::<Mode>::ANY;
        /// Name of the resource.
        resource: String = String::new(), RequiredOption(NameText, "\"order-query\"");
        /// What is counted.
        metric_type as "metricType": GradeWord = GradeWord::Concurrency, METRICS;
        /// Reject or let wait.
        control_behavior as "controlBehavior": ParamBehavior = ParamBehavior::Reject, BEHAVIORS;
        /// Which argument.
        param_index as "paramIndex": i32 = 0, Whole { min: -255, max: 255 };
        /// Which attachment of the call.
        param_key as "paramKey": String = String::new(), AnyText;
        /// The limit of each value.
        threshold: u32 = 0, Whole { min: 0, max: u32::MAX };
        /// Longest wait.
        max_queueing_time_ms as "maxQueueingTimeMs": i64 = 0, UpTo(INT_MAX);
        /// Passes above the limit.
        burst_count as "burstCount": u32 = 0, Whole { min: 0, max: u32::MAX };
        /// Seconds of the window.
        duration_in_sec as "durationInSec": i64 = 0, Whole { min: 0, max: 86_400 };
        /// Most values that are remembered.
        capacity as "paramsMaxCapacity": i64 = 0, UpTo(i64::MAX);
        /// Values with a limit of their own.
        items as "specificItems": Vec<ItemOptions> = Vec::new(), Items;
    }
}

impl Effects for GoHotspot {
    const EFFECTS: &'static [OptionEffect<Self>] = &[];
}

impl Foreign for GoHotspot {
    type Ours = ParamOptions;
    const NAMES: &'static [(&'static str, &'static str)] = &[
        ("grade", "metricType"),
        ("count", "threshold"),
        ("index", "paramIndex"),
        ("window", "durationInSec"),
        ("burst", "burstCount"),
        ("behavior", "controlBehavior"),
        ("items", "specificItems"),
    ];
    fn ours(&self, section: &mut Section<'_, '_>) -> ParamOptions {
        let key = (
            "an empty text",
            "calls have no attachments here; give the value as an argument, and its index",
        );
        refuse_unless(self.param_key.is_empty(), "paramKey", key, section);
        if self.capacity > 0 {
            let hint = "the table of values is bounded by its bytes, whatever this says";
            section.warn("paramsMaxCapacity", "0", hint);
        }
        let passes = self.metric_type == GradeWord::Qps;
        if passes && self.duration_in_sec == 0 {
            section.refuse(
                &["window"],
                "at least 1",
                "a limit of passes needs its seconds",
            );
        }
        let has_burst = passes && self.control_behavior == ParamBehavior::Reject;
        ParamOptions {
            id: id(self.id.as_ref()),
            mode: self.mode,
            resource: self.resource.clone(),
            index: self.param_index,
            grade: self.metric_type,
            count: self.threshold,
            window: seconds(self.duration_in_sec.max(1)),
            burst: if has_burst { self.burst_count } else { 0 },
            behavior: self.control_behavior,
            max_queueing_time: millis(self.max_queueing_time_ms),
            items: self.items.clone(),
            ..ParamOptions::default()
        }
    }
}

settings! {
    /// The fields of a value with a limit of its own.
    struct SpecificValue {
        /// Number of its type.
        kind as "valKind": ItemType = ItemType::Long, TYPES;
        /// The value.
        value as "valStr": (String, ItemType) = (String::new(), ItemType::Text), RequiredOption(AnyValue, "\"vip\"");
        /// Its limit.
        threshold: u32 = 0, RequiredOption(Whole { min: 0, max: u32::MAX }, "20");
    }
}

/// Values with a limit of their own: a list of objects, or an object of values and limits.
#[derive(Debug, Clone, Copy)]
struct Items;

impl OptionKind for Items {
    type Output = Vec<ItemOptions>;
    fn allowed(&self) -> String {
        "an array of objects, or an object of values and their limits".to_owned()
    }
    fn read(
        &self,
        node: &FileNode,
        _base: &Vec<ItemOptions>,
        path: &str,
        sink: &mut Sink<'_>,
    ) -> Option<Vec<ItemOptions>> {
        match &node.value {
            Value::List(items) => {
                let items = (0_usize..)
                    .zip(items)
                    .filter_map(|(index, item)| specific(item, &format!("{path}[{index}]"), sink));
                Some(items.collect())
            }
            Value::Table(members) => {
                let limit = Whole {
                    min: 0,
                    max: u32::MAX,
                };
                let items = members.iter().filter_map(|member| {
                    let path = format!("{path}.{}", member.key);
                    let count = OptionKind::read(&limit, &member.node, &0, &path, sink)?;
                    Some(ItemOptions {
                        value: (member.key.clone(), ItemType::Text),
                        kind: Some(ItemType::Text),
                        count,
                    })
                });
                Some(items.collect())
            }
            Value::Flag(_)
            | Value::Integer(_)
            | Value::Number(_)
            | Value::Text(_)
            | Value::Null
            | Value::Other(_) => {
                sink.refuse(&node.span, path, self.allowed(), "");
                None
            }
        }
    }
    fn shown(&self, _value: &Vec<ItemOptions>) -> ShownValue {
        ShownValue::Tables(SpecificValue::default().rows())
    }
}

fn specific(node: &FileNode, path: &str, sink: &mut Sink<'_>) -> Option<ItemOptions> {
    let own = SpecificValue::take(node, &SpecificValue::default(), path, sink)?;
    let item = ItemOptions {
        value: own.value,
        kind: Some(own.kind),
        count: own.threshold,
    };
    let mut section = Section::open(node, path, sink)?;
    section.rename(&[("value", "valStr"), ("type", "valKind")]);
    item.check(&mut section);
    Some(item)
}
