//! Socket messages: one SEQPACKET packet is one frame.
//!
//! A frame is little-endian: kind (u16), zero (u16), length of the whole frame (u32), then the
//! fields of that kind in the order of the struct. Text is a length (u16) and its bytes. A frame
//! that is longer or shorter than its fields say is refused.

use crate::NAME_MAX;
use crate::decision::{Class, Direction, Outcome, Reason, RefusalKind};

/// The longest frame, bytes.
pub const FRAME_MAX: usize = 1024;
/// Bytes before the fields.
pub const HEADER: usize = 8;
/// Seat number that means "no seat: ask over the socket".
pub const NO_SEAT: u32 = u32::MAX;
/// Bytes of a token that names a permit held by the agent.
pub const TOKEN: usize = 16;

/// Why a frame could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameFault {
    /// Shorter than its fields or its own length.
    Short,
    /// Longer than its fields or its own length.
    Long,
    /// No such kind of frame.
    Kind(u16),
    /// A field holds a number that is not one of its values.
    Value(&'static str),
    /// Text is not UTF-8 or longer than [`NAME_MAX`].
    Text(&'static str),
}

/// Why the agent answered with a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum FaultCode {
    /// The frame could not be read.
    Frame = 1,
    /// The version is not the agent's.
    Version = 2,
    /// The frame came at the wrong time: before hello, or a second hello.
    Order = 3,
    /// A name, count or other value is not allowed.
    Value = 4,
    /// No such permit, or not the caller's.
    Permit = 5,
    /// The agent cannot serve it now (too many clients).
    Busy = 6,
}

impl FaultCode {
    const fn from_u16(number: u16) -> Option<Self> {
        match number {
            1 => Some(Self::Frame),
            2 => Some(Self::Version),
            3 => Some(Self::Order),
            4 => Some(Self::Value),
            5 => Some(Self::Permit),
            6 => Some(Self::Busy),
            _ => None,
        }
    }
}

/// What a service asks for, in [`Message::Enter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask<'a> {
    /// Name of the resource.
    pub resource: &'a str,
    /// Calling application, empty if unknown.
    pub origin: &'a str,
    /// How many requests at once, 1 or more.
    pub count: u32,
    /// How important.
    pub class: Class,
    /// Which way.
    pub direction: Direction,
}

/// The answer to [`Message::Enter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Go on; give the token back with [`Message::Exit`].
    Admitted {
        /// Names the permit; unguessable, bound to the caller's user id.
        token: [u8; TOKEN],
        /// How long the caller was held before this answer, ms.
        waited_ms: u32,
    },
    /// Do not.
    Refused {
        /// Kind of rule.
        kind: RefusalKind,
        /// What was over its limit.
        reason: Reason,
        /// Whether trying again makes sense.
        retry: bool,
        /// Index of the rule, `u32::MAX` where no rule refused.
        rule: u32,
        /// When to try again, ms from now.
        retry_after_ms: u32,
    },
}

/// The agent's answer to [`Message::Hello`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Welcome {
    /// [`crate::VERSION`].
    pub version: u32,
    /// The seat, or [`NO_SEAT`].
    pub seat: u32,
    /// Generation of the seat.
    pub seat_generation: u32,
    /// Scope of the service's own cgroup.
    pub scope: u32,
    /// Words of the board.
    pub board_words: u64,
    /// Words of the ledger.
    pub ledger_words: u64,
    /// Generation of the board.
    pub board_generation: u64,
    /// The agent's `CLOCK_MONOTONIC`, ns.
    pub now_ns: u64,
}

/// Any frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// First frame of a service.
    Hello {
        /// [`crate::VERSION`].
        version: u32,
        /// Bit 0: the service wants to map the pages.
        flags: u32,
        /// The service's `CLOCK_MONOTONIC`, ns: shows a time namespace.
        now_ns: u64,
    },
    /// The agent's answer; with a seat, board and ledger descriptors come with it, in this order.
    Welcome(Welcome),
    /// Asks for the slot of a resource.
    Resolve {
        /// Name of the resource.
        name: &'a str,
    },
    /// The slot.
    Resolved {
        /// Slot number.
        slot: u32,
        /// Generation of the slot.
        generation: u16,
        /// 1 if this is an overflow slot that the name shares with others.
        overflow: u16,
    },
    /// Asks for a permit held by the agent.
    Enter(Ask<'a>),
    /// The answer.
    Verdict(Answer),
    /// Gives a permit back.
    Exit {
        /// The permit.
        token: [u8; TOKEN],
        /// How it ended.
        outcome: Outcome,
    },
    /// The permit was given back.
    Exited,
    /// Something was wrong with the last frame.
    Fault {
        /// What.
        code: FaultCode,
        /// In words.
        text: &'a str,
    },
}

