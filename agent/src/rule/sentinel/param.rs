//! Hot-parameter rules in Sentinel's form.

use std::collections::HashSet;

use tidegate_abi::decision::Mode;

use super::cluster::ClusterFields;
use super::code::{Code, INT_MAX, Id, Threshold, UpTo, id, millis, seconds};
use super::flow::GRADES;
use super::{Foreign, no_callers, own_cluster};
use crate::rule::Amount;
use crate::rule::effect::{Effects, Idle, OptionEffect};
use crate::rule::flow::GradeWord;
use crate::rule::param::{AnyValue, ItemOptions, ItemType, ParamBehavior, ParamOptions};
use crate::schema::fault::Sink;
use crate::schema::kind::{
    AnyText, Flag, Maybe, MaybeGroup, NameText, OneOf, OptionKind, RequiredOption, ShownValue,
    Whole,
};
use crate::schema::settings::{OptionTable as _, Section, settings};
use crate::schema::{FileNode, Value};

const BEHAVIORS: Code<ParamBehavior> = Code {
    codes: &[(0, ParamBehavior::Reject), (2, ParamBehavior::Pace)],
    other: Some(ParamBehavior::Reject),
};

settings! {
    /// The fields of a hot-parameter rule.
    pub(super) struct ParamFields {
        /// Only echoed.
        id: Option<String> = None, Maybe(Id, "17");
        /// Ours: enforce, observe or off.
        mode: Mode = Mode::Enforce, OneOf::<Mode>::ANY;
        /// Name of the resource.
        resource: String = String::new(), RequiredOption(NameText, "\"order-query\"");
        /// Not used.
        limit_app as "limitApp": String = String::new(), AnyText;
        /// Whether it is a pattern.
        regex: bool = false, Flag;
        /// Which argument.
        param_idx as "paramIdx": i32 = 0, RequiredOption(Whole { min: -255, max: 255 }, "0");
        /// What is counted.
        grade: GradeWord = GradeWord::Qps, GRADES;
        /// Threshold, truncated.
        count: Amount = Amount::ZERO, Threshold;
        /// Seconds of the window.
        duration_in_sec as "durationInSec": i64 = 1, Whole { min: 1, max: 86_400 };
        /// Passes above the count.
        burst_count as "burstCount": u32 = 0, Whole { min: 0, max: u32::MAX };
        /// Reject or pace.
        control_behavior as "controlBehavior": ParamBehavior = ParamBehavior::Reject, BEHAVIORS;
        /// Longest wait.
        max_queueing_time_ms as "maxQueueingTimeMs": i64 = 0, UpTo(INT_MAX);
        /// Values with a threshold of their own.
        items as "paramFlowItemList": Vec<ItemOptions> = Vec::new(), Items;
        /// Whether the cluster part counts.
        cluster_mode as "clusterMode": bool = false, Flag;
        /// The cluster part.
        cluster_config as "clusterConfig": Option<ClusterFields> = None,
            MaybeGroup::<ClusterFields>::OF;
    }
}

/// Those that our form has answer there.
impl Effects for ParamFields {
    const EFFECTS: &'static [OptionEffect<Self>] = &[
        OptionEffect::new("limitApp", |param| no_callers(&param.limit_app)),
        OptionEffect::new("burstCount", |param| {
            let allowed = "0, or with grade 1 and controlBehavior 0";
            Idle::when(!param.is_bucket(), allowed, "only a bucket has a burst")
        }),
        // Of values that it does not know, Sentinel takes the first.
        OptionEffect::new("controlBehavior", |param| {
            let idle = param.grade == GradeWord::Concurrency
                && param.control_behavior == ParamBehavior::Pace;
            Idle::when(
                idle,
                "0, or with grade 1",
                "requests in flight are refused, they do not wait",
            )
        }),
        OptionEffect::new("maxQueueingTimeMs", |param| {
            let paces =
                param.grade == GradeWord::Qps && param.control_behavior == ParamBehavior::Pace;
            Idle::when(!paces, "with grade 1 and controlBehavior 2", "nobody waits")
        }),
        OptionEffect::new("clusterMode", |param| {
            let in_flight = param.grade == GradeWord::Concurrency;
            let hint =
                "only passes are shared by hosts: requests in flight are held to the count on each";
            Idle::when(in_flight, "false, or with grade 1", hint)
        }),
        OptionEffect::new("clusterConfig", |param| {
            own_cluster(param.cluster_mode, param.cluster_config.as_ref())
        }),
    ];
}

impl Foreign for ParamFields {
    type Ours = ParamOptions;
    const NAMES: &'static [(&'static str, &'static str)] = &[
        ("index", "paramIdx"),
        ("window", "durationInSec"),
        ("burst", "burstCount"),
        ("items", "paramFlowItemList"),
        ("cluster", "clusterConfig"),
    ];
    fn ours(&self, section: &mut Section<'_, '_>) -> ParamOptions {
        if self.regex && self.control_behavior == ParamBehavior::Pace {
            let hint = "a regex rule of Sentinel can only reject";
            section.refuse(&["controlBehavior", "regex"], "0 (reject)", hint);
        }
        ParamOptions {
            id: id(self.id.as_ref()),
            mode: self.mode,
            resource: self.resource.clone(),
            regex: self.regex,
            index: self.param_idx,
            grade: self.grade,
            count: self.count.whole(),
            window: seconds(self.duration_in_sec),
            // Only a bucket has one; the field is not looked at otherwise.
            burst: if self.is_bucket() {
                self.burst_count
            } else {
                0
            },
            behavior: self.control_behavior,
            max_queueing_time: millis(self.max_queueing_time_ms),
            items: self.items.clone(),
            // Sentinel asks its server for passes alone; calls in flight are held to the limit here.
            cluster: ClusterFields::ours(self.cluster_mode, self.cluster_config.as_ref(), section)
                .filter(|_cluster| self.grade == GradeWord::Qps),
            ..ParamOptions::default()
        }
    }
}

