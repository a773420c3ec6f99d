//! Real pages in private memory, the agent's directory over them, and a clock that the script moves.

use std::cell::Cell;
use std::fmt;

use serde_json::Value;
use tidegate_abi::decision::LossMode;
use tidegate_abi::geometry::Geometry;
use tidegate_agent::rule::flow::{Behavior, Grade};
use tidegate_agent::rule::{Body, QuirksOption, Rule, RuleSet};
use tidegate_agent::rule_source::form::read;
use tidegate_agent::schema::source::Source;
use tidegate_agent::tenant::OPEN_SCOPE;
use tidegate_agent::tenant::directory::ResourceDirectory;
use tidegate_agent::tenant::rule_index::RuleIndex;
use tidegate_limits::pacing::Pacing;
use tidegate_segment::board::{self, BoardSettings, Process, TickWriter};
use tidegate_segment::clock::Clock;
use tidegate_segment::gate::Gate;
use tidegate_segment::ledger::Ledger;
use tidegate_segment::page::Page;

/// Resources with their origins and contexts.
const NAMES: u32 = 2_048;

/// Time that stands still until the script moves it.
#[derive(Debug)]
pub(crate) struct Scripted(Cell<u64>);

impl Scripted {
    pub(crate) fn set(&self, now_ns: u64) {
        self.0.set(now_ns);
    }
}

impl Clock for Scripted {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }
}

/// Fields of these rules that nobody reads.
pub(crate) fn unread(rules: &[Value]) -> Vec<String> {
    let text = Value::from(rules).to_string();
    let read = read("vector.json".as_ref(), &Source::new("vector.json", text));
    let told = read.warnings.into_iter().chain(read.faults);
    let unknown = told.filter(|fault| fault.hint.starts_with("no such option"));
    unknown.map(|fault| fault.option).collect()
}

/// A tenant without an agent process.
#[derive(Debug)]
pub(crate) struct World {
    /// Kept for the life of the process, as private pages are.
    pub(crate) clock: &'static Scripted,
    pub(crate) gate: Gate,
    pub(crate) directory: Box<ResourceDirectory>,
    pub(crate) tick: TickWriter,
    quirks: QuirksOption,
    publishes: u64,
    /// The flow rules that were given last.
    flows: Option<Vec<Result<Body, Value>>>,
    /// Whether they were refused.
    refused: bool,
}

impl World {
    pub(crate) fn new(quirks: QuirksOption, start_ns: u64) -> Self {
        let geometry = Geometry::new(NAMES, 2, 2, 1).expect("sizes are allowed");
        let settings = BoardSettings {
            generation: 1,
            time_to_live_ns: u64::MAX,
            grace_ns: u64::MAX,
            loss_mode: LossMode::Open,
        };
        let page = Page::private(geometry.board().words);
        let (board, mut writers) = board::create(page, geometry, settings).expect("large enough");
        let page = Page::private(geometry.ledger().words);
        let ledger = Ledger::create(page, geometry).expect("large enough");
        let process = Process {
            pid: 1,
            start: 1,
            uid: 0,
            scope: 0,
        };
        let generation = writers.seats.seat(1, process).expect("a free seat");
        writers.tick.publish_scope(0, &OPEN_SCOPE);
        writers.tick.publish_samples(None, None);
        Self {
            clock: Box::leak(Box::new(Scripted(Cell::new(start_ns)))),
            gate: Gate::new(board, ledger, 1, generation),
            directory: ResourceDirectory::new(writers.rules, ledger).expect("room for two names"),
            tick: writers.tick,
            quirks,
            publishes: 0,
            flows: None,
            refused: false,
        }
    }

    pub(crate) fn is_sentinel(&self) -> bool {
        self.quirks == QuirksOption::Sentinel189
    }

