//! Questions to the agent besides names: nodes for origins and contexts, and ids of rules.
//!
//! They wait in a bounded line for the keeper, and whoever asked waits a little for the answer.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tidegate_abi::message::{Frame, Message, Part};
use tidegate_segment::board::Slot;

use crate::entry::Entry;
use crate::error::ConnectFault;
use crate::parts::PartKey;
use crate::seat::SeatedGate;
use crate::slot_word::SessionNumber;

/// How long an asker may wait for an answer.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_millis(50);

/// Most questions that wait. With more, the own nodes of resources serve.
const WAITING_MAX: usize = 256;

/// A question.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) about: About,
    pub(crate) since: Instant,
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
    fn new(about: About) -> Arc<Self> {
        Arc::new(Self {
            about,
            since: Instant::now(),
            text: OnceLock::new(),
            done: OnceLock::new(),
        })
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.done.get().is_some()
    }

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
        seated: Option<&SeatedGate>,
        number: SessionNumber,
    ) -> Result<(), ConnectFault> {
        if let About::Part { entry, key, .. } = &self.about {
            let node = node_in(message)?;
            if let Some(seated) = seated {
                let board = seated.gate.board();
                entry.parts().put(board, number, *key, node);
            }
        } else if let Message::Ruled { id } = message {
            let _first = self.text.set(id.into());
        } else {
            return Err(ConnectFault::Unexpected("no answer to a rule"));
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
#[derive(Debug, Default)]
pub(crate) struct Line(VecDeque<Arc<Question>>);

impl Line {
    /// The question in the line that asks for this, put there if there is none; `None` if too many wait.
    pub(crate) fn join(&mut self, about: About) -> Option<Arc<Question>> {
        let same = self.0.iter().find(|asked| asked.about.is(&about));
        if let Some(question) = same {
            return Some(Arc::clone(question));
        }
        if self.0.len() >= WAITING_MAX {
            return None;
        }
        let question = Question::new(about);
        self.0.push_back(Arc::clone(&question));
        Some(question)
    }

    /// The oldest.
    pub(crate) fn first(&self) -> Option<&Arc<Question>> {
        self.0.front()
    }

    /// The oldest has its answer.
    pub(crate) fn pop(&mut self) {
        self.0.pop_front();
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The node that the agent answers with; `None` if the resource's own is to serve.
const fn node_in(message: Message<'_>) -> Result<Option<Slot>, ConnectFault> {
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
        Err(ConnectFault::Unexpected("no answer to a resolve_part"))
    }
}
