//! Flow rules: how much of a resource may run.

use std::time::Duration;

use tidegate_abi::decision::Mode;
use tidegate_limits::warm_up::WarmUp;
use tidegate_limits::window::COUNT_MAX;

use super::amount::{Amount, Count};
use super::cluster::Cluster;
use super::effect::{self, Effects, Idle, OptionEffect};
use super::expiry::{Ending, Expires};
use super::resource::RuleResource;
use super::{Body, RuleOptions, bounds};
use crate::schema::kind::{
    DurationRange, Flag, Maybe, MaybeGroup, NameText, OneOf, RequiredOption, Whole, words,
};
use crate::schema::settings::{Section, settings};

/// How much of a resource may run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Flow {
    /// The resources it is for. Each has its own count.
    pub resource: RuleResource,
    /// Whose requests it looks at.
    pub limit_origin: LimitOrigin,
    /// Most passes in a window, or most requests in flight.
    pub count: Amount,
    /// The same while the machine is strained, where that is another number.
    pub strained: Option<Amount>,
    /// What is counted.
    pub grade: Grade,
    /// Where it is counted.
    pub strategy: Strategy,
    /// The part that other hosts share.
    pub cluster: Option<Cluster>,
}

/// Whose requests a flow rule looks at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LimitOrigin {
    /// Everybody's, together.
    Default,
    /// Each origin's that no other rule of the resource names, apart.
    Other,
    /// This origin's.
    Name(String),
}

/// What a flow rule counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Grade {
    /// Requests in flight.
    Concurrency,
    /// Passes in a window.
    Qps {
        /// Length of the window.
        window: Duration,
        /// Whether the limit holds in every window of that length, not in the aligned ones alone. Then it is at
        /// most 131071 in at most 73 minutes.
        strict: bool,
        /// What happens to requests near and over the limit.
        behavior: Behavior,
    },
}

/// Where a flow rule counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// On the resource itself, or its part of the origin.
    Direct,
    /// On another resource: the rule refuses while that one is over the limit. Not exact.
    Relate(String),
    /// On the part of the resource that runs in this context.
    Chain(String),
    /// Nowhere, so everybody passes: a rule of Sentinel's for another place that names none.
    Nowhere,
}

/// What happens to requests near and over a QPS limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Behavior {
    /// They are refused.
    Reject,
    /// As reject; the limit rises from a part of the count while the resource is cold.
    WarmUp {
        /// Time of the rise.
        period: Duration,
        /// The limit of a cold resource is this part of the count.
        cold_factor: u32,
    },
    /// They wait for their slot.
    Pace {
        /// Longest wait; a longer one is a refusal.
        max_queueing_time: Duration,
    },
    /// Both.
    WarmUpPace {
        /// Time of the rise.
        period: Duration,
        /// The rate of a cold resource is this part of the count.
        cold_factor: u32,
        /// Longest wait; a longer one is a refusal.
        max_queueing_time: Duration,
    },
}

words! {
    /// What a rule counts.
    pub enum GradeWord {
        /// Passes.
        Qps = "qps",
        /// Requests in flight.
        Concurrency = "concurrency",
    }
}

words! {
    /// Where a rule counts.
    pub enum StrategyWord {
        /// On the resource.
        Direct = "direct",
        /// On another resource.
        Relate = "relate",
        /// In one context.
        Chain = "chain",
    }
}

words! {
    /// What happens near and over the limit.
    pub enum BehaviorWord {
        /// Refuse.
        Reject = "reject",
        /// Refuse, from a lower limit while cold.
        WarmUp = "warm_up",
        /// Wait.
        Pace = "pace",
        /// Wait, at a lower rate while cold.
        WarmUpPace = "warm_up_pace",
    }
}

/// Largest cold factor: a colder resource would hardly pass anything.
pub(super) const COLD_FACTOR_MAX: u32 = 100;

/// The window of Sentinel's rules.
const SECOND: Duration = Duration::from_secs(1);

