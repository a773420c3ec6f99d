//! Rules as the operator gives them, proven: what exists here has passed every check.
//!
//! One file per kind holds the table of its options and the checked form; a new kind begins with a
//! file here. [`mod@file`] reads our TOML, [`sentinel`] reads Sentinel's JSON, [`set`] puts the rules of
//! several files together.

pub mod amount;
pub mod authority;
mod bounds;
pub mod bulkhead;
pub mod changed;
mod circle;
pub mod cluster;
pub mod degrade;
pub mod effect;
pub mod expiry;
pub mod file;
pub mod flow;
mod java_pattern;
mod meant;
pub mod param;
mod patterns;
pub mod resource;
pub mod sentinel;
pub mod set;
mod shadow;
mod strain;
pub mod system;

use tidegate_abi::decision::{Mode, RefusalKind};

use crate::schema::fault::{InFile, Spot};
use crate::schema::kind::words;
use crate::schema::settings::{OptionTable, Section};

pub use amount::Amount;
pub use authority::Authority;
pub use cluster::Cluster;
pub use degrade::Degrade;
pub use effect::Effects;
pub use expiry::{End, Expires};
pub use flow::Flow;
pub use param::Param;
pub use resource::{Pattern, RuleResource};
pub use set::{Fate, RuleSet};
pub use system::System;

words! {
    /// Whose verdicts a rule set gives where Sentinel has a known defect.
    pub enum QuirksOption {
        /// The right ones.
        None = "none",
        /// Those of Sentinel 1.8.9.
        Sentinel189 = "sentinel-1.8.9",
    }
}

#[expect(clippy::derivable_impls, reason = "the macro writes the derives")]
impl Default for QuirksOption {
    fn default() -> Self {
        Self::None
    }
}

impl From<QuirksOption> for tidegate_limits::quirks::Quirks {
    fn from(quirks: QuirksOption) -> Self {
        match quirks {
            QuirksOption::None => Self::None,
            QuirksOption::Sentinel189 => Self::Sentinel,
        }
    }
}

/// A rule and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Given in the file, else `FILE:flow[2]`, with the whole path where another source has a file of that name. Unique
    /// among the rules of a kind.
    pub id: String,
    /// Whether it refuses, counts only, or does nothing.
    pub mode: Mode,
    /// What it says.
    pub body: Body,
    /// When it ends by itself; `None` is never.
    pub end: Option<End>,
    /// The usual count of a flow rule while the strained one is in its place.
    pub usual: Option<Amount>,
    /// Where it stands.
    pub place: InFile,
    /// Its id.
    pub id_spot: Spot,
    /// Its count.
    pub count_spot: Spot,
    /// Its reference to another resource.
    pub reference_spot: Spot,
    /// Path of its table in the file, such as `flow[2]`.
    pub path: String,
    /// Whether it comes from a file in Sentinel's form. Its id is a label then, which others may have.
    pub of_sentinel: bool,
}

impl Rule {
    /// The system rule that the configuration makes of its own marks.
    pub fn of_law((marks, mode): &(System, Mode), id: &str) -> Self {
        let place = InFile::whole("tidegate.toml");
        let spot = |name| Spot {
            name,
            place: place.clone(),
        };
        Self {
            id: id.to_owned(),
            mode: *mode,
            body: Body::System(marks.clone()),
            end: None,
            usual: None,
            id_spot: spot("id"),
            count_spot: spot("count"),
            reference_spot: spot("reference"),
            path: id.to_owned(),
            place,
            of_sentinel: false,
        }
    }
}

/// Why no request is held against a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// Its mode is off.
    Off,
    /// Its time is over.
    Ended,
    /// It leaves all to a token server.
    ToServer,
}

impl Rest {
    /// The reason in words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Off => "off: its mode says so",
            Self::Ended => "ended: its time (expires) is over",
            Self::ToServer => "passes all: it leaves them to a token server, and none is asked",
        }
    }
}

impl Rule {
    /// Why no request is held against it; `None` where requests are.
    pub fn rest(&self) -> Option<Rest> {
        if self.mode == Mode::Off {
            Some(Rest::Off)
        } else if self.end.is_some_and(|end| end.over) {
            Some(Rest::Ended)
        } else if self.body.leaves_to_server() {
            Some(Rest::ToServer)
        } else {
            None
        }
    }
}

/// What a rule says, apart from its id and mode.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Body {
    /// Who may call.
    Authority(Authority),
    /// Marks of a scope.
    System(System),
    /// A limit for each value of an argument.
    Param(Param),
    /// A limit on a resource.
    Flow(Flow),
    /// A circuit breaker.
    Degrade(Degrade),
}

