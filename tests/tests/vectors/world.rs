//! Real pages in private memory, the agent's directory over them, and a clock that the script moves.

use std::cell::Cell;

use serde_json::Value;
use tidegate_abi::decision::LossMode;
use tidegate_abi::geometry::Geometry;
use tidegate_agent::config::schema::source::Source;
use tidegate_agent::rule::{Quirks, RuleSet};
use tidegate_agent::rule_source::directory::read;
use tidegate_agent::tenant::OPEN_SCOPE;
use tidegate_agent::tenant::directory::Directory;
use tidegate_agent::tenant::limit::Limits;
use tidegate_segment::board::{self, Process, Settings, TickWriter};
use tidegate_segment::clock::Clock;
use tidegate_segment::gate::Gate;
use tidegate_segment::ledger::Ledger;
use tidegate_segment::page::Page;

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
    pub(crate) directory: Box<Directory>,
    pub(crate) tick: TickWriter,
    quirks: Quirks,
    publishes: u64,
    /// The last list that was refused.
    refused: Option<Vec<Value>>,
}

impl World {
    pub(crate) fn new(quirks: Quirks, start_ns: u64) -> Self {
        let geometry = Geometry::new(512, 2, 2, 1).expect("sizes are allowed");
        let settings = Settings {
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
            directory: Directory::new(writers.rules, ledger).expect("room for two names"),
            tick: writers.tick,
            quirks,
            publishes: 0,
            refused: None,
        }
    }

    /// Loads rules as the agent does. A list that was refused is not looked at a second time, as in
    /// Sentinel.
    ///
    /// # Errors
    /// What is wrong with the list as a whole; the rules before stay in force.
    pub(crate) fn load(&mut self, rules: &[Value]) -> Result<(), String> {
        if self.refused.as_deref() == Some(rules) {
            return Ok(());
        }
        let text = serde_json::to_string(rules).map_err(|error| error.to_string())?;
        // A rule that is not valid is left out, as in Sentinel.
        let read = read("vector.json".as_ref(), &Source::new("vector.json", text));
        let built = RuleSet::build(read.rules, self.quirks);
        let set = built.map_err(|faults| {
            self.refused = Some(rules.to_vec());
            format!("{faults:?}")
        })?;
        self.publishes += 1;
        let now_ns = self.publishes * 1_000_000_000;
        let published = self.directory.publish(Limits::of(set.into()), now_ns);
        let published = published.map_err(|fault| fault.to_string())?;
        if published.unplaced.is_empty() {
            Ok(())
        } else {
            Err(format!("no room for {:?}", published.unplaced))
        }
    }

    /// The place of a rule in the list that is loaded.
    pub(crate) fn place_of(&self, number: u32) -> Option<u64> {
        let limits = self.directory.limits();
        let index = usize::try_from(number).ok()?;
        let path = &limits.rules().rules().get(index)?.path;
        path.trim_matches(['[', ']']).parse().ok()
    }
}