/// Flag of [`Message::Hello`]: the service wants to map the pages.
pub const HELLO_MAP: u32 = 1;

mod kind {
    pub(super) const HELLO: u16 = 1;
    pub(super) const WELCOME: u16 = 2;
    pub(super) const RESOLVE: u16 = 3;
    pub(super) const RESOLVED: u16 = 4;
    pub(super) const ENTER: u16 = 5;
    pub(super) const VERDICT: u16 = 6;
    pub(super) const EXIT: u16 = 7;
    pub(super) const EXITED: u16 = 8;
    pub(super) const FAULT: u16 = 9;
}

/// A frame under construction or ready to send.
#[derive(Debug, Clone)]
pub struct Frame {
    bytes: [u8; FRAME_MAX],
    length: usize,
}

impl Frame {
    /// The bytes to send.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&[])
    }

    fn put(&mut self, bytes: &[u8]) {
        let end = self.length.saturating_add(bytes.len());
        if let Some(place) = self.bytes.get_mut(self.length..end) {
            place.copy_from_slice(bytes);
            self.length = end;
        }
    }

    /// Text longer than a name is cut at a character.
    fn put_text(&mut self, text: &str) {
        let end = text.floor_char_boundary(NAME_MAX);
        let text = text.get(..end).unwrap_or("");
        self.put(&u16::try_from(text.len()).unwrap_or(0).to_le_bytes());
        self.put(text.as_bytes());
    }

    fn seal(&mut self, kind: u16) {
        let length = u32::try_from(self.length).unwrap_or(0);
        let [k0, k1] = kind.to_le_bytes();
        let [l0, l1, l2, l3] = length.to_le_bytes();
        if let Some(place) = self.bytes.get_mut(..HEADER) {
            place.copy_from_slice(&[k0, k1, 0, 0, l0, l1, l2, l3]);
        }
    }
}

impl Message<'_> {
    /// The frame of this message.
    pub fn encode(&self) -> Frame {
        let mut frame = Frame {
            bytes: [0; FRAME_MAX],
            length: HEADER,
        };
        let kind = self.put_fields(&mut frame);
        frame.seal(kind);
        frame
    }

    fn put_fields(&self, frame: &mut Frame) -> u16 {
        match *self {
            Self::Hello {
                version,
                flags,
                now_ns,
            } => {
                frame.put(&version.to_le_bytes());
                frame.put(&flags.to_le_bytes());
                frame.put(&now_ns.to_le_bytes());
                kind::HELLO
            }
            Self::Welcome(welcome) => {
                put_welcome(frame, welcome);
                kind::WELCOME
            }
            Self::Resolve { name } => {
                frame.put_text(name);
                kind::RESOLVE
            }
            Self::Resolved {
                slot,
                generation,
                overflow,
            } => {
                frame.put(&slot.to_le_bytes());
                frame.put(&generation.to_le_bytes());
                frame.put(&overflow.to_le_bytes());
                kind::RESOLVED
            }
            Self::Enter(ask) => {
                put_ask(frame, ask);
                kind::ENTER
            }
            Self::Verdict(answer) => {
                put_answer(frame, answer);
                kind::VERDICT
            }
            Self::Exit { token, outcome } => {
                frame.put(&token);
                frame.put(&[outcome as u8, 0]);
                kind::EXIT
            }
            Self::Exited => kind::EXITED,
            Self::Fault { code, text } => {
                frame.put(&(code as u16).to_le_bytes());
                frame.put_text(text);
                kind::FAULT
            }
        }
    }
}