impl Body {
    /// The kind, which is also that of its refusals.
    pub const fn kind(&self) -> RefusalKind {
        match self {
            Self::Authority(_) => RefusalKind::Authority,
            Self::System(_) => RefusalKind::System,
            Self::Param(_) => RefusalKind::Param,
            Self::Flow(_) => RefusalKind::Flow,
            Self::Degrade(_) => RefusalKind::Degrade,
        }
    }

    /// Name or pattern of its resource, `*` for breakers of all that have none; `None` for a rule on a scope.
    pub fn resource(&self) -> Option<&str> {
        match self {
            Self::Authority(rule) => Some(&rule.resource),
            Self::Param(rule) => Some(rule.resource.text()),
            Self::Flow(rule) => Some(rule.resource.text()),
            Self::Degrade(rule) => Some(match &rule.resource {
                degrade::GuardedResources::Name(name) => name,
                degrade::GuardedResources::Unguarded => "*",
            }),
            Self::System(_) => None,
        }
    }

    /// Whether it passes everything while no server answers.
    fn leaves_to_server(&self) -> bool {
        let to_server = |cluster: &Option<Cluster>, falls_back: bool| {
            let cluster = cluster.as_ref();
            cluster.is_some_and(|cluster| !cluster.fallback_to_local.unwrap_or(falls_back))
        };
        match self {
            Self::Flow(flow) => to_server(&flow.cluster, true),
            Self::Param(param) => to_server(&param.cluster, false),
            Self::System(_) | Self::Authority(_) | Self::Degrade(_) => false,
        }
    }

    /// Whether it is for the resource of this name. A breaker for all that have none is.
    pub fn is_for(&self, resource: &str) -> bool {
        match self {
            Self::Authority(rule) => rule.resource == resource,
            Self::Param(rule) => rule.resource.matches(resource),
            Self::Flow(rule) => rule.resource.matches(resource),
            Self::Degrade(rule) => match &rule.resource {
                degrade::GuardedResources::Name(name) => name == resource,
                degrade::GuardedResources::Unguarded => true,
            },
            Self::System(_) => false,
        }
    }

    /// The flow rule, if it is one.
    pub const fn flow(&self) -> Option<&Flow> {
        if let Self::Flow(flow) = self {
            Some(flow)
        } else {
            None
        }
    }

    /// Which rule it is, whatever its limits are: a rule whose limits alone changed is the same.
    #[must_use]
    pub fn key(&self) -> RuleKey {
        let mut body = self.clone();
        match &mut body {
            Self::Authority(_) => {}
            Self::System(system) => system.clear_limits(),
            Self::Param(param) => param.clear_limits(),
            Self::Flow(flow) => {
                flow.count = Amount::ZERO;
                flow.strained = None;
            }
            Self::Degrade(degrade) => degrade.clear_limits(),
        }
        RuleKey(body)
    }
}

/// Which rule it is: its body without limits, compared by value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RuleKey(Body);

/// The options of a kind of rule, as a file gives them.
pub trait RuleOptions: OptionTable + Effects {
    /// The id, if one is given.
    fn id(&self) -> Option<&str>;
    /// What the rule does.
    fn mode(&self) -> Mode;
    /// When it ends by itself.
    fn expires(&self) -> Option<Expires>;
    /// Checks how the options go together. `None` and a fault in the section when they do not.
    fn body(&self, section: &mut Section<'_, '_>) -> Option<Body>;

    /// The whole rule; `None` where the section has had faults since there were `before` of them.
    fn rule(&self, section: &mut Section<'_, '_>, before: usize) -> Option<Rule> {
        let body = self.body(section)?;
        if section.fault_count() > before {
            return None;
        }
        self.warn(section);
        let place = section.place();
        let path = section.path().to_owned();
        let id = self
            .id()
            .map_or_else(|| default_id(&place, &path), str::to_owned);
        Some(Rule {
            id,
            mode: self.mode(),
            body,
            end: self.expires().map(End::new),
            usual: None,
            place,
            id_spot: section.spot("id"),
            count_spot: section.spot("count"),
            reference_spot: section.spot("reference"),
            path,
            of_sentinel: section.is_of_sentinel(),
        })
    }
}

/// File name and path of the table: unique, and it says where to look.
fn default_id(place: &InFile, path: &str) -> String {
    let file = place.file.rsplit('/').next().unwrap_or_default();
    format!("{file}:{path}")
}

#[cfg(test)]
mod effect_tests;
#[cfg(test)]
mod number_tests;
