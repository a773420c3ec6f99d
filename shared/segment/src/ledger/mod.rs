//! The ledger: what the agent and the services of one tenant write.
//!
//! Whatever is read here may have been written by a hostile process of the same tenant. It can make
//! a decision of that tenant wrong, and nothing else: indices come from the board and are checked,
//! counts are masked, loops are bounded by the board's sizes.

mod cell;
pub mod extent;
mod item;
mod node;
mod state;
mod sums;
mod taken_up;
mod times;
mod values;

pub use cell::{Cell, CounterRow, InFlightWord, SeatRows, Totals};
pub use item::ItemState;
pub use node::{BUCKET, Node, WindowAdmission};
pub use state::{BreakerChanges, LastRefused, RuleState};
pub use sums::{NodeCounts, ScopeCounts, ScopesHeld};
pub use times::NodeTimes;
pub use values::{StepResult, ValueKey};

use tidegate_abi::decision::Class;
use tidegate_abi::geometry::Geometry;
use tidegate_abi::ledger::{
    cell as cell_field, header, node as node_field, scope, seat, state as state_field,
    times as times_field, total, value,
};
use tidegate_limits::fairness::cutoff::ClassArrivals;

use crate::board::{HeaderFault, halves, stated_geometry};
use crate::page::Page;
use crate::sync::{Ordering, Word, peek, put};

/// A ledger. Copies are views of the same page.
#[derive(Clone, Copy)]
pub struct Ledger {
    geometry: Geometry,
    header: &'static [Word],
    scopes: &'static [[Word; scope::WORDS]],
    seats: &'static [[Word; seat::WORDS]],
    nodes: &'static [[Word; node_field::WORDS]],
    states: &'static [[Word; state_field::WORDS]],
    values: &'static [[Word; value::WORDS]],
    totals: &'static [[Word; total::WORDS]],
    cells: &'static [[Word; cell_field::WORDS]],
    times: &'static [[Word; times_field::WORDS]],
}

impl core::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Ledger")
            .field("geometry", &self.geometry)
            .finish_non_exhaustive()
    }
}

impl Ledger {
    /// Writes the header of a new ledger on a page of zeros; `None` if the page is too short.
    pub fn create(page: Page, geometry: Geometry) -> Option<Self> {
        let ledger = Self::over(page, geometry)?;
        ledger.write_header();
        Some(ledger)
    }

    /// Writes what the page is, once more: whoever has mapped it may have written something else there, and
    /// nobody who comes later would take it for a ledger.
    pub fn write_header(&self) {
        let geometry = self.geometry;
        // Relaxed: sending the page's descriptor orders these stores for those who look at them.
        let set = |field: usize, value: u64| put(self.header, field, value);
        set(header::MAGIC, tidegate_abi::ledger::MAGIC);
        set(header::VERSION, u64::from(tidegate_abi::VERSION));
        set(
            header::RESOURCES_SEATS,
            halves(geometry.resources(), geometry.seats()),
        );
        set(
            header::LANES_SCOPES,
            halves(geometry.lanes(), geometry.scopes()),
        );
    }

    /// Takes a mapped page as the ledger of a board with this geometry.
    ///
    /// # Errors
    /// Another magic, version or geometry, or a page that is too short for it.
    pub fn open(page: Page, geometry: Geometry) -> Result<Self, HeaderFault> {
        let stated = stated_geometry(page.words(), tidegate_abi::ledger::MAGIC)?;
        let needed = geometry.ledger().words;
        let short = HeaderFault::Short {
            found: page.words().len(),
            needed,
        };
        if stated != geometry {
            return Err(short);
        }
        Self::over(page, geometry).ok_or(short)
    }

    fn over(page: Page, geometry: Geometry) -> Option<Self> {
        let map = geometry.ledger();
        if page.words().len() < map.words {
            return None;
        }
        Some(Self {
            geometry,
            header: page
                .words()
                .get(..map.header.count().saturating_mul(map.header.stride()))?,
            scopes: page.records(map.scopes),
            seats: page.records(map.seats),
            nodes: page.records(map.nodes),
            states: page.records(map.states),
            values: page.records(map.values),
            totals: page.records(map.totals),
            cells: page.records(map.cells),
            times: page.records(map.times),
        })
    }

    /// Sizes of the page pair.
    pub const fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Names the board that goes with this ledger now.
    pub fn set_board_generation(&self, generation: u64) {
        if let Some(word) = self.header.get(header::BOARD_GENERATION) {
            // Release: pairs with the Acquire in `board_generation`.
            word.store(generation, Ordering::Release);
        }
    }

    /// The board that goes with this ledger now, as far as the ledger can be trusted.
    pub fn board_generation(&self) -> u64 {
        let word = self.header.get(header::BOARD_GENERATION);
        word.map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// The node of a resource.
    #[inline]
    pub fn node(&self, slot: u32) -> Option<Node> {
        let line = self.nodes.get(usize::try_from(slot).ok()?)?;
        Some(Node::over(line))
    }

    /// The one-shot window of a scope: passes of callers that hold no permit.
    pub fn one_shot(&self, scope_index: u32) -> Option<&'static Word> {
        let line = self.scopes.get(usize::try_from(scope_index).ok()?)?;
        Some(&line[scope::ONE_SHOT])
    }

    /// Counts a caller without a permit that a scope admitted.
    pub fn count_one_shot(&self, scope_index: u32) {
        self.count_of_scope(scope_index, scope::ONE_SHOT_PASSED);
    }

    /// Callers without a permit that a scope ever admitted.
    pub fn one_shots(&self, scope_index: u32) -> u64 {
        let line = usize::try_from(scope_index).ok();
        let line = line.and_then(|index| self.scopes.get(index));
        line.map_or(0, |line| peek(line, scope::ONE_SHOT_PASSED))
    }

