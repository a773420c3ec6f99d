//! A process that enters and gives back at random, round by round, until it is killed.

use rustix::process::{Signal, set_parent_process_death_signal};
use tidegate_abi::decision::{Direction, Outcome, Reason};
use tidegate_segment::clock::Clock;
use tidegate_segment::gate::{Arg, Gate, Pass, Request, Step, Verdict};
use tidegate_segment::lane::Lane;
use tidegate_segment::sync::{Ordering, Word};

use crate::diary::{Count, Diary, Doing};
use crate::random::Random;
use crate::resource::{OF_VALUES, RESOURCES, VALUES, slot, value};

/// What the host moves: the round, and the time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stage {
    pub(crate) round: &'static Word,
    pub(crate) now_ns: &'static Word,
}

/// The round in which a process ends.
pub(crate) const END: u64 = u64::MAX;

impl Clock for Stage {
    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::SeqCst)
    }
}

/// A permit: its resource, its value, and the pass.
type Held = (usize, usize, Pass);

pub(crate) struct Worker {
    pub(crate) gate: Gate,
    pub(crate) stage: Stage,
    pub(crate) diary: Diary,
    pub(crate) random: Random,
}

impl Worker {
    /// Works until the end, or a kill.
    pub(crate) fn work(mut self, mut done: u64) -> u8 {
        if set_parent_process_death_signal(Some(Signal::KILL)).is_err() {
            return 1;
        }
        let mut held: Vec<Held> = Vec::new();
        loop {
            let round = self.stage.round.load(Ordering::SeqCst);
            if round == END {
                return 0;
            }
            if round == done {
                std::thread::yield_now();
                continue;
            }
            for resource in 0..RESOURCES {
                self.diary.set(Count::WindowFull(resource), 0);
            }
            for _step in 0..self.random.below(300) {
                if self.random.below(100) < 55 {
                    self.enter(&mut held);
                } else {
                    self.leave(&mut held);
                }
            }
            self.diary.has_done(round);
            done = round;
        }
    }

    fn any_lane(&mut self) -> Lane {
        Lane::numbered(u32::try_from(self.random.below(3)).unwrap_or(0))
    }

    fn enter(&mut self, held: &mut Vec<Held>) {
        let resource = usize::try_from(self.random.below(RESOURCES as u64)).unwrap_or(0);
        let number = usize::try_from(self.random.below(VALUES as u64)).unwrap_or(0);
        let args = [Arg::One(value(number))];
        let request = Request {
            direction: Direction::Out,
            args: &args,
            ..Request::default()
        };
        let lane = self.any_lane();
        self.diary.does(Doing::Entering(resource, number));
        match self.gate.enter(&self.stage, lane, slot(resource), request) {
            Step::Done(Verdict::Admitted(pass)) => {
                self.diary.add(Count::Passed(resource));
                self.diary.add(Count::Held(resource));
                if resource == OF_VALUES {
                    self.diary.add(Count::ValueTook(number));
                    self.diary.add(Count::ValueHeld(number));
                }
                held.push((resource, number, pass));
            }
            Step::Done(Verdict::Refused(refusal)) => {
                self.diary.add(Count::Refused(resource));
                if refusal.reason == Reason::Qps {
                    self.diary.add(Count::WindowFull(resource));
                } else if resource == OF_VALUES {
                    // Its calls at once: looked at after the tokens, and once more at the commit.
                    self.diary.add(Count::ValueTook(number));
                }
            }
            Step::Done(Verdict::Stale) | Step::Wait(_) => panic!("nobody is stale or waits here"),
        }
        self.diary.does(Doing::Nothing);
    }

    fn leave(&mut self, held: &mut Vec<Held>) {
        if held.is_empty() {
            return;
        }
        let place = self.random.below(held.len() as u64);
        let (resource, number, pass) = held.swap_remove(usize::try_from(place).unwrap_or(0));
        let lane = self.any_lane();
        self.diary.does(Doing::Leaving(resource));
        self.gate.exit(&self.stage, lane, pass, Outcome::Ok);
        self.diary.add(Count::Ended(resource));
        let less = |count| self.diary.set(count, self.diary.get(count) - 1);
        less(Count::Held(resource));
        if resource == OF_VALUES {
            less(Count::ValueHeld(number));
        }
        self.diary.does(Doing::Nothing);
    }
}
