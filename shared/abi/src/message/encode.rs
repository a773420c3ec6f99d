//! Messages as frames.

use super::{
    Again, EnterAnswer, EnterRequest, FRAME_MAX, FrameKind, HEADER, Message, Part, Welcome,
};
use crate::NAME_MAX;

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
        let longest = text.len().min(NAME_MAX);
        let text = (0..=longest).rev().find_map(|end| text.get(..end));
        let text = text.unwrap_or("");
        self.put(&u16::try_from(text.len()).unwrap_or(0).to_le_bytes());
        self.put(text.as_bytes());
    }

    fn seal(&mut self, kind: FrameKind) {
        let length = u32::try_from(self.length).unwrap_or(0);
        let [k0, k1] = u16::from(kind as u8).to_le_bytes();
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

    fn put_fields(&self, frame: &mut Frame) -> FrameKind {
        match *self {
            Self::Hello {
                version,
                flags,
                now_ns,
            } => put_hello(frame, version, flags, now_ns),
            Self::Again(again) => put_again(frame, again),
            Self::Welcome(welcome) => {
                put_welcome(frame, welcome);
                FrameKind::Welcome
            }
            Self::Resolve { name } => {
                frame.put_text(name);
                FrameKind::Resolve
            }
            Self::Resolved {
                slot,
                generation,
                overflow,
            } => put_resolved(frame, slot, generation, overflow),
            Self::Enter(ask) => {
                put_ask(frame, ask);
                FrameKind::Enter
            }
            Self::Verdict(answer) => {
                put_answer(frame, answer);
                FrameKind::Verdict
            }
            Self::Exit { token, outcome } => {
                put_all(frame, [&token, &[outcome as u8, 0]], FrameKind::Exit)
            }
            Self::Exited => FrameKind::Exited,
            Self::Watch { cookie } => put_all(frame, [&cookie.to_le_bytes()], FrameKind::Watch),
            Self::Watched => FrameKind::Watched,
            Self::Held { token, wait_us } => {
                put_all(frame, [&token, &wait_us.to_le_bytes()], FrameKind::Held)
            }
            Self::Resume { token } => put_all(frame, [&token], FrameKind::Resume),
            Self::Fault { code, text } => {
                frame.put(&u16::from(code as u8).to_le_bytes());
                frame.put_text(text);
                FrameKind::Fault
            }
            Self::ResolvePart {
                part,
                resource,
                name,
            } => put_part(frame, part, [resource, name]),
            Self::Rule { number } => put_all(frame, [&number.to_le_bytes()], FrameKind::Rule),
            Self::Ruled { id } => {
                frame.put_text(id);
                FrameKind::Ruled
            }
        }
    }
}

fn put_all<const N: usize>(frame: &mut Frame, fields: [&[u8]; N], kind: FrameKind) -> FrameKind {
    for field in fields {
        frame.put(field);
    }
    kind
}

fn put_part(frame: &mut Frame, part: Part, names: [&str; 2]) -> FrameKind {
    frame.put(&[part as u8, 0]);
    for name in names {
        frame.put_text(name);
    }
    FrameKind::ResolvePart
}

fn put_hello(frame: &mut Frame, version: u32, flags: u32, now_ns: u64) -> FrameKind {
    frame.put(&version.to_le_bytes());
    frame.put(&flags.to_le_bytes());
    frame.put(&now_ns.to_le_bytes());
    FrameKind::Hello
}

fn put_again(frame: &mut Frame, again: Again) -> FrameKind {
    for part in [again.version, again.seat, again.seat_generation, 0] {
        frame.put(&part.to_le_bytes());
    }
    frame.put(&again.now_ns.to_le_bytes());
    FrameKind::Again
}

fn put_resolved(frame: &mut Frame, slot: u32, generation: u16, overflow: u16) -> FrameKind {
    frame.put(&slot.to_le_bytes());
    frame.put(&generation.to_le_bytes());
    frame.put(&overflow.to_le_bytes());
    FrameKind::Resolved
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

fn put_ask(frame: &mut Frame, ask: EnterRequest<'_>) {
    frame.put(&ask.count.to_le_bytes());
    let [prioritized, itself] = [ask.prioritized, ask.waits_itself].map(u8::from);
    frame.put(&[ask.class as u8, ask.direction as u8, prioritized, itself]);
    frame.put(&ask.wait_at_most_ms.to_le_bytes());
    frame.put_text(ask.resource);
    frame.put_text(ask.origin);
    frame.put_text(ask.context);
    frame.put(ask.args.bytes());
}

fn put_answer(frame: &mut Frame, answer: EnterAnswer<'_>) {
    match answer {
        EnterAnswer::Admitted { token, waited_ms } => {
            frame.put(&[1, 0, 0, 0]);
            frame.put(&token);
            frame.put(&waited_ms.to_le_bytes());
        }
        EnterAnswer::Refused {
            kind,
            reason,
            retry,
            rule,
            retry_after_ms,
            value,
            limit,
            id,
        } => {
            frame.put(&[0, kind as u8, reason as u8, u8::from(retry)]);
            for number in [rule, retry_after_ms, value, limit] {
                frame.put(&number.to_le_bytes());
            }
            frame.put_text(id);
        }
    }
}