settings! {
    /// How much of a resource may run.
    pub struct FlowOptions {
        /// Name in refusals, metrics and logs. Not set: file and place.
        id: Option<String> = None, Maybe(NameText, "\"orders-qps\"");
        /// `enforce` refuses; `observe` counts what it would have refused; `off` does nothing.
        mode: Mode = Mode::Enforce, OneOf::<Mode>::ANY;
        /// When it ends by itself: after a time in force, or at a time. Not set: never. Reading the same
        /// text again does not begin anew; a restart of the agent does.
        expires: Option<Expires> = None, Maybe(Ending, "\"30s\"");
        /// Name of the resource.
        resource: String = String::new(), RequiredOption(NameText, "\"order-create\"");
        /// Whether `resource` is a regular expression for the whole name.
        regex: bool = false, Flag;
        /// Whose requests count: default (all together), other (each origin that no other rule of
        /// the resource names) or the name of an origin.
        limit_origin: String = "default".to_owned(), NameText;
        /// What is counted: passes in a window, or requests in flight.
        grade: GradeWord = GradeWord::Qps, OneOf::<GradeWord>::ANY;
        /// The limit. Fractions count: 0.5 is one in two windows where requests are paced.
        count: Amount = Amount::ZERO, RequiredOption(Count, "1000");
        /// The limit while the host or a scope has too many threads (`[threads] watermark`) or trouble with garbage
        /// collection (`[law.evidence]`). Not set: as always.
        strained_count: Option<Amount> = None, Maybe(Count, "200");
        /// Length of the window of a qps rule.
        window: Duration = SECOND, DurationRange::ms(100, 86_400_000);
        /// Whether the limit holds in every window of that length, not in the aligned ones alone. Room comes back along
        /// an even line, not pass by pass: of a burst of `count` at once little is free again a window later, and all of
        /// it after two.
        strict: bool = false, Flag;
        /// Where it is counted: the resource itself, another resource, or one context.
        strategy: StrategyWord = StrategyWord::Direct, OneOf::<StrategyWord>::ANY;
        /// The other resource (relate) or the context (chain).
        reference: Option<String> = None, Maybe(NameText, "\"order-query\"");
        /// What happens to requests near and over the limit of a qps rule.
        behavior: BehaviorWord = BehaviorWord::Reject, OneOf::<BehaviorWord>::ANY;
        /// Time in which a cold resource comes to its full count, in whole seconds.
        warm_up_period: Duration = Duration::from_secs(10), DurationRange::ms(1_000, 86_400_000);
        /// The limit of a cold resource is the count divided by this.
        cold_factor: u32 = WarmUp::COLD_FACTOR, Whole { min: 2, max: COLD_FACTOR_MAX };
        /// Longest wait of a paced request.
        max_queueing_time: Duration = Duration::from_millis(500), DurationRange::ms(1, 3_600_000);
        /// The part that other hosts share.
        cluster: Option<Cluster> = None, MaybeGroup::<Cluster>::OF;
    }
}

impl RuleOptions for FlowOptions {
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
        self.check_pattern(section);
        self.check_window(section);
        self.check_strained(section);
        let resource = RuleResource::prove(&self.resource, self.regex, section);
        let behavior = self.behavior(section);
        let strategy = self.strategy(section);
        Some(Body::Flow(Flow {
            resource: resource?,
            limit_origin: LimitOrigin::of(&self.limit_origin),
            count: self.count,
            strained: self.strained_count,
            grade: match self.grade {
                GradeWord::Concurrency => Grade::Concurrency,
                GradeWord::Qps => Grade::Qps {
                    window: self.window,
                    strict: self.strict,
                    behavior: behavior?,
                },
            },
            strategy: strategy?,
            cluster: self.cluster.clone(),
        }))
    }
}

const WHERE: &str = "with grade qps";
const IN_FLIGHT: &str = "a concurrency rule does not use it";

impl Effects for FlowOptions {
    const EFFECTS: &'static [OptionEffect<Self>] = &[
        OptionEffect::always("id"),
        OptionEffect::new("expires", |rule| effect::ended(rule.expires)),
        OptionEffect::new("mode", |flow| effect::off(flow.mode)),
        OptionEffect::new("resource", |flow| {
            effect::literal(&flow.resource, true).filter(|_| !flow.regex)
        }),
        OptionEffect::always("regex"),
        OptionEffect::always("limit_origin"),
        OptionEffect::always("grade"),
        OptionEffect::new("count", |flow| {
            let unlimited = flow.is_plain_second() && flow.count.whole() >= COUNT_MAX;
            Idle::when(
                unlimited,
                "a count that is reached",
                "a window counts no further, so this limits nobody",
            )
        }),
        OptionEffect::new("strained_count", |flow| {
            let same = flow.strained_count == Some(flow.count);
            Idle::when(same, "less than the count", "it is the same as the count")
        }),
        OptionEffect::new("window", |flow| {
            Idle::when(flow.is_in_flight(), WHERE, IN_FLIGHT)
        }),
        OptionEffect::always("strict"),
        OptionEffect::always("strategy"),
        OptionEffect::new("reference", |flow| {
            let direct = flow.strategy == StrategyWord::Direct;
            Idle::when(
                direct,
                "with strategy relate or chain alone",
                "a direct rule does not use it",
            )
        }),
        OptionEffect::new("behavior", |flow| {
            let idle = flow.is_in_flight() && flow.behavior != BehaviorWord::Reject;
            Idle::when(
                idle,
                WHERE,
                "a concurrency rule refuses; it neither warms up nor queues",
            )
        }),
        OptionEffect::new("warm_up_period", |flow| {
            Idle::when(
                !flow.warms(),
                "with grade qps and behavior warm_up or warm_up_pace",
                "nothing warms up",
            )
        }),
        OptionEffect::new("cold_factor", |flow| {
            Idle::when(
                !flow.warms(),
                "with grade qps and behavior warm_up or warm_up_pace",
                "nothing warms up",
            )
        }),
        OptionEffect::new("max_queueing_time", |flow| {
            Idle::when(
                !flow.paces(),
                "with grade qps and behavior pace or warm_up_pace",
                "nobody waits",
            )
        }),
        OptionEffect::new("cluster", |flow| effect::alone(flow.cluster.as_ref(), true)),
    ];
}

