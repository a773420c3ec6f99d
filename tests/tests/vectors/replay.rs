//! Runs a script: events in their order, and callers that wait in between.

use std::collections::HashMap;
use std::fmt;

use serde_json::{Value, json};
use tidegate_abi::board::name_hash;
use tidegate_abi::decision::{Direction, Outcome, Reason, RefusalKind};
use tidegate_agent::rule::QuirksOption;
use tidegate_agent::tenant::rule_index::Part;
use tidegate_limits::breaker::BreakerState;
use tidegate_limits::number::whole_ms;
use tidegate_segment::board::{RuleKind, Slot};
use tidegate_segment::gate::{
    Arg, GateVerdict, Pass, Refusal, Request, RequestName, Step, WaitingDecision,
};
use tidegate_segment::lane::Lane;

use crate::figures::{Figures, Node, TOTAL};
use crate::script::{Enter, Entry, Event, Hashed, Script, What};
use crate::world::{Unloaded, World};

const MS: u64 = 1_000_000;
const LANE: Lane = Lane::numbered(1);

/// The first event that gave something else.
#[derive(Debug)]
pub(crate) struct Difference {
    pub(crate) event: usize,
    what: String,
    expected: Value,
    pub(crate) given: Value,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            event,
            what,
            expected,
            given,
        } = self;
        write!(
            f,
            "event {event} differs: {what}\n  expected {expected}\n  given    {given}"
        )
    }
}

/// Runs a script and gives the first difference.
///
/// # Errors
/// Its rules, all of them, cannot be loaded.
pub(crate) fn replay(script: &Script, quirks: QuirksOption) -> Result<Option<Difference>, String> {
    let hashed: Vec<Vec<Hashed>> = script.events.iter().map(arguments).collect();
    let args: Vec<Vec<Arg<'_>>> = hashed
        .iter()
        .map(|args| args.iter().map(arg).collect())
        .collect();
    let mut run = Run {
        world: World::new(quirks, script.start_ms * MS),
        figures: Figures::new(quirks),
        start_ns: script.start_ms * MS,
        waiting: Vec::new(),
        admitted: HashMap::new(),
        given: vec![Value::Null; script.events.len()],
        origins: origins(script),
    };
    // Nothing is expected of the first load. One that Sentinel refuses leaves no rules.
    let loaded = run.world.load(&script.rules);
    loaded.or_else(Unloaded::unless_as_sentinel)?;
    for ((index, event), args) in script.events.iter().enumerate().zip(&args) {
        let now_ns = run.start_ns + event.t_ms * MS;
        run.wake_until(now_ns);
        run.advance(now_ns);
        run.event(index, event, args);
    }
    run.wake_until(u64::MAX);
    let pairs = script.expect.iter().zip(&run.given);
    let mut pairs = pairs.zip(&script.events).enumerate();
    Ok(pairs.find_map(|(event, ((expected, given), what))| {
        let kept = !(given.is_null() && matches!(what.what, What::Stats { .. }));
        (kept && !equal(expected, given)).then(|| Difference {
            event,
            what: format!("{what:?}"),
            expected: expected.clone(),
            given: given.clone(),
        })
    }))
}

/// Origins whose figures are asked for, whether or not a rule wants them.
fn origins(script: &Script) -> Vec<String> {
    let asked = script.events.iter().filter_map(|event| {
        let What::Stats { origin, .. } = &event.what else {
            return None;
        };
        origin.clone()
    });
    asked.collect()
}

fn arguments(event: &Event) -> Vec<Hashed> {
    let What::Enter(enter) = &event.what else {
        return Vec::new();
    };
    enter.hashed()
}

fn arg(argument: &Hashed) -> Arg<'_> {
    match argument {
        Hashed::None => Arg::None,
        Hashed::One(value) => Arg::One(*value),
        Hashed::Many(values) => Arg::Many(values),
    }
}

/// Expected numbers are doubles with up to six decimals; every key that is expected must be there.
fn equal(expected: &Value, given: &Value) -> bool {
    match (expected, given) {
        (Value::Number(expected), Value::Number(given)) => {
            let numbers = expected.as_f64().zip(given.as_f64());
            numbers.is_some_and(|(expected, given)| (expected - given).abs() < 0.000_000_5)
        }
        (Value::Object(expected), Value::Object(given)) => expected.iter().all(|(key, value)| {
            let given = given.get(key);
            given.is_some_and(|given| key == "load_error" || equal(value, given))
        }),
        _ => expected == given,
    }
}

