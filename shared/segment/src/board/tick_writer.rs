//! The role that writes once a tick: heartbeat, clock and scopes.

use tidegate_abi::board::{
    CalmWord, ClockWord, ScopeWord, SeatWord, ShareWord, SurgeWord, header, scope, seat,
};
use tidegate_abi::decision::Cause;

use super::Board;
use super::fairness::share_word;
use crate::clock::Calibration;
use crate::sync::{Ordering, put};

/// Which clock every reader of the board uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockSource {
    /// The time stamp counter, with this calibration.
    Counter(Calibration),
    /// `CLOCK_MONOTONIC`.
    Monotonic,
}

/// What is published of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishedScope {
    /// State and limits.
    pub word: ScopeWord,
    /// Allowed QPS × 1000; `u64::MAX` = no limit.
    pub allowed_qps_milli: u64,
    /// Why it is in this state.
    pub cause: Cause,
    /// Monotonic ns of the last change of state.
    pub since_ns: u64,
    /// In flight in this tick.
    pub inflight: u64,
}

/// Writes heartbeat, clock and scopes. There is one of it for each board.
#[derive(Debug)]
pub struct TickWriter {
    board: Board,
}

impl TickWriter {
    pub(super) const fn new(board: Board) -> Self {
        Self { board }
    }

    /// The board that is written.
    pub const fn board(&self) -> Board {
        self.board
    }

    /// Says that the agent was alive at `now_ns`, and which seats are calm, and ends a tick.
    pub fn beat(&mut self, now_ns: u64) {
        let header = self.board.header();
        // Relaxed: readers take each word for its own value.
        let tick = header[header::TICK].load(Ordering::Relaxed);
        header[header::TICK].store(tick.wrapping_add(1), Ordering::Relaxed);
        header[header::HEARTBEAT_NS].store(now_ns, Ordering::Relaxed);
        let time_to_live_ns = header[header::TIME_TO_LIVE_NS].load(Ordering::Relaxed);
        let calm_ns = time_to_live_ns.min(CalmWord::LONGEST_NS);
        self.publish_calm(now_ns.saturating_add(calm_ns));
    }

    /// Says until when the decisions of each seat need not look at its scopes.
    fn publish_calm(&mut self, until_ns: u64) {
        let is_calm = |scope: u32| admits_unseen(self.board.scope_word(scope));
        let host_is_calm = is_calm(0);
        for (index, line) in (0..self.board.seats_used()).zip(self.board.seat_lines()) {
            let SeatWord { live, generation } = self.board.seat(index);
            let scope = self.board.seat_scope(index);
            let calm = live && host_is_calm && (scope == 0 || is_calm(scope));
            let word = CalmWord {
                generation,
                until_ns,
            };
            // Relaxed: one word says it all. It names the generation, so it says nothing to the next who sits here.
            line[seat::CALM].store(if calm { word.pack() } else { 0 }, Ordering::Relaxed);
        }
    }

