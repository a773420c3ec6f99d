//! Lines of those who ask for reports: so many come in within half a second, in their order, however often they ask.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

/// The time in which [`ANSWERS`] come in.
pub(super) const WITHIN: Duration = Duration::from_millis(500);

/// Most answers in that time. With all connections asking without a pause, each is answered every second or two.
pub(super) const ANSWERS: u32 = 32;

/// A line. Whoever has the lock around it is first.
#[derive(Debug)]
pub(super) struct Line {
    since: Instant,
    answers: u32,
}

impl Line {
    pub(super) fn new() -> Self {
        Self {
            since: Instant::now(),
            answers: 0,
        }
    }

    /// Waits for a turn. Others who wait come after, in their order.
    pub(super) async fn turn(&mut self) {
        let next = self.next();
        if self.answers >= ANSWERS {
            sleep_until(next).await;
        }
        let now = Instant::now();
        if now >= next {
            (self.since, self.answers) = (now, 0);
        }
        self.answers = self.answers.saturating_add(1);
    }

    /// When those who came in are forgotten.
    fn next(&self) -> Instant {
        self.since.checked_add(WITHIN).unwrap_or(self.since)
    }
}

/// A line for each user, so that none waits for another.
#[derive(Debug, Default)]
pub(super) struct Lines(parking_lot::Mutex<HashMap<u32, Arc<Mutex<Line>>>>);

impl Lines {
    /// Waits for a turn of this user.
    pub(super) async fn turn(&self, uid: u32) {
        let line = self.of(uid);
        line.lock().await.turn().await;
    }

    /// The line of a user. Those that nobody stands in and that hold nobody up are forgotten.
    fn of(&self, uid: u32) -> Arc<Mutex<Line>> {
        let mut lines = self.0.lock();
        let now = Instant::now();
        lines.retain(|_uid, line| {
            Arc::strong_count(line) > 1 || line.try_lock().is_ok_and(|line| line.next() > now)
        });
        let line = lines.entry(uid);
        Arc::clone(line.or_insert_with(|| Arc::new(Mutex::new(Line::new()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each of some loops comes in within ten seconds; the loops are of users in turn.
    async fn turns(loops: u32, users: u32) -> Vec<u32> {
        let lines = Arc::new(Lines::default());
        let begun = Instant::now();
        let loops = (0..loops).map(|number| {
            let lines = Arc::clone(&lines);
            tokio::spawn(async move {
                let mut turns = 0_u32;
                while begun.elapsed() < Duration::from_secs(10) {
                    lines.turn(number % users).await;
                    turns += 1;
                }
                turns
            })
        });
        let mut all = Vec::new();
        for turns in loops.collect::<Vec<_>>() {
            all.push(turns.await.unwrap());
        }
        all
    }

    #[tokio::test(start_paused = true)]
    async fn field_b5_a_line_of_loops_moves_so_many_places_in_half_a_second_and_everybody_comes_in()
    {
        let turns = turns(64, 1).await;
        assert!(turns.iter().all(|turns| *turns >= 9), "{turns:?} in 10 s");
        let all: u32 = turns.iter().sum();
        assert!(all <= ANSWERS * 21 + 64, "{all} answers in 10 s");
    }

    #[tokio::test(start_paused = true)]
    async fn field_b3_a_loop_of_one_user_holds_no_other_up() {
        let turns = turns(2, 2).await;
        assert!(
            turns.iter().all(|turns| *turns >= ANSWERS * 19),
            "{turns:?} in 10 s"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn lines_that_hold_nobody_up_are_forgotten() {
        let lines = Lines::default();
        for uid in 0..100 {
            lines.turn(uid).await;
        }
        tokio::time::advance(WITHIN).await;
        lines.turn(7).await;
        assert_eq!(lines.0.lock().len(), 1);
    }
}
