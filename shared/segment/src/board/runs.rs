//! Which runs of places are free.

use super::PoolSpan;

/// Places of which runs are free.
#[derive(Debug, Clone)]
pub struct Runs {
    free: Vec<PoolSpan>,
}

impl Runs {
    /// All of so many places.
    pub fn of(places: usize) -> Self {
        let length = u32::try_from(places).unwrap_or(u32::MAX);
        Self {
            free: vec![PoolSpan { start: 0, length }],
        }
    }

    /// A run of that length, from the smallest free one that is long enough.
    pub fn take(&mut self, length: u32) -> Option<PoolSpan> {
        if length == 0 {
            return Some(PoolSpan::default());
        }
        let fitting = self.free.iter_mut().filter(|run| run.length >= length);
        let run = fitting.min_by_key(|run| run.length)?;
        let taken = PoolSpan {
            start: run.start,
            length,
        };
        run.start = run.start.saturating_add(length);
        run.length = run.length.saturating_sub(length);
        self.free.retain(|run| run.length > 0);
        Some(taken)
    }

    /// Takes just that run; `false` if a place of it is not free.
    pub fn take_at(&mut self, run: PoolSpan) -> bool {
        if run.length == 0 {
            return true;
        }
        let Some(end) = run.start.checked_add(run.length) else {
            return false;
        };
        let holds = |free: &PoolSpan| {
            free.start <= run.start && end <= free.start.saturating_add(free.length)
        };
        let Some(place) = self.free.iter().position(holds) else {
            return false;
        };
        let free = self.free.remove(place);
        let before = PoolSpan {
            start: free.start,
            length: run.start.saturating_sub(free.start),
        };
        let after = PoolSpan {
            start: end,
            length: free.start.saturating_add(free.length).saturating_sub(end),
        };
        self.give_back(before);
        self.give_back(after);
        true
    }

    /// The runs that are free, in their order.
    pub fn free(&self) -> &[PoolSpan] {
        &self.free
    }

    /// How many places are free.
    pub fn left(&self) -> u32 {
        let runs = self.free.iter().map(|run| run.length);
        runs.fold(0, u32::saturating_add)
    }

    /// Gives a run back, joined with its neighbours.
    pub fn give_back(&mut self, run: PoolSpan) {
        if run.length == 0 {
            return;
        }
        let place = self.free.partition_point(|free| free.start < run.start);
        self.free.insert(place, run);
        self.free.dedup_by(|next, run| {
            let joined = run.start.saturating_add(run.length) == next.start;
            if joined {
                run.length = run.length.saturating_add(next.length);
            }
            joined
        });
    }
}
