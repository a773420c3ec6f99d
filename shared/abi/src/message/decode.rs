//! Frames as messages. What comes in here was written by others: nothing in it is believed.

use super::{
    Again, Args, EnterAnswer, EnterRequest, FaultCode, FrameFault, FrameKind, Message, Part,
    Welcome,
};
use crate::NAME_MAX;
use crate::decision::{Class, Direction, Outcome, Reason, RefusalKind};

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
    fn args(&mut self) -> Result<Args<'a>, FrameFault> {
        let (args, rest) = Args::take(self.0)?;
        self.0 = rest;
        Ok(args)
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
        let number = fields.u16()?;
        let _zero: u16 = fields.u16()?;
        let length = usize::try_from(fields.u32()?).map_err(|_wide| FrameFault::Short)?;
        if length > bytes.len() {
            return Err(FrameFault::Short);
        }
        if length < bytes.len() {
            return Err(FrameFault::Long);
        }
        let kind = known(number, FrameKind::from_u8).ok_or(FrameFault::Kind(number))?;
        let message = Self::take_fields(kind, &mut fields)?;
        fields.end(message)
    }

    fn take_fields(kind: FrameKind, fields: &mut Fields<'a>) -> Result<Self, FrameFault> {
        Ok(match kind {
            FrameKind::Hello => Self::Hello {
                version: fields.u32()?,
                flags: fields.u32()?,
                now_ns: fields.u64()?,
            },
            FrameKind::Again => Self::Again(take_again(fields)?),
            FrameKind::Welcome => Self::Welcome(Welcome {
                version: fields.u32()?,
                seat: fields.u32()?,
                seat_generation: fields.u32()?,
                scope: fields.u32()?,
                board_words: fields.u64()?,
                ledger_words: fields.u64()?,
                board_generation: fields.u64()?,
                now_ns: fields.u64()?,
            }),
            FrameKind::Resolve => Self::Resolve {
                name: fields.text("name")?,
            },
            FrameKind::Resolved => Self::Resolved {
                slot: fields.u32()?,
                generation: fields.u16()?,
                overflow: fields.u16()?,
            },
            FrameKind::Enter => Self::Enter(take_ask(fields)?),
            FrameKind::Verdict => Self::Verdict(take_answer(fields)?),
            FrameKind::Exit => {
                let token = fields.take()?;
                let [outcome, _zero] = fields.take()?;
                let outcome = Outcome::from_u8(outcome).ok_or(FrameFault::Value("outcome"))?;
                Self::Exit { token, outcome }
            }
            FrameKind::Exited => Self::Exited,
            FrameKind::Watch => Self::Watch {
                cookie: fields.u64()?,
            },
            FrameKind::Watched => Self::Watched,
            FrameKind::Held => Self::Held {
                token: fields.take()?,
                wait_us: fields.u32()?,
            },
            FrameKind::Resume => Self::Resume {
                token: fields.take()?,
            },
            FrameKind::Fault => take_fault(fields)?,
            FrameKind::ResolvePart => take_part(fields)?,
            FrameKind::Rule => Self::Rule {
                number: fields.u32()?,
            },
            FrameKind::Ruled => Self::Ruled {
                id: fields.text("id")?,
            },
        })
    }
}

fn take_again(fields: &mut Fields<'_>) -> Result<Again, FrameFault> {
    let (version, seat, seat_generation) = (fields.u32()?, fields.u32()?, fields.u32()?);
    let _zero: u32 = fields.u32()?;
    Ok(Again {
        version,
        seat,
        seat_generation,
        now_ns: fields.u64()?,
    })
}

/// The value of a number of 16 bits, if it is one.
fn known<T>(number: u16, from_u8: impl Fn(u8) -> Option<T>) -> Option<T> {
    u8::try_from(number).ok().and_then(from_u8)
}

fn take_fault<'a>(fields: &mut Fields<'a>) -> Result<Message<'a>, FrameFault> {
    let code = known(fields.u16()?, FaultCode::from_u8);
    Ok(Message::Fault {
        code: code.ok_or(FrameFault::Value("code"))?,
        text: fields.text("text")?,
    })
}

fn take_part<'a>(fields: &mut Fields<'a>) -> Result<Message<'a>, FrameFault> {
    let [part, _zero] = fields.take()?;
    Ok(Message::ResolvePart {
        part: Part::from_u8(part).ok_or(FrameFault::Value("part"))?,
        resource: fields.text("resource")?,
        name: fields.text("name")?,
    })
}

fn take_ask<'a>(fields: &mut Fields<'a>) -> Result<EnterRequest<'a>, FrameFault> {
    let count = fields.u32()?;
    let [class, direction, prioritized, itself] = fields.take()?;
    if prioritized > 1 {
        return Err(FrameFault::Value("prioritized"));
    }
    if itself > 1 {
        return Err(FrameFault::Value("waits_itself"));
    }
    let wait_at_most_ms = fields.u32()?;
    Ok(EnterRequest {
        count,
        class: Class::from_u8(class).ok_or(FrameFault::Value("class"))?,
        direction: Direction::from_u8(direction).ok_or(FrameFault::Value("direction"))?,
        resource: fields.text("resource")?,
        origin: fields.text("origin")?,
        prioritized: prioritized == 1,
        waits_itself: itself == 1,
        wait_at_most_ms,
        context: fields.text("context")?,
        args: fields.args()?,
    })
}

fn take_answer<'a>(fields: &mut Fields<'a>) -> Result<EnterAnswer<'a>, FrameFault> {
    let [admitted, kind, reason, retry] = fields.take()?;
    if admitted == 1 {
        return Ok(EnterAnswer::Admitted {
            token: fields.take()?,
            waited_ms: fields.u32()?,
        });
    }
    Ok(EnterAnswer::Refused {
        kind: RefusalKind::from_u8(kind).ok_or(FrameFault::Value("kind"))?,
        reason: Reason::from_u8(reason).ok_or(FrameFault::Value("reason"))?,
        retry: retry != 0,
        rule: fields.u32()?,
        retry_after_ms: fields.u32()?,
        value: fields.u32()?,
        limit: fields.u32()?,
        id: fields.text("id")?,
    })
}
