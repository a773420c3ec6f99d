//! A ledger that another process has filled with anything: a decision ends, and what it says of the
//! pages stays inside them.
#![no_main]

use std::cell::{Cell, OnceCell, RefCell};

use libfuzzer_sys::fuzz_target;
use tidegate_abi::argument::{ArgumentKind, text_hash};
use tidegate_abi::board::{ScopeWord, name_hash};
use tidegate_abi::decision::{Class, Direction, LossMode, Outcome, ScopeState};
use tidegate_abi::geometry::Geometry;
use tidegate_abi::message::Part;
use tidegate_agent::rule::{QuirksOption, RuleSet};
use tidegate_agent::rule_source::form::read;
use tidegate_agent::schema::source::Source;
use tidegate_agent::tenant::OPEN_SCOPE;
use tidegate_agent::tenant::directory::ResourceDirectory;
use tidegate_agent::tenant::rule_index::RuleIndex;
use tidegate_segment::board::{
    self, Board, BoardSettings, Process, PublishedScope, Slot, TickWriter,
};
use tidegate_segment::clock::Clock;
use tidegate_segment::gate::{Arg, Gate, GateVerdict, Request, RequestName, Step};
use tidegate_segment::lane::Lane;
use tidegate_segment::ledger::Ledger;
use tidegate_segment::page::Page;
use tidegate_segment::sync::Ordering;

/// A resource for each way through the gate.
const EVERY_KIND: &str = include_str!("every_kind.toml");
/// Rules that concern all of them.
const FOR_ALL: &str = include_str!("for_all.toml");

/// The longest that a rule here lets wait is a borrowed half second, ns.
const WAIT_MAX_NS: u64 = 500_000_000;

struct Scripted(Cell<u64>);

impl Clock for Scripted {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }
}

impl Scripted {
    fn advance(&self, by_ns: u64) {
        self.0.set(self.0.get() + by_ns);
    }
}

/// Two sets of rules that follow each other: the second has other counts.
struct Sets {
    rules: [String; 2],
    quirks: QuirksOption,
}

impl Sets {
    fn new(rules: &str, quirks: QuirksOption) -> Self {
        let raised = rules.replace("count = ", "count = 1");
        Self {
            rules: [rules.to_owned(), raised],
            quirks,
        }
    }

    fn limits(&self, which: usize) -> RuleIndex {
        let source = Source::new("every_kind.toml", self.rules[which % 2].as_str());
        let rules = read("every_kind.toml".as_ref(), &source).rules;
        let set = RuleSet::build(rules, self.quirks).expect("the rules are valid");
        RuleIndex::of(set.into())
    }
}

/// Pages are never given back, so they are made once.
struct World {
    clock: Scripted,
    gate: Gate,
    tick: RefCell<TickWriter>,
    directory: Box<ResourceDirectory>,
    sets: Sets,
    published: Cell<u64>,
    board: Board,
    ledger: Ledger,
    geometry: Geometry,
    page: Page,
    first_word: usize,
    slots: Vec<Slot>,
    shop: RequestName,
    web: RequestName,
    foreign: Page,
}

impl World {
    fn new(sets: Sets) -> Self {
        let geometry = Geometry::new(256, 4, 3, 2).expect("sizes are allowed");
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
        writers.tick.publish_samples(Some(1.0), Some(0.5));
        let directory = ResourceDirectory::new(writers.rules, ledger).expect("room for two names");
        let world = Self {
            clock: Scripted(Cell::new(1 << 40)),
            gate: Gate::new(board, ledger, 1, generation),
            tick: RefCell::new(writers.tick),
            directory,
            sets,
            published: Cell::new(0),
            board,
            ledger,
            geometry,
            page,
            first_word: geometry.ledger().scopes.start(),
            slots: Vec::new(),
            shop: RequestName::default(),
            web: RequestName::default(),
            foreign: Page::private(geometry.board().words.max(geometry.ledger().words)),
        };
        world.reload();
        let name = |resource, part, name: &str| RequestName {
            hash: name_hash(name.as_bytes()),
            node: world.directory.resolve_part(resource, part, name, 0),
        };
        let shop = name("by-origin", Part::Origin, "shop");
        let web = name("chained", Part::Context, "web");
        // One that a pattern matches, and one that no rule is for.
        let more = ["pattern-a", "anything"].map(|name| world.directory.resolve(name).slot);
        let listed = world.directory.list().into_iter();
        let slots = listed.map(|(_name, slot)| slot).chain(more).collect();
        Self {
            slots,
            shop,
            web,
            ..world
        }
    }