fn put_welcome(frame: &mut Frame, welcome: Welcome) {
    for part in [
        welcome.version,
        welcome.seat,
        welcome.seat_generation,
        welcome.scope,
    ] {
        frame.put(&part.to_le_bytes());
    }
    for part in [
        welcome.board_words,
        welcome.ledger_words,
        welcome.board_generation,
        welcome.now_ns,
    ] {
        frame.put(&part.to_le_bytes());
    }
}

fn put_ask(frame: &mut Frame, ask: Ask<'_>) {
    frame.put(&ask.count.to_le_bytes());
    frame.put(&[ask.class as u8, ask.direction as u8]);
    frame.put_text(ask.resource);
    frame.put_text(ask.origin);
}

fn put_answer(frame: &mut Frame, answer: Answer) {
    match answer {
        Answer::Admitted { token, waited_ms } => {
            frame.put(&[1, 0, 0, 0]);
            frame.put(&token);
            frame.put(&waited_ms.to_le_bytes());
        }
        Answer::Refused {
            kind,
            reason,
            retry,
            rule,
            retry_after_ms,
        } => {
            frame.put(&[0, kind as u8, reason as u8, u8::from(retry)]);
            frame.put(&rule.to_le_bytes());
            frame.put(&retry_after_ms.to_le_bytes());
        }
    }
}

/// Reads fields off the front of a frame.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], FrameFault> {
        let (head, tail) = self.0.split_first_chunk::<N>().ok_or(FrameFault::Short)?;
        self.0 = tail;
        Ok(*head)
    }
    fn u16(&mut self) -> Result<u16, FrameFault> {
        self.take().map(u16::from_le_bytes)
    }
    fn u32(&mut self) -> Result<u32, FrameFault> {
        self.take().map(u32::from_le_bytes)
    }
    fn u64(&mut self) -> Result<u64, FrameFault> {
        self.take().map(u64::from_le_bytes)
    }
    fn text(&mut self, what: &'static str) -> Result<&'a str, FrameFault> {
        let length = usize::from(self.u16()?);
        if length > NAME_MAX {
            return Err(FrameFault::Text(what));
        }
        let (text, tail) = self.0.split_at_checked(length).ok_or(FrameFault::Short)?;
        self.0 = tail;
        core::str::from_utf8(text).map_err(|_not_utf8| FrameFault::Text(what))
    }
    fn end<T>(self, message: T) -> Result<T, FrameFault> {
        if self.0.is_empty() {
            Ok(message)
        } else {
            Err(FrameFault::Long)
        }
    }
}

impl<'a> Message<'a> {
    /// Reads a frame that came from outside.
    ///
    /// # Errors
    /// What does not fit, see [`FrameFault`]; nothing is allocated and no bytes can panic.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, FrameFault> {
        let mut fields = Fields(bytes);
        let kind = fields.u16()?;
        let _zero: u16 = fields.u16()?;
        let length = usize::try_from(fields.u32()?).map_err(|_wide| FrameFault::Short)?;
        if length > bytes.len() {
            return Err(FrameFault::Short);
        }
        if length < bytes.len() {
            return Err(FrameFault::Long);
        }
        let message = Self::take_fields(kind, &mut fields)?;
        fields.end(message)
    }

    fn take_fields(kind: u16, fields: &mut Fields<'a>) -> Result<Self, FrameFault> {
        Ok(match kind {
            kind::HELLO => Self::Hello {
                version: fields.u32()?,
                flags: fields.u32()?,
                now_ns: fields.u64()?,
            },
            kind::WELCOME => Self::Welcome(Welcome {
                version: fields.u32()?,
                seat: fields.u32()?,
                seat_generation: fields.u32()?,
                scope: fields.u32()?,
                board_words: fields.u64()?,
                ledger_words: fields.u64()?,
                board_generation: fields.u64()?,
                now_ns: fields.u64()?,
            }),
            kind::RESOLVE => Self::Resolve {
                name: fields.text("name")?,
            },
            kind::RESOLVED => Self::Resolved {
                slot: fields.u32()?,
                generation: fields.u16()?,
                overflow: fields.u16()?,
            },
            kind::ENTER => Self::Enter(take_ask(fields)?),
            kind::VERDICT => Self::Verdict(take_answer(fields)?),
            kind::EXIT => {
                let token = fields.take()?;
                let [outcome, _zero] = fields.take()?;
                let outcome = Outcome::from_u8(outcome).ok_or(FrameFault::Value("outcome"))?;
                Self::Exit { token, outcome }
            }
            kind::EXITED => Self::Exited,
            kind::FAULT => {
                let code = FaultCode::from_u16(fields.u16()?).ok_or(FrameFault::Value("code"))?;
                Self::Fault {
                    code,
                    text: fields.text("text")?,
                }
            }
            other => return Err(FrameFault::Kind(other)),
        })
    }
}

