//! Questions to the agent besides names: nodes for origins and contexts, and ids of rules.
//!
//! They wait in a bounded line for the keeper, and whoever asked waits a little for the answer.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tidegate_abi::message::{Frame, Message, Part};
use tidegate_segment::board::Slot;

use crate::entry::{Entry, SessionNumber};
use crate::error::ConnectError;
use crate::life::{Life, Phase};
use crate::parts::PartKey;
use crate::session::Way;

/// How long an asker may wait for an answer.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_millis(50);

/// Most questions that wait. With more, the own nodes of resources serve.
const WAITING_MAX: usize = 256;

/// A question.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) about: About,
    since: Instant,
    /// The answer, where it is text.
    text: OnceLock<Box<str>>,
    done: OnceLock<()>,
}

/// What is asked for.
#[derive(Debug)]
pub(crate) enum About {
    /// The node of a resource for an origin or context.
    Part {
        entry: Arc<Entry>,
        part: Part,
        key: PartKey,
        name: Box<str>,
    },
    /// The id of a rule.
    Rule(u32),
}

impl About {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Part { entry, key, .. },
                Self::Part {
                    entry: others,
                    key: other,
                    ..
                },
            ) => Arc::ptr_eq(entry, others) && key == other,
            (Self::Rule(number), Self::Rule(other)) => number == other,
            (Self::Part { .. } | Self::Rule(_), _) => false,
        }
    }
}

impl Question {
    /// The frame that asks it.
    pub(crate) fn frame(&self) -> Frame {
        let message = match &self.about {
            About::Part {
                entry, part, name, ..
            } => Message::ResolvePart {
                part: *part,
                resource: entry.name(),
                name,
            },
            About::Rule(number) => Message::Rule { number: *number },
        };
        message.encode()
    }

    /// Takes the answer of a session's agent. Called under the lock of the life, one at a time.
    ///
    /// # Errors
    /// The message is no answer to it.
    pub(crate) fn take_answer(
        &self,
        message: Message<'_>,
        way: &Way,
        number: SessionNumber,
    ) -> Result<(), ConnectError> {
        if let About::Part { entry, key, .. } = &self.about {
            let node = node_in(message)?;
            if let Way::Seated(seated) = way {
                let board = seated.gate.board();
                entry.parts().put(board, number, *key, node);
            }
        } else if let Message::Ruled { id } = message {
            let _first = self.text.set(id.into());
        } else {
            return Err(ConnectError::Unexpected("no answer to a rule"));
        }
        let _first = self.done.set(());
        Ok(())
    }

    /// The answer, where it is text.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.get().map(Box::as_ref)
    }
}

/// Questions that wait, the oldest first; it stays until it is answered.
pub(crate) type Line = VecDeque<Arc<Question>>;

impl Life {
    /// Asks the agent and waits a little for the answer. `None` if there is nobody to ask, or too many
    /// ask already. While the agent lets the oldest question wait, nobody waits for the answer.
    pub(crate) fn ask(&self, about: About) -> Option<Arc<Question>> {
        let mut state = self.lock();
        if !matches!(state.phase, Phase::Connected) {
            return None;
        }
        let oldest = state.questions.front().map(|oldest| oldest.since);
        let same = state.questions.iter().find(|asked| asked.about.is(&about));
        let question = match same.map(Arc::clone) {
            Some(question) => question,
            None if state.questions.len() >= WAITING_MAX => return None,
            None => {
                let question = Arc::new(Question {
                    about,
                    since: Instant::now(),
                    text: OnceLock::new(),
                    done: OnceLock::new(),
                });
                state.questions.push_back(Arc::clone(&question));
                question
            }
        };
        drop(state);
        self.ring();
        let oldest = oldest.unwrap_or(question.since);
        let left = ANSWER_WITHIN.saturating_sub(oldest.elapsed());
        self.wait_while(left, |state| {
            question.done.get().is_none() && matches!(state.phase, Phase::Connected)
        });
        Some(question)
    }
}

/// The node that the agent answers with; `None` if the resource's own is to serve.
const fn node_in(message: Message<'_>) -> Result<Option<Slot>, ConnectError> {
    if let Message::Resolved {
        slot: index,
        generation,
        overflow,
    } = message
    {
        let slot = Slot { index, generation };
        Ok(if overflow == 0 { Some(slot) } else { None })
    } else if let Message::Fault { .. } = message {
        Ok(None)
    } else {
        Err(ConnectError::Unexpected("no answer to a resolve_part"))
    }
}