    /// Loads rules as the agent does. A rule that is not valid is left out, as in Sentinel; so is a list of flow
    /// rules that equals the last one, also where that was refused.
    ///
    /// # Errors
    /// What is wrong with the list as a whole; the rules before stay in force.
    pub(crate) fn load(&mut self, rules: &[Value]) -> Result<(), Unloaded> {
        let text = Value::from(rules).to_string();
        let read = read("vector.json".as_ref(), &Source::new("vector.json", text));
        let flows = flows(rules, &read.rules);
        let again = self.flows.as_ref() == Some(&flows);
        if again && self.refused {
            return Ok(());
        }
        self.flows = Some(flows);
        self.refused = false;
        let paced = read.rules.iter().any(breaks_sentinel);
        let built = RuleSet::build(read.rules, self.quirks);
        let set = built.map_err(|faults| {
            self.refused = true;
            let fault = format!("{faults:?}");
            if paced && self.is_sentinel() {
                Unloaded::AsSentinel(fault)
            } else {
                Unloaded::Otherwise(fault)
            }
        })?;
        // Another list with the same valid rules: Sentinel builds their state anew.
        if !again && self.is_sentinel() && same_flows(&set, self.directory.rule_index().rules()) {
            let others = set.rules().iter().filter(|rule| rule.body.flow().is_none());
            let others = RuleSet::build(others.cloned().collect(), self.quirks);
            self.publish(others.map_err(|faults| Unloaded::Otherwise(format!("{faults:?}")))?)?;
        }
        self.publish(set)
    }

    fn publish(&mut self, set: RuleSet) -> Result<(), Unloaded> {
        self.publishes += 1;
        let now_ns = self.publishes * 1_000_000_000;
        let published = self.directory.publish(RuleIndex::of(set.into()), now_ns);
        let published = published.map_err(|fault| Unloaded::Otherwise(fault.to_string()))?;
        if published.unplaced.is_empty() {
            Ok(())
        } else {
            let fault = format!("no room for {:?}", published.unplaced);
            Err(Unloaded::Otherwise(fault))
        }
    }

    /// The place of a rule in the list that is loaded.
    pub(crate) fn place_of(&self, number: u32) -> Option<u64> {
        let limits = self.directory.rule_index();
        let index = usize::try_from(number).ok()?;
        let path = &limits.rules().rules().get(index)?.path;
        path.trim_matches(['[', ']']).parse().ok()
    }
}

/// A list of rules that could not be loaded, and why.
#[derive(Debug)]
pub(crate) enum Unloaded {
    /// Sentinel cannot load it either.
    AsSentinel(String),
    /// A limit of ours.
    Otherwise(String),
}

impl fmt::Display for Unloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::AsSentinel(fault) | Self::Otherwise(fault)) = self;
        f.write_str(fault)
    }
}

impl Unloaded {
    /// Fine where Sentinel cannot load the rules either.
    ///
    /// # Errors
    /// Why they could not be loaded, otherwise.
    pub(crate) fn unless_as_sentinel(self) -> Result<(), String> {
        match self {
            Self::AsSentinel(_) => Ok(()),
            Self::Otherwise(fault) => Err(format!("its rules cannot be loaded, {fault}")),
        }
    }
}

/// The flow rules of a list, in their order: what each says, or how it is written where it is not valid.
fn flows(rules: &[Value], valid: &[Rule]) -> Vec<Result<Body, Value>> {
    let listed = rules.iter().enumerate().filter_map(|(place, raw)| {
        let path = format!("[{place}]");
        let body = valid.iter().find(|rule| rule.path == path);
        match body.map(|rule| &rule.body) {
            Some(body @ Body::Flow(_)) => Some(Ok(body.clone())),
            None if raw["type"] == "flow" => Some(Err(raw.clone())),
            _ => None,
        }
    });
    listed.collect()
}

fn same_flows(one: &RuleSet, other: &RuleSet) -> bool {
    let flows = |set: &RuleSet| -> Vec<Body> {
        let bodies = set.rules().iter().map(|rule| rule.body.clone());
        bodies.filter(|body| body.flow().is_some()).collect()
    };
    flows(one) == flows(other)
}

/// Whether Sentinel divides by zero where it loads the rule.
fn breaks_sentinel(rule: &Rule) -> bool {
    rule.body.flow().is_some_and(|flow| {
        let paces = matches!(
            flow.grade,
            Grade::Qps {
                behavior: Behavior::Pace { .. },
                ..
            }
        );
        paces && Pacing::breaks_sentinel(flow.count.get())
    })
}
