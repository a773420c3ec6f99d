//! The seats of the life before whose processes live: theirs until they have come for them.
//!
//! A process goes on deciding on the board of the life before until it has the new one. It counts the seats that were
//! live there, so each of these goes on under its number and generation, and what is in flight there counts from the
//! first moment on. It does not count seats that are given now. So whoever is new waits for those who still have to come.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_segment::board::Process;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::seat_life::SeatGuard;
use super::seats::Seat;

/// How long a seat is kept for a process that lives and does not come, as one that is stopped. What it holds counts so
/// long.
pub const KEPT_FOR: Duration = Duration::from_mins(10);
/// How long those who are new wait for it, in all.
pub const WAITED_FOR: Duration = Duration::from_secs(10);
/// How long after the last one has come the new ones are let in: it finds the slots of its names before it puts the new
/// board in force, and a decision may be under way.
const SETTLES: Duration = Duration::from_millis(250);

/// The seats that are kept.
#[derive(Debug)]
pub struct ReservedSeats {
    seats: Mutex<HashMap<u32, ReservedSeat>>,
    /// Those that who is new waits for.
    left: watch::Sender<SeatsLeft>,
    waits_no_longer: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
struct SeatsLeft {
    seats: usize,
    /// When the last one came; `None` where none was ever kept.
    since: Option<Instant>,
}

#[derive(Debug)]
struct ReservedSeat {
    generation: u32,
    process: Process,
    end: oneshot::Sender<()>,
}

impl Default for ReservedSeats {
    fn default() -> Self {
        let none = SeatsLeft {
            seats: 0,
            since: None,
        };
        Self {
            seats: Mutex::default(),
            left: watch::Sender::new(none),
            waits_no_longer: AtomicBool::new(false),
        }
    }
}

impl ReservedSeats {
    /// Keeps a seat; it ends when what is returned hears so.
    pub(super) fn keep(&self, seat: Seat, process: Process) -> oneshot::Receiver<()> {
        let (end, ended) = oneshot::channel();
        let kept = ReservedSeat {
            generation: seat.generation,
            process,
            end,
        };
        let mut seats = self.seats.lock();
        seats.insert(seat.index, kept);
        self.tell(seats.len());
        ended
    }

    /// The seat of a process that has come for it.
    pub fn claim(&self, seat: Seat, process: &Process) -> Option<SeatGuard> {
        let mut seats = self.seats.lock();
        let is_its = |kept: &ReservedSeat| {
            kept.generation == seat.generation
                && (kept.process.pid, kept.process.start) == (process.pid, process.start)
        };
        if !seats.get(&seat.index).is_some_and(is_its) {
            return None;
        }
        let kept = seats.remove(&seat.index)?;
        self.tell(seats.len());
        Some(SeatGuard::new(seat, kept.end))
    }

    /// Keeps one seat of a process less: it has come without its pages, so nothing that it holds there ever ends.
    pub fn give_up_one_of(&self, process: &Process) {
        let mut seats = self.seats.lock();
        let is_its = |kept: &ReservedSeat| {
            (kept.process.pid, kept.process.start) == (process.pid, process.start)
        };
        let own = seats.iter().filter(|(_index, kept)| is_its(kept));
        if let Some(index) = own.map(|(index, _kept)| *index).min() {
            seats.remove(&index);
            self.tell(seats.len());
        }
    }

    /// Keeps a seat no longer: its process is gone.
    pub(super) fn forget(&self, seat: Seat) {
        let mut seats = self.seats.lock();
        let is_kept = seats
            .get(&seat.index)
            .is_some_and(|kept| kept.generation == seat.generation);
        if is_kept {
            seats.remove(&seat.index);
            self.tell(seats.len());
        }
    }

    /// Who is new waits for them no longer. Returns how many are kept.
    pub fn wait_no_longer(&self) -> usize {
        let seats = self.seats.lock();
        self.waits_no_longer.store(true, Ordering::Relaxed);
        self.tell(0);
        seats.len()
    }

