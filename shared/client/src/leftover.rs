//! Pages of sessions that were followed by one on other pages: what is in flight there goes back there.
//!
//! A new agent counts what a process has in flight on the pages of the one before, for as long as the process gives it
//! back there. So they stay mapped until nothing is left.

use std::time::{Duration, Instant};

use crate::pages::Pages;

/// How long pages stay in any case: longer than a decision that began there may take, the waits that rules ask for among
/// it.
const RESTS: Duration = Duration::from_secs(15);
/// How often they are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// Most that are kept, each for a start of the agent with new pages. What is in flight on older ones ends.
const MOST: usize = 4;

/// The pages that are left, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Leftover {
    pages: Vec<(Instant, Pages)>,
}

impl Leftover {
    /// Keeps the pages of a session that another one has followed.
    pub(crate) fn keep(&mut self, pages: Pages) {
        if !pages.are_live() {
            pages.retire();
            return;
        }
        if self.pages.len() >= MOST {
            let (_since, oldest) = self.pages.remove(0);
            oldest.end();
        }
        self.pages.push((Instant::now(), pages));
    }

    /// Lets go of those on which nothing is in flight.
    pub(crate) fn look(&mut self) {
        let is_over = |(since, pages): &mut (Instant, Pages)| {
            !pages.are_live() || (since.elapsed() >= RESTS && !pages.hold_any())
        };
        for (_since, pages) in self.pages.extract_if(.., is_over) {
            pages.end();
        }
    }

    /// How long the keeper may wait for an event; for ever where nothing is left.
    pub(crate) fn patience(&self) -> Option<Duration> {
        (!self.pages.is_empty()).then_some(LOOK)
    }

    /// Ends all that is in flight there.
    pub(crate) fn end(&mut self) {
        self.pages.drain(..).for_each(|(_since, pages)| pages.end());
    }
}
