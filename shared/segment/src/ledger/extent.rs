//! Which words of a ledger belong to nobody: their memory can be given back.
//!
//! A ledger is a sparse file. What is written in it takes memory until it is given back, and whoever maps it can
//! write all of it.

use std::ops::Range;

use tidegate_abi::geometry::{Geometry, LedgerMap, Region};

use super::Ledger;
use crate::board::PoolSpan;

/// Bytes that the kernel gives at a time.
const UNIT: u64 = 4096;

/// What of a ledger is in use.
#[derive(Debug, Clone, Copy)]
pub struct InUse<'u> {
    /// Slots ever given.
    pub slots: u32,
    /// Whether each seat has rows that count, in the order of the seats.
    pub seats: &'u [bool],
    /// Lines of state that nobody has, in their order.
    pub free_lines: &'u [PoolSpan],
    /// Sets of values that nobody has, in their order.
    pub free_sets: &'u [PoolSpan],
}

impl Ledger {
    /// The words of nodes that no slot has.
    pub fn unused_nodes(&self, slots: u32) -> [Range<usize>; 2] {
        let map = self.geometry().ledger();
        [map.nodes, map.times].map(|region| words(region, wide(slots), region.count()))
    }

    /// The words of lines and sets that no rule has.
    pub fn unused_by_rules<'s>(
        &self,
        lines: &'s [PoolSpan],
        sets: &'s [PoolSpan],
    ) -> impl Iterator<Item = Range<usize>> + use<'s> {
        let map = self.geometry().ledger();
        let of = |region: Region, runs: &'s [PoolSpan]| {
            runs.iter().map(move |run| {
                let end = run.start.saturating_add(run.length);
                words(region, wide(run.start), wide(end))
            })
        };
        of(map.states, lines).chain(of(map.values, sets))
    }

    /// The words of rows that no seat has, and of cells behind the slots in the others. Neighbours are one run.
    pub fn unused_rows(&self, seats: &[bool], slots: u32) -> Vec<Range<usize>> {
        let geometry = self.geometry();
        let map = geometry.ledger();
        let lanes = wide(geometry.lanes());
        let mut runs: Vec<Range<usize>> = Vec::new();
        for (seat, used) in seats.iter().enumerate() {
            let first = seat.saturating_mul(lanes);
            let end = first.saturating_add(lanes);
            if *used {
                (first..end).for_each(|row| join(&mut runs, behind(&map, geometry, row, slots)));
            } else {
                let cells = |row: usize| row.saturating_mul(wide(geometry.resources()));
                join(&mut runs, words(map.cells, cells(first), cells(end)));
            }
        }
        let free = seats.iter().enumerate().filter(|(_seat, used)| !**used);
        for (seat, _used) in free {
            let first = seat.saturating_mul(lanes);
            let end = first.saturating_add(lanes);
            join(&mut runs, words(map.totals, first, end));
        }
        runs
    }
}

/// Most bytes that what is in use can take.
pub fn explained_bytes(geometry: Geometry, in_use: InUse<'_>) -> u64 {
    let map = geometry.ledger();
    let bytes = |region: Region, records: usize| {
        let words = region.stride().saturating_mul(records);
        // Both ends may lie in the middle of a unit.
        rounded(words).saturating_add(UNIT)
    };
    let used = |all: usize, free: &[PoolSpan]| {
        let free = free.iter().map(|run| wide(run.length));
        all.saturating_sub(free.fold(0, usize::saturating_add))
    };
    let spans = in_use
        .free_lines
        .len()
        .saturating_add(in_use.free_sets.len());
    let seats = in_use.seats.iter().filter(|used| **used).count();
    let rows = seats.saturating_mul(wide(geometry.lanes()));
    let of_row = bytes(map.cells, wide(in_use.slots));
    let rows_bytes = u64::try_from(rows)
        .unwrap_or(u64::MAX)
        .saturating_mul(of_row);
    [
        rounded(map.nodes.start()),
        bytes(map.nodes, wide(in_use.slots)),
        bytes(map.times, wide(in_use.slots)),
        bytes(map.states, used(map.states.count(), in_use.free_lines)),
        bytes(map.values, used(map.values.count(), in_use.free_sets)),
        // A unit on each side of each free run.
        u64::try_from(spans)
            .unwrap_or(u64::MAX)
            .saturating_mul(UNIT.saturating_mul(2)),
        // The totals of all seats: reading those of one that is free takes memory too.
        bytes(map.totals, map.totals.count()),
        rows_bytes,
    ]
    .into_iter()
    .fold(0, u64::saturating_add)
}