    /// Has the seats of a scope look at it from now on.
    fn end_calm(&mut self, scope: u32) {
        for (index, line) in (0..self.board.seats_used()).zip(self.board.seat_lines()) {
            let word = &line[seat::CALM];
            let concerned = scope == 0 || self.board.seat_scope(index) == scope;
            // A store that changes nothing would take the line from its readers.
            if concerned && word.load(Ordering::Relaxed) != 0 {
                word.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Publishes what the system rules look at: load average and CPU share of the host; `None` = not
    /// measured.
    pub fn publish_samples(&mut self, load: Option<f64>, cpu: Option<f64>) {
        let header = self.board.header();
        put(header, header::LOAD, load.unwrap_or(f64::NAN).to_bits());
        put(header, header::CPU, cpu.unwrap_or(f64::NAN).to_bits());
    }

    /// Publishes a clock source: the rate first, if it is a new one, then the word that names it. A board keeps
    /// seven rates; the source of an eighth is the kernel's clock.
    pub fn publish_clock(&mut self, source: ClockSource) {
        let word = match source {
            ClockSource::Counter(Calibration { base_ns, mult }) => ClockWord {
                base_ns,
                place: self.place_of(mult),
            },
            ClockSource::Monotonic => ClockWord {
                base_ns: 0,
                place: 0,
            },
        };
        // Release: pairs with the Acquire in `Board::time_or`; the rate that it names is there.
        self.board.header()[header::CLOCK].store(word.pack(), Ordering::Release);
    }

    /// The place of a rate, which a new one takes; 0 if there is none left, or no rate.
    fn place_of(&mut self, rate: u64) -> u8 {
        if rate == 0 {
            return 0;
        }
        let rates = self.board.header().iter().skip(header::RATES);
        let mut places = (1..).zip(rates.take(ClockWord::RATES));
        // Relaxed: this role alone writes them.
        let found = places.find_map(|(place, word)| match word.load(Ordering::Relaxed) {
            0 => {
                word.store(rate, Ordering::Relaxed);
                Some(place)
            }
            held => (held == rate).then_some(place),
        });
        found.unwrap_or(0)
    }

    /// Publishes how many connections wait in the accept queues of a scope's listeners.
    pub fn publish_accept_queue(&mut self, index: u32, waiting: u32) {
        let lines = self.board.scope_lines();
        let place = usize::try_from(index).ok();
        if let Some(line) = place.and_then(|place| lines.get(place)) {
            // Relaxed: a count that stands for itself.
            line[scope::ACCEPT_QUEUE].store(u64::from(waiting), Ordering::Relaxed);
        }
    }

    /// Moves the seats of a scope that ends to the host: what they hold goes on counting there.
    pub fn leave_scope(&mut self, scope: u32) {
        for (index, line) in (0..self.board.seats_used()).zip(self.board.seat_lines()) {
            if self.board.seat_scope(index) == scope {
                // Relaxed: one word, and whoever seats or moves a process writes it whole as well.
                line[seat::SCOPE].store(0, Ordering::Relaxed);
                line[seat::SHARE_OF_SCOPE].store(0, Ordering::Relaxed);
            }
        }
    }

    /// Publishes what decisions measure a surge of a scope from, and how many requests of other tenants
    /// are in flight in it.
    pub fn publish_held(&mut self, index: u32, surge: SurgeWord, others: u32) {
        let lines = self.board.scope_lines();
        let place = usize::try_from(index).ok();
        if let Some(line) = place.and_then(|place| lines.get(place)) {
            // Relaxed: each word stands for itself.
            line[scope::SURGE].store(surge.pack(), Ordering::Relaxed);
            line[scope::OTHERS].store(u64::from(others), Ordering::Relaxed);
        }
    }

    /// Publishes from which level on the requests of a scope are cut.
    pub fn publish_cutoff(&mut self, index: u32, level: u32) {
        let lines = self.board.scope_lines();
        let line = usize::try_from(index).ok();
        if let Some(line) = line.and_then(|index| lines.get(index)) {
            line[scope::CUTOFF].store(u64::from(level), Ordering::Relaxed);
        }
    }

    /// Publishes what the service in a seat may hold of the limit of the host, or of its own scope;
    /// `None` is all.
    pub fn publish_share(&mut self, seat_index: u32, of_host: bool, share: Option<ShareWord>) {
        let lines = self.board.seat_lines();
        let Some(line) = usize::try_from(seat_index)
            .ok()
            .and_then(|index| lines.get(index))
        else {
            return;
        };
        let place = share_word(line, of_host);
        let word = share.map_or(0, ShareWord::pack);
        // Relaxed: one word says it all. A store that changes nothing would take the line from its
        // readers.
        if place.load(Ordering::Relaxed) != word {
            place.store(word, Ordering::Relaxed);
        }
    }

    /// Publishes a scope. Returns false if there is no such place.
    pub fn publish_scope(&mut self, index: u32, report: &PublishedScope) -> bool {
        let lines = self.board.scope_lines();
        let Some(line) = usize::try_from(index)
            .ok()
            .and_then(|index| lines.get(index))
        else {
            return false;
        };
        // Relaxed throughout: the decision word says all that a decision takes, the rest is for
        // people.
        line[scope::ALLOWED_QPS_MILLI].store(report.allowed_qps_milli, Ordering::Relaxed);
        line[scope::CAUSE].store(u64::from(report.cause as u8), Ordering::Relaxed);
        line[scope::SINCE_NS].store(report.since_ns, Ordering::Relaxed);
        line[scope::INFLIGHT].store(report.inflight, Ordering::Relaxed);
        line[scope::DECISION].store(report.word.pack(), Ordering::Relaxed);
        if !admits_unseen(report.word.pack()) {
            self.end_calm(index);
        }
        let used = &self.board.header()[header::SCOPES_USED];
        let count = u64::from(index).saturating_add(1);
        if used.load(Ordering::Relaxed) < count {
            // Release: pairs with readers that count scopes.
            used.store(count, Ordering::Release);
        }
        true
    }
}

/// Whether a scope admits without a sum of what it holds, but for one now and then.
const fn admits_unseen(word: u64) -> bool {
    ScopeWord::is_calm(word) || ScopeWord::is_open(word)
}