    /// Publishes the other set: state in the ledger is kept, brought over or zeroed.
    fn reload(&self) {
        let number = self.published.get() + 1;
        self.published.set(number);
        let limits = self.sets.limits(usize::try_from(number).unwrap_or(0));
        let published = self.directory.publish(limits, number << 30);
        let unplaced = published.expect("they fit").unplaced;
        assert!(unplaced.is_empty(), "no room for {unplaced:?}");
    }

    /// Every way through the gate over the same words, whatever the input is.
    fn turn(&self, turn: u8, words: &[u64]) {
        fill(self.page, self.first_word, words);
        if turn & 0x1c == 0x1c {
            self.reload();
        }
        self.publish(turn);
        self.clock.advance(u64::from(turn) << 22);
        for (number, &slot) in (turn..=u8::MAX).cycle().zip(&self.slots) {
            self.clock.advance(u64::from(number) << 12);
            self.ask(slot, number);
        }
        self.ledger.clear_seat(1, self.board.resources_used());
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
            observe: false,
            entry: 40,
            tight: 10,
        };
        let report = PublishedScope { word, ..OPEN_SCOPE };
        let mut tick = self.tick.borrow_mut();
        tick.publish_scope(0, if turn < 64 { &OPEN_SCOPE } else { &report });
        tick.publish_cutoff(0, u32::from(turn));
    }

    fn ask(&self, slot: Slot, number: u8) {
        let bit = |place: u32| number >> place & 1 == 1;
        let lane = Lane::numbered(u32::from(number) & 3);
        let vip = text_hash(ArgumentKind::Text, "vip");
        let lists = [Arg::Many(&[1, u64::MAX, 3]), Arg::One(vip)];
        let ones = [Arg::One(vip), Arg::None];
        let named = |name: RequestName| if bit(3) { name } else { RequestName::default() };
        let request = Request {
            count: if bit(4) { u32::MAX >> (number >> 3) } else { 1 },
            args: if bit(2) { &lists } else { &ones },
            prioritized: lane == Lane::SHARED,
            direction: if bit(5) {
                Direction::Out
            } else {
                Direction::In
            },
            class: if bit(6) {
                Class::Probe
            } else {
                Class::Sheddable
            },
            origin: named(self.shop),
            context: named(self.web),
            ..Request::default()
        };
        let mut step = self.gate.enter(&self.clock, lane, slot, request);
        // One wait for each value and each rule is the most.
        for _wait in 0..64 {
            let Step::Wait(waiting) = step else { break };
            let wait_ns = waiting.until_ns().saturating_sub(self.clock.now_ns());
            assert!(wait_ns <= WAIT_MAX_NS, "a wait of {wait_ns} ns");
            if bit(7) {
                let _verdict = self.gate.abandon(&self.clock, lane, &waiting);
                return;
            }
            self.clock.advance(wait_ns);
            step = self.gate.resume(&self.clock, lane, &waiting);
        }
        match step {
            Step::Done(GateVerdict::Admitted(pass)) => {
                let outcome = if bit(5) { Outcome::Ok } else { Outcome::Error };
                self.gate.exit(&self.clock, lane, pass, outcome);
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

fn worlds() -> [World; 3] {
    let all = format!("{EVERY_KIND}{FOR_ALL}");
    [
        World::new(Sets::new(EVERY_KIND, QuirksOption::None)),
        World::new(Sets::new(&all, QuirksOption::None)),
        World::new(Sets::new(&all, QuirksOption::Sentinel189)),
    ]
}

thread_local! {
    static WORLDS: OnceCell<[World; 3]> = const { OnceCell::new() };
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
    WORLDS.with(|worlds_of| {
        let worlds = worlds_of.get_or_init(worlds);
        for turn in turns {
            let world = &worlds[usize::from(*turn) % worlds.len()];
            world.turn(*turn, &words);
        }
        // What a service takes for a board must say that it is one.
        let [world, ..] = worlds;
        fill(world.foreign, 0, &words);
        let _board = Board::open(world.foreign);
        let _ledger = Ledger::open(world.foreign, world.geometry);
    });
});
