//! The keeper: the background thread that connects, resolves names, and notices the end.
//!
//! It prepares a session completely before it puts it in the place of the one before: all names of
//! the process are resolved first, so that no decision goes unprotected because of the change.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fd::AsFd as _;
use tidegate_abi::message::Message;
use tidegate_segment::board::Slot;
use tidegate_segment::clock;
use tidegate_segment::os::signals;
use tidegate_segment::page::Page;

use crate::asker::Asker;
use crate::connection::{Connection, readable, wait};
use crate::current::CurrentSession;
use crate::entry::Entry;
use crate::error::ConnectFault;
use crate::leftover::Leftover;
use crate::life::{Life, Phase, State};
use crate::overflow::OverflowNames;
use crate::pages::{Pages, retire};
use crate::question::Question;
use crate::session::Session;
use crate::slot_word::SessionNumber;
use crate::way::Way;

/// The first pause after a failure, and after the end of a session.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// The longest pause of one that holds pages and finds nobody listening: a new agent waits a little for those who can
/// hand the ledger back.
const PAUSE_MAX_HOLDING: Duration = Duration::from_millis(400);
/// How long a board stays mapped after the next one is in force: longer than a decision that began on it may take, the
/// waits that rules ask for among it.
const BOARD_RESTS: Duration = Duration::from_secs(15);

/// Keeps a client connected for as long as it lives.
#[derive(Debug)]
pub(crate) struct Keeper {
    current: &'static CurrentSession,
    sockets: Vec<PathBuf>,
    life: &'static Life,
    /// Failures in a row.
    failures: u32,
    /// The pages of the session in force, if it has a seat.
    pages: Option<Pages>,
    /// Boards that other ones have followed on the same ledger, and since when.
    resting: Vec<(Instant, Page)>,
    /// Pages that others have followed, on another ledger.
    leftover: Leftover,
    /// Names of the present connection that share a slot.
    sharing: OverflowNames,
}

/// A connection with what is under way on it.
struct Service {
    connection: Connection,
    way: Way,
    number: SessionNumber,
    /// Whether decisions go this way yet.
    in_force: bool,
    /// The pages of the way, until it is in force.
    pages: Option<Pages>,
    /// What the agent was asked.
    asked: Option<PendingQuestion>,
}

/// A question whose answer is waited for.
enum PendingQuestion {
    /// The slot of an entry.
    Slot(Arc<Entry>),
    /// To watch a listening socket.
    Watch,
    /// Something else.
    Other(Arc<Question>),
}

/// Why a service is over.
enum End {
    /// The client is dropped.
    Closing,
    /// The agent or the seat is lost.
    Lost(ConnectFault),
}

impl From<ConnectFault> for End {
    fn from(error: ConnectFault) -> Self {
        Self::Lost(error)
    }
}

impl Keeper {
    /// Starts the keeper of a life.
    ///
    /// # Errors
    /// The process may have no more threads.
    pub(crate) fn start(
        current: &'static CurrentSession,
        sockets: &[PathBuf],
        life: &'static Life,
    ) -> Result<(), ConnectFault> {
        let keeper = Self {
            current,
            sockets: sockets.to_vec(),
            life,
            failures: 0,
            pages: None,
            resting: Vec::new(),
            leftover: Leftover::default(),
            sharing: OverflowNames::default(),
        };
        let thread = std::thread::Builder::new().name("tidegate".to_owned());
        // The program's signals are its own: a thread of this library that took one would take it from the thread that
        // waits for it.
        signals::with_all_blocked(|| thread.spawn(move || keeper.run()))
            .map_err(io::Error::from)
            .and_then(|started| started)
            .map(drop)
            .map_err(|source| ConnectFault::Process {
                call: "thread",
                source,
            })
    }

    fn run(mut self) {
        while !self.life.closing() {
            let lost = match self.connect().and_then(|service| self.serve(service)) {
                Ok(()) => break,
                Err(lost) => lost,
            };
            let holds_on = self.pages.is_some() && lost.is_nobody_there();
            let longest = if holds_on {
                PAUSE_MAX_HOLDING
            } else {
                PAUSE_MAX
            };
            self.life.change(|state| state.phase = Phase::Apart(lost));
            let pause = pause(self.failures, longest, clock::monotonic_ns());
            self.failures = self.failures.saturating_add(1);
            self.rest(pause);
        }
        if let Some(pages) = self.pages.take() {
            pages.retire();
        }
        self.leftover.end();
        self.resting
            .drain(..)
            .for_each(|(_since, board)| retire(board));
    }