    /// Keeps none any longer: each that nobody came for ends. Returns how many.
    pub fn give_up(&self) -> usize {
        let mut seats = self.seats.lock();
        let given_up = std::mem::take(&mut *seats);
        self.tell(0);
        drop(seats);
        given_up.len()
    }

    /// How many are kept.
    pub fn count(&self) -> usize {
        self.seats.lock().len()
    }

    /// Whether all have come and gone on.
    pub fn is_settled(&self) -> bool {
        let left = *self.left.borrow();
        left.seats == 0 && left.since.is_none_or(|since| since.elapsed() >= SETTLES)
    }

    /// Waits until all have come and gone on; `false` if that takes longer than `limit`.
    pub async fn settled(&self, limit: Duration) -> bool {
        let mut left = self.left.subscribe();
        let settled = async {
            let Ok(SeatsLeft { since, .. }) = left
                .wait_for(|left| left.seats == 0)
                .await
                .map(|left| *left)
            else {
                return;
            };
            if let Some(since) = since {
                tokio::time::sleep_until(since + SETTLES).await;
            }
        };
        tokio::time::timeout(limit, settled).await.is_ok()
    }

    fn tell(&self, seats: usize) {
        // Under the lock of the seats.
        let waits = !self.waits_no_longer.load(Ordering::Relaxed);
        self.left.send_replace(SeatsLeft {
            seats: if waits { seats } else { 0 },
            since: Some(Instant::now()),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROCESS: Process = Process {
        pid: 7,
        start: 1,
        uid: 0,
        scope: 0,
    };
    const SEAT: Seat = Seat {
        index: 3,
        generation: 5,
    };

    #[tokio::test(start_paused = true)]
    async fn a_seat_is_its_process_s_alone_and_others_wait_for_it() {
        let kept = ReservedSeats::default();
        let limit = Duration::from_secs(1);
        assert!(kept.settled(Duration::ZERO).await, "nothing was ever kept");
        let mut ended = kept.keep(SEAT, PROCESS);
        let later = Process {
            start: 2,
            ..PROCESS
        };
        let other = Seat {
            generation: 6,
            ..SEAT
        };
        assert!(kept.claim(SEAT, &later).is_none());
        assert!(kept.claim(other, &PROCESS).is_none());
        assert!(!kept.settled(limit).await);
        let seated = kept.claim(SEAT, &PROCESS).unwrap();
        assert_eq!(seated.seat, SEAT);
        assert!(kept.claim(SEAT, &PROCESS).is_none(), "once");
        assert!(kept.settled(limit).await);
        assert!(
            ended
                .try_recv()
                .is_err_and(|still| still == oneshot::error::TryRecvError::Empty)
        );
        drop(seated);
        assert!(ended.await.is_err(), "the connection has ended");
    }

    #[tokio::test(start_paused = true)]
    async fn a_seat_that_nobody_waits_for_any_longer_is_kept_all_the_same() {
        let kept = ReservedSeats::default();
        let mut ended = kept.keep(SEAT, PROCESS);
        let limit = Duration::from_secs(1);
        assert!(!kept.settled(limit).await);
        assert_eq!(kept.wait_no_longer(), 1);
        assert!(kept.settled(limit).await);
        assert_eq!(kept.count(), 1);
        assert!(
            ended
                .try_recv()
                .is_err_and(|still| still == oneshot::error::TryRecvError::Empty)
        );
        let seated = kept.claim(SEAT, &PROCESS).unwrap();
        assert!(kept.settled(limit).await);
        drop(seated);
    }

    #[tokio::test(start_paused = true)]
    async fn a_seat_that_nobody_comes_for_ends() {
        let kept = ReservedSeats::default();
        let ended = kept.keep(SEAT, PROCESS);
        assert_eq!(kept.give_up(), 1);
        assert!(ended.await.is_err());
        assert!(kept.settled(Duration::from_secs(1)).await);
    }
}
