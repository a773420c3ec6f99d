//! The way of a process without a seat: each request, and its end, is a question to the agent.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_abi::decision::Outcome;
use tidegate_abi::message::{EnterAnswer, EnterRequest, Message, TOKEN};
use tidegate_segment::gate::Refusal;

use crate::connection::Connection;
use crate::error::ConnectFault;
use crate::life::Life;
use crate::refused::Refused;

/// How long the agent may take for an answer.
const ANSWER_WITHIN: Duration = Duration::from_millis(50);

/// A connection that the threads of a process use in turn. The agent answers each question at once: who has to wait
/// for its turn waits here, and leaves the connection to others.
///
/// The agent gives back what was entered on a connection when that ends, so a connection that did not
/// answer in time is closed: nobody could tell a late answer from the next one.
#[derive(Debug)]
pub(crate) struct Asker {
    line: Mutex<Line>,
    life: &'static Life,
}

#[derive(Debug)]
enum Line {
    Up(Connection),
    /// Closed, and why, until the keeper has taken note.
    Lost(Option<ConnectFault>),
}

impl Asker {
    pub(crate) const fn new(connection: Connection, life: &'static Life) -> Self {
        Self {
            line: Mutex::new(Line::Up(connection)),
            life,
        }
    }

    /// Asks for a permit; `None` if the agent has not decided.
    pub(crate) fn enter(&self, ask: EnterRequest<'_>) -> Option<Heard> {
        self.ask_for_permit(&Message::Enter(ask))
    }

    /// Goes on with a request whose turn has come; `None` if the agent has not decided.
    pub(crate) fn resume(&self, token: [u8; TOKEN]) -> Option<Heard> {
        self.ask_for_permit(&Message::Resume { token })
    }

    fn ask_for_permit(&self, question: &Message<'_>) -> Option<Heard> {
        self.ask(question, |answer| {
            if let Message::Verdict(verdict) = answer {
                return Ok(Some(heard(verdict)));
            }
            if let Message::Held { token, wait_us } = answer {
                let wait = Duration::from_micros(wait_us.into());
                return Ok(Some(Heard::Held { token, wait }));
            }
            is_fault(answer).map(|()| None)
        })
        .flatten()
    }

    /// Gives a permit back, or a request up that waits for its turn. Where the connection is lost, the agent has done so already.
    pub(crate) fn exit(&self, token: [u8; TOKEN], outcome: Outcome) {
        let exit = Message::Exit { token, outcome };
        let _told: Option<()> = self.ask(&exit, |answer| {
            if let Message::Exited = answer {
                return Ok(());
            }
            is_fault(answer)
        });
    }

    /// Why there is no connection any more; `None` while there is one.
    pub(crate) fn lost(&self) -> Option<ConnectFault> {
        match &mut *self.lock() {
            Line::Up(_) => None,
            Line::Lost(why) => Some(why.take().unwrap_or(ConnectFault::Ended)),
        }
    }

    /// Ends the connection, and its permits with it.
    pub(crate) fn close(&self) {
        *self.lock() = Line::Lost(None);
    }

    /// Closes a forked child's copy of its parent's connection, so that the connection ends with the
    /// parent. The copy stays where a thread of the parent was asking at the moment of the fork.
    pub(crate) fn let_go(&self) {
        if let Ok(mut line) = self.line.try_lock() {
            *line = Line::Lost(None);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        // Each change of the line is whole.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask<T>(
        &self,
        question: &Message<'_>,
        read: impl FnOnce(Message<'_>) -> Result<T, ConnectFault>,
    ) -> Option<T> {
        let mut line = self.lock();
        let Line::Up(connection) = &*line else {
            return None;
        };
        match connection.ask(&question.encode(), ANSWER_WITHIN, read) {
            Ok(answer) => Some(answer),
            Err(why) => {
                *line = Line::Lost(Some(why));
                drop(line);
                self.life.ring();
                None
            }
        }
    }
}

/// What the agent said to a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Heard {
    /// It holds a permit.
    Admitted {
        token: [u8; TOKEN],
        waited: Duration,
    },
    /// Its turn comes later.
    Held {
        token: [u8; TOKEN],
        wait: Duration,
    },
    Refused(Refused),
}

fn heard(answer: EnterAnswer<'_>) -> Heard {
    match answer {
        EnterAnswer::Admitted { token, waited_ms } => Heard::Admitted {
            token,
            waited: Duration::from_millis(waited_ms.into()),
        },
        EnterAnswer::Refused {
            kind,
            reason,
            retry,
            rule,
            retry_after_ms,
            value,
            limit,
            id: _,
        } => Heard::Refused(Refused::from(Refusal {
            kind,
            reason,
            retry,
            rule,
            value,
            limit,
            retry_after_ns: u64::from(retry_after_ms).saturating_mul(1_000_000),
        })),
    }
}

/// A fault is an answer too: the agent is there, and cannot do what it was asked for.
const fn is_fault(answer: Message<'_>) -> Result<(), ConnectFault> {
    if let Message::Fault { .. } = answer {
        Ok(())
    } else {
        Err(ConnectFault::Unexpected("no answer to an enter or exit"))
    }
}