/// A request that was let in, or waits.
#[derive(Debug, Clone)]
struct Caller {
    event: usize,
    id: u64,
    resource: String,
    origin: String,
    entry: Entry,
    count: u32,
    entered_ns: u64,
}

struct Run<'s> {
    world: World,
    figures: Figures,
    start_ns: u64,
    /// In the order in which they began to wait.
    waiting: Vec<(Caller, WaitingDecision<'s>)>,
    admitted: HashMap<u64, (Caller, Pass)>,
    given: Vec<Value>,
    origins: Vec<String>,
}

impl<'s> Run<'s> {
    fn now_ns(&self) -> u64 {
        use tidegate_segment::clock::Clock as _;
        self.world.clock.now_ns()
    }

    fn advance(&mut self, now_ns: u64) {
        self.figures.sample(&self.world, now_ns);
        self.world.clock.set(now_ns);
    }

    /// Goes on with everybody whose wait ends by then, the earliest first.
    fn wake_until(&mut self, until_ns: u64) {
        loop {
            let due = self.waiting.iter().enumerate();
            let due = due.filter(|(_place, (_caller, waiting))| waiting.until_ns() <= until_ns);
            let first = due.min_by_key(|(place, (_caller, waiting))| (waiting.until_ns(), *place));
            let Some((place, _)) = first else { return };
            let (caller, waiting) = self.waiting.remove(place);
            self.advance(waiting.until_ns());
            let step = self.world.gate.resume(self.world.clock, LANE, &waiting);
            self.settle(caller, &step);
        }
    }