fn rounded(words: usize) -> u64 {
    let bytes = u64::try_from(words).unwrap_or(u64::MAX).saturating_mul(8);
    bytes.div_ceil(UNIT).saturating_mul(UNIT)
}

/// The cells of a row behind the slots.
fn behind(map: &LedgerMap, geometry: Geometry, row: usize, slots: u32) -> Range<usize> {
    let first = row.saturating_mul(wide(geometry.resources()));
    let end = first.saturating_add(wide(geometry.resources()));
    words(map.cells, first.saturating_add(wide(slots)).min(end), end)
}

/// The words of some records of a region.
fn words(region: Region, first: usize, end: usize) -> Range<usize> {
    let word = |record: usize| {
        let record = record.min(region.count());
        region
            .start()
            .saturating_add(record.saturating_mul(region.stride()))
    };
    word(first)..word(end)
}

fn join(runs: &mut Vec<Range<usize>>, next: Range<usize>) {
    match runs.last_mut() {
        _ if next.is_empty() => {}
        Some(last) if last.end == next.start => last.end = next.end,
        _ => runs.push(next),
    }
}

fn wide(narrow: u32) -> usize {
    usize::try_from(narrow).unwrap_or(usize::MAX)
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::page::Page;

    fn ledger() -> Ledger {
        let geometry = Geometry::new(4, 3, 2, 1).unwrap();
        Ledger::create(Page::private(geometry.ledger().words), geometry).unwrap()
    }

    #[test]
    fn rows_of_free_seats_and_cells_behind_the_slots_are_unused() {
        let ledger = ledger();
        let cells = ledger.geometry().ledger().cells;
        let cell = |index: usize| cells.start() + index * cells.stride();
        let runs = ledger.unused_rows(&[true, false, true], 3);
        // Rows of 4 cells, 2 lanes: seat 0 has cells 0 to 7, seat 1 8 to 15, seat 2 16 to 23.
        let totals = ledger.geometry().ledger().totals;
        let row = |index: usize| totals.start() + index * totals.stride();
        let expected = [
            cell(3)..cell(4),
            cell(7)..cell(16),
            cell(19)..cell(20),
            cell(23)..cell(24),
            row(2)..row(4),
        ];
        assert_eq!(runs, expected);
        assert_eq!(ledger.unused_nodes(4), ledger.unused_nodes(9));
        assert!(ledger.unused_nodes(4).iter().all(Range::is_empty));
    }

    #[test]
    fn what_is_unused_and_what_is_explained_cover_the_file() {
        let ledger = ledger();
        let geometry = ledger.geometry();
        let lines = [PoolSpan {
            start: 2,
            length: 6,
        }];
        let sets = [PoolSpan {
            start: 0,
            length: 16,
        }];
        let in_use = InUse {
            slots: 1,
            seats: &[true, false, false],
            free_lines: &lines,
            free_sets: &sets,
        };
        let unused: usize = ledger
            .unused_by_rules(&lines, &sets)
            .chain(ledger.unused_rows(in_use.seats, in_use.slots))
            .chain(ledger.unused_nodes(in_use.slots))
            .map(|run| run.len())
            .sum();
        let explained = explained_bytes(geometry, in_use);
        let all = u64::try_from(geometry.ledger().words * 8).unwrap();
        assert!(explained + u64::try_from(unused * 8).unwrap() >= all);
    }
}