impl ParamFields {
    fn is_bucket(&self) -> bool {
        self.grade == GradeWord::Qps && self.control_behavior == ParamBehavior::Reject
    }
}

settings! {
    /// The fields of a value with a threshold of its own.
    pub(super) struct ItemFields {
        /// The value.
        object: (String, ItemType) = (String::new(), ItemType::Text), RequiredOption(AnyValue, "\"vip\"");
        /// Its threshold.
        count: u32 = 0, Whole { min: 0, max: u32::MAX };
        /// Java's name of its type.
        class_type as "classType": String = String::new(), AnyText;
    }
}

impl ItemFields {
    /// Says what is likely not what its author means.
    fn note(&self, section: &mut Section<'_, '_>) {
        let (text, natural) = &self.object;
        if self.class_type.trim().is_empty() {
            section.warn(
                "type",
                CLASS_TYPES,
                "without a type it is a text, which no number is equal to",
            );
        } else if self.kind().is_none() {
            section.warn(
                "type",
                CLASS_TYPES,
                "a type that is none of these is taken for a text",
            );
        }
        if *natural == ItemType::Text && text.trim() != text {
            section.warn(
                "value",
                "a value without blanks around it",
                "they are a part of it",
            );
        }
    }

    /// The type; none where it is blank or unknown.
    fn kind(&self) -> Option<ItemType> {
        let kind = match self.class_type.as_str() {
            "int" | "java.lang.Integer" => ItemType::Int,
            "long" | "java.lang.Long" => ItemType::Long,
            "double" | "java.lang.Double" => ItemType::Double,
            "float" | "java.lang.Float" => ItemType::Float,
            "byte" | "java.lang.Byte" => ItemType::Byte,
            "short" | "java.lang.Short" => ItemType::Short,
            "boolean" | "java.lang.Boolean" => ItemType::Boolean,
            "char" | "java.lang.Character" => ItemType::Char,
            "String" | "java.lang.String" => ItemType::Text,
            _ => return None,
        };
        Some(kind)
    }

    /// In our form; blank and unknown types are text.
    fn ours(self) -> ItemOptions {
        ItemOptions {
            kind: Some(self.kind().unwrap_or(ItemType::Text)),
            value: self.object,
            count: self.count,
        }
    }
}

const CLASS_TYPES: &str =
    "int, long, double, float, byte, short, boolean, char or java.lang.String";

/// The list of values; one that is not valid is left out with a warning, as in Sentinel. A field that is none is
/// refused as anywhere.
#[derive(Debug, Clone, Copy)]
struct Items;

impl OptionKind for Items {
    type Output = Vec<ItemOptions>;
    fn allowed(&self) -> String {
        "an array of objects".to_owned()
    }
    fn read(
        &self,
        node: &FileNode,
        _base: &Vec<ItemOptions>,
        path: &str,
        sink: &mut Sink<'_>,
    ) -> Option<Vec<ItemOptions>> {
        let Value::List(list) = &node.value else {
            sink.refuse(&node.span, path, self.allowed(), "");
            return None;
        };
        let mut items: Vec<ItemOptions> = Vec::with_capacity(list.len());
        // The last first: of equal values it counts, as in Sentinel.
        let mut seen = HashSet::new();
        for (index, node) in list.iter().enumerate().rev() {
            let path = format!("{path}[{index}]");
            let mut own = sink.lenient_part();
            let item = read_item(node, &path, &mut own);
            let strays = own.take_strays();
            let (faults, warnings) = own.finish();
            let item = item.filter(|_| faults.is_empty());
            if item.as_ref().is_some_and(|item| !seen.insert(item.key())) {
                sink.warn(&node.span, path, "each value once", "a later one counts");
            } else {
                items.extend(item);
            }
            for said in faults.into_iter().chain(warnings) {
                sink.push_warning(said);
            }
            for stray in strays {
                sink.push(stray);
            }
        }
        items.reverse();
        Some(items)
    }
    fn shown(&self, _value: &Vec<ItemOptions>) -> ShownValue {
        ShownValue::Tables(ItemFields::default().rows())
    }
}

fn read_item(node: &FileNode, path: &str, sink: &mut Sink<'_>) -> Option<ItemOptions> {
    let fields = ItemFields::take(node, &ItemFields::default(), path, sink)?;
    let mut section = Section::open(node, path, sink)?;
    section.rename(&[("value", "object"), ("type", "classType")]);
    fields.note(&mut section);
    let item = fields.ours();
    item.check(&mut section);
    Some(item)
}