    fn event(&mut self, index: usize, event: &Event, args: &'s [Arg<'s>]) {
        match &event.what {
            What::Enter(enter) => self.enter(index, enter, args),
            What::Exit { id, error } => self.exit(*id, *error),
            What::Breakers { resource } => self.given[index] = self.breakers(resource),
            What::Stats { resource, origin } => {
                let now_ns = self.now_ns();
                let node = (resource.clone(), origin.clone().unwrap_or_default());
                let figures = self.figures.of(&self.world, &node, now_ns);
                let unlike = (resource == TOTAL)
                    .then(|| Figures::unlike_inbound(&self.world, now_ns, &figures));
                self.given[index] = unlike.flatten().unwrap_or(figures);
            }
            What::SetSystem { load, cpu } => {
                let measured = |value: &Option<f64>| value.filter(|value| *value >= 0.0);
                self.world
                    .tick
                    .publish_samples(measured(load), measured(cpu));
            }
            What::LoadRules { rules } => {
                self.given[index] = match self.world.load(rules) {
                    Ok(()) => Value::Null,
                    Err(fault) => json!({ "load_error": fault.to_string() }),
                };
            }
            What::Server | What::Unknown(_) => {}
        }
    }

    fn enter(&mut self, event: usize, enter: &Enter, args: &'s [Arg<'s>]) {
        let slot = self.world.directory.resolve(&enter.resource).slot;
        let request = Request {
            count: enter.count,
            direction: match enter.entry {
                Entry::In => Direction::In,
                Entry::Out => Direction::Out,
            },
            prioritized: enter.prioritized,
            origin: self.part(&enter.resource, Part::Origin, &enter.origin),
            context: self.part(&enter.resource, Part::Context, enter.context_name()),
            args,
            ..Request::default()
        };
        let resource = (enter.resource.clone(), String::new());
        self.figures.know(resource, slot);
        if let Some(node) = request.origin.node {
            let part = (enter.resource.clone(), enter.origin.clone());
            self.figures.know(part, node);
        }
        if enter.entry == Entry::In {
            self.figures
                .know((TOTAL.to_owned(), String::new()), Slot::INBOUND);
        }
        let caller = Caller {
            event,
            id: enter.id,
            resource: enter.resource.clone(),
            origin: enter.origin.clone(),
            entry: enter.entry,
            count: enter.count,
            entered_ns: self.now_ns(),
        };
        let step = self.world.gate.enter(self.world.clock, LANE, slot, request);
        self.settle(caller, &step);
    }

    fn part(&self, resource: &str, part: Part, name: &str) -> RequestName {
        if name.is_empty() {
            return RequestName::default();
        }
        let directory = &self.world.directory;
        // Sentinel counts each from its first call, whether or not a rule wants it yet.
        let kept = self.world.is_sentinel() || self.origins.iter().any(|origin| origin == name);
        let node = if kept {
            let whole = tidegate_agent::tenant::directory::part_name(resource, part, name);
            Some(directory.resolve(&whole).slot)
        } else {
            directory.resolve_part(resource, part, name, 0)
        };
        RequestName {
            hash: name_hash(name.as_bytes()),
            node,
        }
    }

    fn settle(&mut self, caller: Caller, step: &Step<'s>) {
        let now_ns = self.now_ns();
        let event = caller.event;
        let verdict = match step {
            Step::Wait(waiting) => {
                self.waiting.push((caller, *waiting));
                return;
            }
            Step::Done(verdict) => *verdict,
        };
        let waited_ns = now_ns - caller.entered_ns;
        let given = match verdict {
            GateVerdict::Admitted(pass) => {
                let inbound = caller.entry == Entry::In;
                self.figures
                    .passed(&self.world, now_ns, inbound, caller.count);
                let id = caller.id;
                let given = if pass.waited_ns == waited_ns {
                    json!({ "id": id, "pass": true })
                } else {
                    json!({ "id": id, "told_wait_ns": pass.waited_ns })
                };
                self.admitted.insert(id, (caller, pass));
                given
            }
            GateVerdict::Refused(refusal) => {
                self.figures
                    .refused(caller.entry == Entry::In, caller.count);
                self.refused(caller.id, &refusal)
            }
            GateVerdict::Stale => json!({ "id": caller.id, "stale": true }),
        };
        self.given[event] = with_wait(given, waited_ns);
    }

    fn refused(&self, id: u64, refusal: &Refusal) -> Value {
        let mut given = json!({
            "id": id,
            "pass": false,
            "blocked_by": refusal.kind.name(),
        });
        if refusal.kind == RefusalKind::System {
            given["metric"] = Value::from(metric(refusal.reason));
        } else {
            given["rule"] = Value::from(self.world.place_of(refusal.rule));
        }
        given
    }

    fn exit(&mut self, id: u64, error: bool) {
        let now_ns = self.now_ns();
        // A request that was refused against expectation shows where it entered.
        let Some((caller, pass)) = self.admitted.remove(&id) else {
            return;
        };
        let outcome = if error { Outcome::Error } else { Outcome::Ok };
        let rt_ms = (whole_ms(now_ns) - whole_ms(caller.entered_ns)) / MS;
        self.world.gate.exit(self.world.clock, LANE, pass, outcome);
        let ended = (caller.count, rt_ms, error);
        self.figures.ended(nodes(&caller), now_ns, ended);
    }

    /// The states of a resource's breakers, from their words.
    fn breakers(&self, resource: &str) -> Value {
        let now_ns = self.now_ns();
        let slot: Slot = self.world.directory.resolve(resource).slot;
        let view = self.world.gate.board().view();
        let record = view.record(slot.index).expect("the record is whole");
        let rules = (0..record.rules).filter_map(|place| view.rule(record.rules_first + place));
        let states = rules.filter_map(|rule| {
            let RuleKind::Degrade { breaker, .. } = rule.kind else {
                return None;
            };
            let state = self.world.gate.ledger().state(rule.state)?;
            let word = state.word().load(tidegate_segment::sync::Ordering::Relaxed);
            Some(match breaker.state(word, now_ns) {
                BreakerState::Closed => "closed",
                BreakerState::Open => "open",
                BreakerState::HalfOpen => "half_open",
            })
        });
        json!({ "states": states.collect::<Vec<_>>() })
    }
}

/// The nodes that a call counts on.
fn nodes(caller: &Caller) -> Vec<Node> {
    let mut nodes = vec![(caller.resource.clone(), String::new())];
    if !caller.origin.is_empty() {
        nodes.push((caller.resource.clone(), caller.origin.clone()));
    }
    if caller.entry == Entry::In {
        nodes.push((TOTAL.to_owned(), String::new()));
    }
    nodes
}

const fn metric(reason: Reason) -> &'static str {
    match reason {
        Reason::Qps => "qps",
        Reason::Concurrency => "thread",
        Reason::AvgRt => "rt",
        Reason::Load => "load",
        Reason::Cpu => "cpu",
        Reason::Overload
        | Reason::Reject
        | Reason::AgentLost
        | Reason::AllowedQps
        | Reason::Queue
        | Reason::BreakerOpen
        | Reason::Origin
        | Reason::Values => "none of a system rule",
    }
}

#[expect(clippy::cast_precision_loss, reason = "waits are far below 2^53 ns")]
fn with_wait(mut given: Value, waited_ns: u64) -> Value {
    given["wait_ms"] = Value::from(waited_ns as f64 / 1e6);
    given
}