    /// Counts an inbound request that a scope would have refused if it did not only observe.
    #[cold]
    pub fn count_observed(&self, scope_index: u32) {
        self.count_of_scope(scope_index, scope::OBSERVED);
    }

    /// Requests that a scope ever would have refused if it had not only observed.
    pub fn observed(&self, scope_index: u32) -> u64 {
        let line = usize::try_from(scope_index).ok();
        let line = line.and_then(|index| self.scopes.get(index));
        line.map_or(0, |line| peek(line, scope::OBSERVED))
    }

    /// Counts an inbound request that came to a scope in overload. `under` = it is under the cut-off.
    #[inline]
    pub fn count_offered(&self, scope_index: u32, class: Class, keyed: bool, under: Option<bool>) {
        let class = match class {
            Class::Critical | Class::Probe => scope::OFFERED_CRITICAL,
            Class::Normal => scope::OFFERED_NORMAL,
            Class::Sheddable => scope::OFFERED_SHEDDABLE,
        };
        self.count_of_scope(scope_index, class);
        if keyed {
            self.count_of_scope(scope_index, scope::OFFERED_KEYED);
        }
        // Refused, or admitted for `None`.
        if let Some(under) = under {
            self.count_of_scope(scope_index, scope::REFUSED);
            if under {
                self.count_of_scope(scope_index, scope::REFUSED_UNDER);
            }
        }
    }

    /// What ever came to a scope in overload, free-running.
    pub fn inlet(&self, scope_index: u32) -> ClassArrivals {
        let line = usize::try_from(scope_index).ok();
        let Some(line) = line.and_then(|index| self.scopes.get(index)) else {
            return ClassArrivals::default();
        };
        let word = |field: usize| peek(line, field);
        ClassArrivals {
            offered: [
                word(scope::OFFERED_CRITICAL),
                word(scope::OFFERED_NORMAL),
                word(scope::OFFERED_SHEDDABLE),
            ],
            keyed: word(scope::OFFERED_KEYED),
            refused: word(scope::REFUSED),
            refused_under: word(scope::REFUSED_UNDER),
        }
    }

    fn count_of_scope(&self, scope_index: u32, field: usize) {
        let line = usize::try_from(scope_index).ok();
        let line = line.and_then(|index| self.scopes.get(index));
        if let Some(word) = line.and_then(|line| line.get(field)) {
            word.count(1);
        }
    }

    /// Counts a decision made without the agent.
    pub fn count_without_agent(&self, seat_index: u32) {
        self.count(seat_index, seat::WITHOUT_AGENT);
    }

    /// Counts a decision that found the board changing under every try.
    pub fn count_contended(&self, seat_index: u32) {
        self.count(seat_index, seat::CONTENDED);
    }

    /// Decisions of a seat made without the agent, and those that found the board changing.
    pub fn seat_faults(&self, seat_index: u32) -> (u64, u64) {
        let line = usize::try_from(seat_index)
            .ok()
            .and_then(|index| self.seats.get(index));
        line.map_or((0, 0), |line| {
            let word = |field: usize| peek(line, field);
            (word(seat::WITHOUT_AGENT), word(seat::CONTENDED))
        })
    }

    fn count(&self, seat_index: u32, field: usize) {
        let line = usize::try_from(seat_index)
            .ok()
            .and_then(|index| self.seats.get(index));
        if let Some(word) = line.and_then(|line| line.get(field)) {
            word.count(1);
        }
    }

    /// Zeroes all rows of a seat that nobody sits in, so that another process may take it. `used` is
    /// the number of resource slots handed out.
    ///
    /// Counts that are to be kept must be read before, see [`Ledger::node_counts`].
    pub fn clear_seat(&self, seat_index: u32, used: u32) {
        for lane in 0..self.geometry.lanes() {
            let Some(row) = self.geometry.row(seat_index, lane) else {
                return;
            };
            let Some(totals) = self.totals.get(row) else {
                return;
            };
            if totals[total::INFLIGHT].load(Ordering::Relaxed) == 0 {
                continue; // A lane never used; reading its cells would only allocate them.
            }
            for slot in 0..used {
                let cell = self
                    .geometry
                    .cell(row, slot)
                    .and_then(|index| self.cells.get(index));
                cell.into_iter().flatten().for_each(zero);
            }
            totals.iter().for_each(zero);
        }
        let line = usize::try_from(seat_index)
            .ok()
            .and_then(|index| self.seats.get(index));
        line.into_iter().flatten().for_each(zero);
    }
}

impl Ledger {
    /// Zeroes what was counted on a node, which nobody counts on any more, in the rows of so many seats.
    pub fn clear_node(&self, slot: u32, seats: u32) {
        let Ok(place) = usize::try_from(slot) else {
            return;
        };
        self.nodes.get(place).into_iter().flatten().for_each(zero);
        self.clear_times(slot);
        for seat in 0..seats {
            for lane in 0..self.geometry.lanes() {
                let Some(row) = self.geometry.row(seat, lane) else {
                    return;
                };
                let used = self.totals.get(row).is_some_and(|totals| {
                    // A lane never used; reading its cells would only allocate them.
                    totals[total::INFLIGHT].load(Ordering::Relaxed) != 0
                });
                let cell = self.geometry.cell(row, slot).filter(|_index| used);
                let cell = cell.and_then(|index| self.cells.get(index));
                cell.into_iter().flatten().for_each(zero);
            }
        }
    }
}

fn zero(word: &Word) {
    // Relaxed: the Release that seats the next process orders it.
    word.store(0, Ordering::Relaxed);
}