    /// Connects to the first agent that answers. The error is the most telling one: a socket that is
    /// there and does not answer says more than one that is missing.
    fn connect(&self) -> Result<Service, ConnectFault> {
        let number = self.current.get().number().next();
        let mut telling = None;
        for path in &self.sockets {
            match self.open(path, number) {
                Ok(service) => return Ok(service),
                Err(error) => match telling {
                    Some(ref before) if !is_missing(before) => {}
                    _missing => telling = Some(error),
                },
            }
        }
        Err(telling.unwrap_or(ConnectFault::Unexpected("nothing: no socket is known")))
    }

    /// Takes a seat; where the agent gives none, prepares to ask it for each decision.
    fn open(&self, path: &Path, number: SessionNumber) -> Result<Service, ConnectFault> {
        let (connection, seat) = Connection::open(path, self.pages.as_ref())?;
        let (way, pages) = if let Some(seat) = seat {
            let (seated, pages) = *seat;
            (Way::Seated(seated), Some(pages))
        } else {
            (self.way_without_a_seat(path)?, None)
        };
        Ok(Service {
            connection,
            way,
            number,
            in_force: false,
            pages,
            asked: None,
        })
    }

    fn way_without_a_seat(&self, path: &Path) -> Result<Way, ConnectFault> {
        let connection = Connection::open_to_ask(path)?;
        Ok(Way::Asking(Arc::new(Asker::new(connection, self.life))))
    }

    /// Serves a connection to its end; `Ok` when the client is dropped.
    fn serve(&mut self, mut service: Service) -> Result<(), ConnectFault> {
        self.sharing = OverflowNames::begin(&service.way);
        self.life.lock().all_pending(self.life.listeners());
        let end = loop {
            if let Err(end) = self.step(&mut service) {
                break end;
            }
        };
        if let Some(pages) = service.pages {
            pages.retire();
        }
        service.way.close();
        match end {
            End::Closing => Ok(()),
            End::Lost(error) => Err(error),
        }
    }

    /// Gets on as far as possible, then waits for the next event and handles it.
    fn step(&mut self, service: &mut Service) -> Result<(), End> {
        self.sharing.look(&service.way, self.life);
        self.leftover.look();
        if service.asked.is_none() {
            self.advance(service)?;
        }
        let patience = self.sharing.patience().or(self.leftover.patience());
        let [answered, rung] = wait([service.connection.as_fd(), self.life.bell()], patience)?;
        if rung {
            self.life.silence();
            if self.life.closing() {
                return Err(End::Closing);
            }
            if let Some(lost) = service.way.lost() {
                return Err(End::Lost(lost));
            }
        }
        if answered {
            self.take_answer(service)?;
        }
        Ok(())
    }

    /// Asks for the next slot; where none is waited for, puts its way into force.
    fn advance(&mut self, service: &mut Service) -> Result<(), End> {
        let mut state = self.life.lock();
        if let Some(entry) = state.pending.pop_front() {
            drop(state);
            let name = entry.name();
            service
                .connection
                .send(&Message::Resolve { name }.encode())?;
            service.asked = Some(PendingQuestion::Slot(entry));
        } else if let Some(listener) = state.unwatched.pop_front() {
            drop(state);
            let cookie = listener.cookie();
            service
                .connection
                .send(&Message::Watch { cookie }.encode())?;
            service.asked = Some(PendingQuestion::Watch);
        } else if !service.in_force {
            // Under the lock: a name that comes now is one of the new session.
            self.put_in_force(service, &mut state)?;
            drop(state);
            self.life.change(|_state| ());
        } else if let Some(question) = state.questions.first().map(Arc::clone) {
            drop(state);
            service.connection.send(&question.frame())?;
            service.asked = Some(PendingQuestion::Other(question));
        }
        Ok(())
    }

