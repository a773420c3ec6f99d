//! A ledger that another process has filled with anything: a decision ends, and what it says of the
//! pages stays inside them.
#![no_main]

use std::cell::{Cell, OnceCell, RefCell};

use libfuzzer_sys::fuzz_target;
use tidegate_abi::board::ScopeWord;
use tidegate_abi::decision::{LossMode, Outcome, ScopeState};
use tidegate_abi::geometry::Geometry;
use tidegate_agent::config::schema::source::Source;
use tidegate_agent::rule::{Quirks, RuleSet};
use tidegate_agent::rule_source::directory::read;
use tidegate_agent::tenant::OPEN_SCOPE;
use tidegate_agent::tenant::directory::Directory;
use tidegate_agent::tenant::limit::Limits;
use tidegate_segment::board::{self, Board, Process, ScopeReport, Settings, Slot, TickWriter};
use tidegate_segment::clock::Clock;
use tidegate_segment::gate::{Arg, Gate, Request, Step, Verdict};
use tidegate_segment::lane::Lane;
use tidegate_segment::ledger::Ledger;
use tidegate_segment::page::Page;
use tidegate_segment::sync::Ordering;

/// One resource for each way through the gate.
const RULES: &str = include_str!("every_kind.toml");

struct Scripted(Cell<u64>);

impl Clock for Scripted {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }
}

/// Pages are never given back, so they are made once.
struct World {
    clock: Scripted,
    gate: Gate,
    tick: RefCell<TickWriter>,
    board: Board,
    ledger: Ledger,
    geometry: Geometry,
    page: Page,
    first_word: usize,
    slots: Vec<Slot>,
    foreign: Page,
}

impl World {
    fn new() -> Self {
        let geometry = Geometry::new(1024, 4, 3, 2).expect("sizes are allowed");
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
        writers.tick.publish_samples(Some(1.0), Some(0.5));
        let directory = Directory::new(writers.rules, ledger).expect("room for two names");
        let rules = read(
            "every_kind.toml".as_ref(),
            &Source::new("every_kind.toml", RULES),
        );
        let set = RuleSet::build(rules.rules, Quirks::None).expect("the rules are valid");
        let published = directory.publish(Limits::of(set.into()), 1_000_000_000);
        let unplaced = published.expect("they fit").unplaced;
        assert!(unplaced.is_empty(), "no room for {unplaced:?}");
        let slots = directory
            .list()
            .into_iter()
            .map(|(_name, slot)| slot)
            .collect();
        Self {
            clock: Scripted(Cell::new(1 << 40)),
            gate: Gate::new(board, ledger, 1, generation),
            tick: RefCell::new(writers.tick),
            board,
            ledger,
            geometry,
            page,
            first_word: geometry.ledger().scopes.start(),
            slots,
            foreign: Page::private(geometry.board().words.max(geometry.ledger().words)),
        }
    }

    fn run(&self, turns: &[u8], words: &[u64]) {
        for turn in turns {
            fill(self.page, self.first_word, words);
            self.publish(*turn);
            let at = usize::from(*turn) % self.slots.len();
            self.clock
                .0
                .set(self.clock.0.get() + (u64::from(*turn) << 22));
            if let Some(&slot) = self.slots.get(at) {
                self.ask(slot, u32::from(*turn) & 3);
            }
        }
    }

    /// Whatever the agent says of the scope, the ledger says what is in flight.
    fn publish(&self, turn: u8) {
        let state = match turn >> 6 {
            0 | 1 => ScopeState::Healthy,
            2 => ScopeState::Overload,
            _ => ScopeState::Reject,
        };
        let word = ScopeWord {
            state,
            short: turn & 32 != 0,
            near: true,
            entry: 40,
            tight: 10,
        };
        let report = ScopeReport { word, ..OPEN_SCOPE };
        let mut tick = self.tick.borrow_mut();
        tick.publish_scope(0, if turn < 64 { &OPEN_SCOPE } else { &report });
        tick.publish_cutoff(0, u32::from(turn));
    }

    fn ask(&self, slot: Slot, lane: u32) {
        let lane = Lane::numbered(lane);
        let args = [Arg::Many(&[1, u64::MAX, 3])];
        let request = Request {
            args: &args,
            prioritized: lane == Lane::SHARED,
            ..Request::default()
        };
        let mut step = self.gate.enter(&self.clock, lane, slot, request);
        // One wait for each value and each rule is the most.
        for _wait in 0..64 {
            if let Step::Wait(waiting) = step {
                step = self.gate.resume(&self.clock, lane, &waiting);
            }
        }
        match step {
            Step::Done(Verdict::Admitted(pass)) => {
                self.gate.exit(&self.clock, lane, pass, Outcome::Error);
            }
            Step::Done(_) => {}
            Step::Wait(_) => panic!("a decision ends"),
        }
        let _counts = self.ledger.node_counts(&self.board, slot);
        let _scopes = self.ledger.scope_counts(&self.board, 0);
        let _one_shot = self.gate.admit_one_shot(&self.clock, 0);
    }
}

fn fill(page: Page, first: usize, words: &[u64]) {
    for (word, value) in page.words().iter().skip(first).zip(words.iter().cycle()) {
        word.store(*value, Ordering::Relaxed);
    }
}

thread_local! {
    static WORLD: OnceCell<World> = const { OnceCell::new() };
}

fuzz_target!(|bytes: &[u8]| {
    let Some((turns, content)) = bytes.split_at_checked(4) else {
        return;
    };
    let words: Vec<u64> = content
        .as_chunks()
        .0
        .iter()
        .map(|word| u64::from_le_bytes(*word))
        .collect();
    WORLD.with(|world| {
        let world = world.get_or_init(World::new);
        world.run(turns, &words);
        // What a service takes for a board must say that it is one.
        fill(world.foreign, 0, &words);
        let _board = Board::open(world.foreign);
        let _ledger = Ledger::open(world.foreign, world.geometry);
    });
});