impl FlowOptions {
    fn is_in_flight(&self) -> bool {
        self.grade == GradeWord::Concurrency
    }

    fn is_plain_second(&self) -> bool {
        !self.is_in_flight()
            && self.behavior == BehaviorWord::Reject
            && !self.strict
            && self.window == SECOND
    }

    fn warms(&self) -> bool {
        let warms = matches!(
            self.behavior,
            BehaviorWord::WarmUp | BehaviorWord::WarmUpPace
        );
        warms && !self.is_in_flight()
    }

    fn paces(&self) -> bool {
        let paces = matches!(self.behavior, BehaviorWord::Pace | BehaviorWord::WarmUpPace);
        paces && !self.is_in_flight()
    }

    fn check_pattern(&self, section: &mut Section<'_, '_>) {
        if !self.regex {
            return;
        }
        if self.behavior != BehaviorWord::Reject && self.grade == GradeWord::Qps {
            section.refuse(
                &["behavior", "regex"],
                "reject",
                "a regex rule can only reject",
            );
        }
        if self.cluster.is_some() {
            section.refuse(
                &["cluster", "regex"],
                "no cluster part",
                "a regex rule has none",
            );
        }
    }

    fn check_strained(&self, section: &mut Section<'_, '_>) {
        let over = self
            .strained_count
            .is_some_and(|strained| strained.get() > self.count.get());
        if over {
            let allowed = format!("at most the count, {}", self.count);
            section.refuse(
                &["strained_count", "count"],
                allowed,
                "the strained limit cannot be the larger one",
            );
        }
    }

    fn check_window(&self, section: &mut Section<'_, '_>) {
        let reject = self.grade == GradeWord::Qps && self.behavior == BehaviorWord::Reject;
        let hint = "only a qps rule that rejects has windows";
        if self.strict && !reject {
            section.refuse(&["strict", "behavior", "grade"], "false", hint);
        }
        if self.window != SECOND && !reject {
            section.refuse(&["window", "behavior", "grade"], "\"1s\"", hint);
        }
        if reject {
            let numbers = (self.count.whole(), self.window, self.strict);
            bounds::check_window(numbers, section);
        }
    }

    fn behavior(&self, section: &mut Section<'_, '_>) -> Option<Behavior> {
        let (period, max_queueing_time) = (self.warm_up_period, self.max_queueing_time);
        let cold_factor = self.cold_factor;
        let behavior = match self.behavior {
            BehaviorWord::Reject => return Some(Behavior::Reject),
            // The behavior of a concurrency rule is not looked at, so its times may be anything.
            _ if self.grade == GradeWord::Concurrency => return Some(Behavior::Reject),
            BehaviorWord::WarmUp => Behavior::WarmUp {
                period,
                cold_factor,
            },
            BehaviorWord::Pace => Behavior::Pace { max_queueing_time },
            BehaviorWord::WarmUpPace => Behavior::WarmUpPace {
                period,
                cold_factor,
                max_queueing_time,
            },
        };
        let warms = self.behavior != BehaviorWord::Pace;
        let paces = self.behavior != BehaviorWord::WarmUp;
        let mut sound = true;
        if warms {
            bounds::check_seconds("warm_up_period", period, section);
        }
        if warms && period.is_zero() {
            section.refuse(&["warm_up_period"], "more than 0", "this behavior warms up");
            sound = false;
        } else if warms {
            bounds::check_warm_up(self.count, period, section);
        }
        if paces && max_queueing_time.is_zero() {
            section.refuse(
                &["max_queueing_time"],
                "more than 0",
                "this behavior makes requests wait",
            );
            sound = false;
        }
        sound.then_some(behavior)
    }

    fn strategy(&self, section: &mut Section<'_, '_>) -> Option<Strategy> {
        match (self.strategy, &self.reference) {
            (StrategyWord::Direct, _reference) => Some(Strategy::Direct),
            // Our own form has no name without a letter.
            (_, Some(name)) if name.is_empty() => Some(Strategy::Nowhere),
            (StrategyWord::Relate, Some(resource)) => Some(Strategy::Relate(resource.clone())),
            (StrategyWord::Chain, Some(context)) => Some(Strategy::Chain(context.clone())),
            (StrategyWord::Relate | StrategyWord::Chain, None) => {
                let hint = "this strategy needs the other resource (relate) or the context (chain)";
                section.refuse(&["reference"], "a name", hint);
                None
            }
        }
    }
}