    /// Lets the process decide by a way whose names all have their slots. The pages of the way before go, as far as
    /// nobody needs them any more.
    fn put_in_force(&mut self, service: &mut Service, state: &mut State) -> Result<(), End> {
        if state.is_closing() {
            return Err(End::Closing);
        }
        let session = Session::new(service.number, self.life, service.way.clone());
        let keeps = service.pages.as_ref().is_some_and(Pages::are_kept);
        if keeps {
            self.current.replace_keeping(session);
        } else {
            self.current.replace(session);
        }
        service.in_force = true;
        state.phase = Phase::Connected;
        self.failures = 0;
        let before = std::mem::replace(&mut self.pages, service.pages.take());
        match (before, &mut self.pages) {
            (Some(before), Some(now)) if keeps => {
                let board = now.take_over(&before);
                self.rest_board(board);
            }
            (Some(before), _) => self.leftover.keep(before),
            (None, _) => {}
        }
        Ok(())
    }

    /// Decisions may still be under way on a board that another one has followed.
    fn rest_board(&mut self, board: Page) {
        let rested = |(since, _board): &mut (Instant, Page)| since.elapsed() >= BOARD_RESTS;
        for (_since, board) in self.resting.extract_if(.., rested) {
            retire(board);
        }
        self.resting.push((Instant::now(), board));
    }

    fn take_answer(&mut self, service: &mut Service) -> Result<(), ConnectFault> {
        match service.asked.take() {
            Some(PendingQuestion::Slot(entry)) => {
                let (slot, shares) = service.connection.receive(slot_in)?;
                self.sharing.note(&entry, shares);
                self.life
                    .change(|_state| entry.resolved(service.number, slot));
                Ok(())
            }
            Some(PendingQuestion::Watch) => service.connection.receive(watched),
            Some(PendingQuestion::Other(question)) => {
                let (number, seated) = (service.number, service.way.seated());
                service.connection.receive(|message| {
                    self.life.change(|state| {
                        state.questions.pop();
                        question.take_answer(message, seated, number)
                    })
                })
            }
            None => {
                service.connection.receive(|_message| Ok(()))?;
                Err(ConnectFault::Unexpected("an answer to no question"))
            }
        }
    }

    /// Waits until a pause is over or the client is dropped.
    fn rest(&self, pause: Duration) {
        // A bell rung for a name needs no hurry: there is nobody to ask.
        while matches!(readable(self.life.bell(), pause), Ok(true)) {
            self.life.silence();
            if self.life.closing() {
                return;
            }
        }
    }
}

/// The slot that the agent answers with, and whether others share it.
fn slot_in(message: Message<'_>) -> Result<(Slot, bool), ConnectFault> {
    if let Message::Resolved {
        slot: index,
        generation,
        overflow,
    } = message
    {
        Ok((Slot { index, generation }, overflow != 0))
    } else if let Message::Fault { .. } = message {
        // The agent has no place for the name: it shares the slot of all such names.
        Ok((Slot::OVERFLOW, true))
    } else {
        Err(ConnectFault::Unexpected("no answer to a resolve"))
    }
}

/// Whether the agent has heard of a listening socket. One that it does not watch counts for this
/// process's own decisions alone.
fn watched(message: Message<'_>) -> Result<(), ConnectFault> {
    if matches!(message, Message::Watched | Message::Fault { .. }) {
        return Ok(());
    }
    Err(ConnectFault::Unexpected("no answer to a watch"))
}

fn is_missing(error: &ConnectFault) -> bool {
    matches!(error, ConnectFault::Socket { source, .. } if source.kind() == io::ErrorKind::NotFound)
}

/// How long to wait after some failures in a row: doubled each time, and spread by the low bits of
/// the clock over the upper half, so that clients do not come back as one.
fn pause(failures: u32, longest: Duration, now_ns: u64) -> Duration {
    let doubled = PAUSE_MIN.saturating_mul(1_u32.checked_shl(failures).unwrap_or(u32::MAX));
    let longest = doubled.min(longest);
    // A multiplication mixes the low bits up; the top ten are the share, in 1/1024.
    let share = now_ns.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
    let share = u32::try_from(share).unwrap_or(0);
    let half = longest / 2;
    half.saturating_add(half.saturating_mul(share) / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_two_seconds_and_are_spread() {
        for now_ns in [0, 1, 12_345, u64::MAX] {
            let mut least = PAUSE_MIN / 2;
            for failures in 0..40 {
                let pause = pause(failures, PAUSE_MAX, now_ns);
                assert!(pause >= least.min(PAUSE_MAX / 2), "{failures}: {pause:?}");
                assert!(pause <= PAUSE_MAX, "{failures}: {pause:?}");
                least = least.saturating_mul(2);
            }
        }
        assert_ne!(pause(3, PAUSE_MAX, 1), pause(3, PAUSE_MAX, 2));
    }
}
