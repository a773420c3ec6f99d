//! Flow rules in Sentinel's form.

use tidegate_abi::decision::Mode;

use super::cluster::ClusterFields;
use super::code::{Code, INT_MAX, Id, Threshold, UpTo, id, millis, seconds};
use super::origins::Origins;
use super::{Foreign, own_cluster};
use crate::rule::Amount;
use crate::rule::effect::{Effects, OptionEffect};
use crate::rule::flow::{BehaviorWord, FlowOptions, GradeWord, StrategyWord};
use crate::rule::meant::origins;
use crate::schema::kind::{
    AnyText, Flag, Maybe, MaybeGroup, NameText, OneOf, RequiredOption, Scalar as _,
};
use crate::schema::settings::{Section, settings};

pub(super) const GRADES: Code<GradeWord> = Code {
    codes: &[(0, GradeWord::Concurrency), (1, GradeWord::Qps)],
    other: None,
};

const STRATEGIES: Code<StrategyWord> = Code {
    codes: &[
        (0, StrategyWord::Direct),
        (1, StrategyWord::Relate),
        (2, StrategyWord::Chain),
    ],
    other: None,
};

const BEHAVIORS: Code<BehaviorWord> = Code {
    codes: &[
        (0, BehaviorWord::Reject),
        (1, BehaviorWord::WarmUp),
        (2, BehaviorWord::Pace),
        (3, BehaviorWord::WarmUpPace),
    ],
    other: Some(BehaviorWord::Reject),
};

settings! {
    /// The fields of a flow rule.
    pub(super) struct FlowFields {
        /// Only echoed.
        id: Option<String> = None, Maybe(Id, "17");
        /// Ours: enforce, observe or off.
        mode: Mode = Mode::Enforce, OneOf::<Mode>::ANY;
        /// Name of the resource.
        resource: String = String::new(), RequiredOption(NameText, "\"order-create\"");
        /// Whether it is a pattern.
        regex: bool = false, Flag;
        /// Origin selector.
        limit_app as "limitApp": String = "default".to_owned(), Origins;
        /// What is counted.
        grade: GradeWord = GradeWord::Qps, GRADES;
        /// Threshold.
        count: Amount = Amount::ZERO, Threshold;
        /// Where it is counted.
        strategy: StrategyWord = StrategyWord::Direct, STRATEGIES;
        /// The other resource or the context.
        ref_resource as "refResource": String = String::new(), AnyText;
        /// What happens near and over the limit.
        control_behavior as "controlBehavior": BehaviorWord = BehaviorWord::Reject, BEHAVIORS;
        /// Seconds of the rise.
        warm_up_period_sec as "warmUpPeriodSec": i64 = 10, UpTo(86_400);
        /// Longest wait.
        max_queueing_time_ms as "maxQueueingTimeMs": i64 = 500, UpTo(INT_MAX);
        /// Whether the cluster part counts.
        cluster_mode as "clusterMode": bool = false, Flag;
        /// The cluster part.
        cluster_config as "clusterConfig": Option<ClusterFields> = None,
            MaybeGroup::<ClusterFields>::OF;
    }
}

/// Those that our form has answer there.
impl Effects for FlowFields {
    const EFFECTS: &'static [OptionEffect<Self>] = &[
        OptionEffect::always("clusterMode"),
        OptionEffect::new("clusterConfig", |flow| {
            own_cluster(flow.cluster_mode, flow.cluster_config.as_ref())
        }),
    ];
}

impl Foreign for FlowFields {
    type Ours = FlowOptions;
    const NAMES: &'static [(&'static str, &'static str)] = &[
        ("limit_origin", "limitApp"),
        ("reference", "refResource"),
        ("behavior", "controlBehavior"),
        ("warm_up_period", "warmUpPeriodSec"),
        ("max_queueing_time", "maxQueueingTimeMs"),
        ("cluster", "clusterConfig"),
    ];
    fn ours(&self, section: &mut Section<'_, '_>) -> FlowOptions {
        self.note(section);
        FlowOptions {
            id: id(self.id.as_ref()),
            mode: self.mode,
            resource: self.resource.clone(),
            regex: self.regex,
            limit_origin: if self.limit_app.trim().is_empty() {
                "default".to_owned()
            } else {
                self.limit_app.clone()
            },
            grade: self.grade,
            count: self.count,
            strategy: self.strategy,
            reference: self.reference(section),
            behavior: self.control_behavior,
            warm_up_period: seconds(self.warm_up_period_sec),
            max_queueing_time: millis(self.max_queueing_time_ms),
            cluster: ClusterFields::ours(self.cluster_mode, self.cluster_config.as_ref(), section),
            ..FlowOptions::default()
        }
    }
}

/// Most origins of one rule: each gets a rule of its own.
const ORIGINS_MAX: usize = 1_000;

impl FlowFields {
    /// Says what is likely not what its author means.
    fn note(&self, section: &mut Section<'_, '_>) {
        self.note_origins(section);
        if !section.has("count") {
            let hint = "without it the count is 0, which refuses everything";
            section.warn("count", Threshold.allowed(), hint);
        }
        let own = FlowFields::default();
        let warms = section.has("warm_up_period");
        let queues = self.max_queueing_time_ms != own.max_queueing_time_ms;
        let warm_up = self.control_behavior == BehaviorWord::WarmUp;
        if warm_up && self.grade == GradeWord::Qps && (queues || !warms) {
            let hint = "1 is warm up; queueing is 2";
            section.warn("behavior", BEHAVIORS.allowed(), hint);
        }
    }

    fn note_origins(&self, section: &mut Section<'_, '_>) {
        let origins = origins(&self.limit_app);
        let one = origins.first().copied().unwrap_or_default();
        if origins.len() > ORIGINS_MAX {
            let hint = "each origin gets a rule of its own";
            section.refuse(
                &["limit_origin"],
                format!("at most {ORIGINS_MAX} origins"),
                hint,
            );
        } else if self.limit_app.contains(',') {
            let hint = "the count limits each origin of the list by itself; with quirks = \"sentinel-1.8.9\" the \
                        list is the name of one origin, so nobody is limited";
            section.warn("limit_origin", "one origin, default or other", hint);
        } else if !one.is_empty() && one != self.limit_app {
            let hint = "blanks around an origin do not count; with quirks = \"sentinel-1.8.9\" they do, so nobody is limited";
            section.warn("limit_origin", "one origin, default or other", hint);
        }
    }

    /// Sentinel asks for a reference with grade 1 alone; without one a rule of grade 0 looks nowhere.
    fn reference(&self, section: &mut Section<'_, '_>) -> Option<String> {
        let given = !self.ref_resource.trim().is_empty();
        let needless = self.strategy == StrategyWord::Direct || self.grade == GradeWord::Qps;
        if given || needless {
            return given.then(|| self.ref_resource.clone());
        }
        let allowed = "the other resource (strategy 1) or the context (strategy 2)";
        let hint = "without it the rule limits nobody, as in Sentinel";
        section.warn("reference", allowed, hint);
        Some(String::new())
    }
}