fn take_ask<'a>(fields: &mut Fields<'a>) -> Result<Ask<'a>, FrameFault> {
    let count = fields.u32()?;
    let [class, direction] = fields.take()?;
    Ok(Ask {
        count,
        class: Class::from_u8(class).ok_or(FrameFault::Value("class"))?,
        direction: Direction::from_u8(direction).ok_or(FrameFault::Value("direction"))?,
        resource: fields.text("resource")?,
        origin: fields.text("origin")?,
    })
}

fn take_answer(fields: &mut Fields<'_>) -> Result<Answer, FrameFault> {
    let [admitted, kind, reason, retry] = fields.take()?;
    if admitted == 1 {
        return Ok(Answer::Admitted {
            token: fields.take()?,
            waited_ms: fields.u32()?,
        });
    }
    Ok(Answer::Refused {
        kind: RefusalKind::from_u8(kind).ok_or(FrameFault::Value("kind"))?,
        reason: Reason::from_u8(reason).ok_or(FrameFault::Value("reason"))?,
        retry: retry != 0,
        rule: fields.u32()?,
        retry_after_ms: fields.u32()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASK: Ask<'static> = Ask {
        resource: "order-create",
        origin: "web",
        count: 3,
        class: Class::Critical,
        direction: Direction::In,
    };

    fn samples() -> [Message<'static>; 10] {
        [
            Message::Hello {
                version: 1,
                flags: HELLO_MAP,
                now_ns: 7,
            },
            Message::Welcome(Welcome {
                version: 1,
                seat: 2,
                seat_generation: 3,
                scope: 4,
                board_words: 5,
                ledger_words: 6,
                board_generation: 7,
                now_ns: 8,
            }),
            Message::Resolve {
                name: "order-create",
            },
            Message::Resolved {
                slot: 9,
                generation: 1,
                overflow: 0,
            },
            Message::Enter(ASK),
            Message::Verdict(Answer::Admitted {
                token: [7; TOKEN],
                waited_ms: 12,
            }),
            Message::Verdict(Answer::Refused {
                kind: RefusalKind::Flow,
                reason: Reason::Qps,
                retry: true,
                rule: 4,
                retry_after_ms: 500,
            }),
            Message::Exit {
                token: [9; TOKEN],
                outcome: Outcome::Error,
            },
            Message::Exited,
            Message::Fault {
                code: FaultCode::Order,
                text: "a second hello",
            },
        ]
    }

    #[test]
    fn a_message_reads_back_as_it_was_written() {
        for message in samples() {
            assert_eq!(Message::decode(message.encode().bytes()), Ok(message));
        }
    }

    #[test]
    fn a_cut_or_grown_frame_is_refused() {
        for message in samples() {
            let frame = message.encode();
            for cut in 0..frame.bytes().len() {
                assert_eq!(
                    Message::decode(&frame.bytes()[..cut]),
                    Err(FrameFault::Short)
                );
            }
            let mut grown = [0; FRAME_MAX];
            grown[..frame.length].copy_from_slice(frame.bytes());
            assert_eq!(
                Message::decode(&grown[..=frame.length]),
                Err(FrameFault::Long)
            );
        }
    }

    #[test]
    fn unknown_kinds_and_values_are_named() {
        let mut frame = Message::Exit {
            token: [0; TOKEN],
            outcome: Outcome::Ok,
        }
        .encode();
        frame.bytes[HEADER + TOKEN] = 99;
        assert_eq!(
            Message::decode(frame.bytes()),
            Err(FrameFault::Value("outcome"))
        );
        frame.bytes[0] = 77;
        assert_eq!(Message::decode(frame.bytes()), Err(FrameFault::Kind(77)));
    }
}
