//! A process that enters and gives back at random, round by round, until it is killed.

use rustix::process::{Signal, set_parent_process_death_signal};
use tidegate_abi::decision::{Direction, Outcome, Reason};
use tidegate_segment::gate::{Arg, Gate, GateVerdict, Pass, Request, RequestName, Step};
use tidegate_segment::lane::Lane;

use crate::diary::{Count, Diary, Doing};
use crate::random::Random;
use crate::resource::{OF_CONTEXTS, OF_VALUES, PLACES, RESOURCES, VALUES, part, slot, value};
use crate::stage::{END, Stage};

/// A permit.
struct Held {
    resource: usize,
    number: usize,
    pass: Pass,
    /// The node that it counts on besides, and for which time that was given.
    part: Option<(usize, u16)>,
}

/// A place as a process knows it since the round began.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    generation: u16,
    /// Whether it was somebody's then.
    open: bool,
}

pub(crate) struct Worker {
    pub(crate) gate: Gate,
    pub(crate) stage: Stage,
    pub(crate) diary: Diary,
    pub(crate) random: Random,
}

impl Worker {
    /// Works until the end, or a kill.
    pub(crate) fn work(self, mut done: u64) -> u8 {
        if set_parent_process_death_signal(Some(Signal::KILL)).is_err() {
            return 1;
        }
        let mut shift = Shift {
            worker: self,
            known: [Known::default(); PLACES],
            held: Vec::new(),
        };
        let stage = shift.worker.stage;
        loop {
            let round = stage.round();
            if round == END {
                return 0;
            }
            if round == done {
                std::thread::yield_now();
                continue;
            }
            shift.round();
            shift.worker.diary.has_done(round);
            done = round;
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.random.below(limit as u64)).unwrap_or(0)
    }

    fn any_lane(&mut self) -> Lane {
        Lane::numbered(u32::try_from(self.random.below(3)).unwrap_or(0))
    }
}

/// A process at work, with what it knows and holds.
struct Shift {
    worker: Worker,
    known: [Known; PLACES],
    held: Vec<Held>,
}

impl Shift {
    fn round(&mut self) {
        for place in 0..PLACES {
            self.look_up(place);
            self.worker.diary.set(Count::WindowFull(place), 0);
        }
        for _step in 0..self.worker.random.below(300) {
            if self.worker.random.below(100) < 55 {
                self.enter();
            } else {
                self.leave();
            }
        }
    }

    /// Whose a slot is in this round. What was held there before counts no more.
    fn look_up(&mut self, place: usize) {
        let generation = self.worker.stage.generation(place);
        let known = &mut self.known[place];
        known.open = generation.is_some();
        if let Some(generation) = generation
            && generation != known.generation
        {
            known.generation = generation;
            self.worker.diary.begin_place(place, generation);
        }
    }

    fn is_counted(&self, place: usize, generation: u16) -> bool {
        let known = self.known[place];
        known.open && known.generation == generation
    }

    /// Origin and context of a request. A node that went is named too, as by a process that has not heard of it.
    fn names(&self, resource: usize, part: Option<usize>) -> (RequestName, RequestName) {
        let name = RequestName {
            hash: part.map_or(0, value),
            node: part.map(|part| slot(part, self.known[part].generation)),
        };
        if resource == OF_CONTEXTS {
            (RequestName::default(), name)
        } else {
            (name, RequestName::default())
        }
    }

    fn enter(&mut self) {
        let (resource, number) = (self.worker.below(RESOURCES), self.worker.below(VALUES));
        let args = [Arg::One(value(number))];
        let part = part(resource, number);
        let (origin, context) = self.names(resource, part);
        let request = Request {
            direction: Direction::Out,
            origin,
            context,
            args: &args,
            ..Request::default()
        };
        let part = part.filter(|part| self.known[*part].open);
        let part = part.map(|part| (part, self.known[part].generation));
        let own = slot(resource, self.known[resource].generation);
        let lane = self.worker.any_lane();
        let Worker {
            gate, stage, diary, ..
        } = &self.worker;
        diary.does(Doing::Entering(resource, number));
        match gate.enter(stage, lane, own, request) {
            Step::Done(GateVerdict::Admitted(pass)) => {
                for place in [Some(resource), part.map(|(part, _)| part)]
                    .into_iter()
                    .flatten()
                {
                    diary.add(Count::Passed(place));
                    diary.add(Count::Held(place));
                }
                if resource == OF_VALUES {
                    diary.add(Count::ValueTook(number));
                    diary.add(Count::ValueHeld(number));
                }
                self.held.push(Held {
                    resource,
                    number,
                    pass,
                    part,
                });
            }
            Step::Done(GateVerdict::Refused(refusal)) => {
                diary.add(Count::Refused(resource));
                if refusal.reason == Reason::Qps {
                    diary.add(Count::WindowFull(resource));
                } else if resource == OF_VALUES {
                    // Its calls at once: looked at after the tokens, and once more at the commit.
                    diary.add(Count::ValueTook(number));
                }
            }
            Step::Done(GateVerdict::Stale) => {
                let now = stage.generation(resource);
                assert_eq!(now, None, "nobody took {resource} away");
            }
            Step::Wait(_) => panic!("nobody waits here"),
        }
        diary.does(Doing::Nothing);
    }

    fn leave(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let place = self.worker.below(self.held.len());
        let Held {
            resource,
            number,
            pass,
            part,
        } = self.held.swap_remove(place);
        let lane = self.worker.any_lane();
        let Worker {
            gate, stage, diary, ..
        } = &self.worker;
        diary.does(Doing::Leaving(resource, number));
        gate.exit(stage, lane, pass, Outcome::Ok);
        let places = [Some((resource, pass.slot.generation)), part];
        for (place, generation) in places.into_iter().flatten() {
            // Who was given the slot since has nothing of it.
            if self.is_counted(place, generation) {
                diary.add(Count::Ended(place));
                diary.less(Count::Held(place));
            }
        }
        if resource == OF_VALUES {
            diary.less(Count::ValueHeld(number));
        }
        diary.does(Doing::Nothing);
    }
}
