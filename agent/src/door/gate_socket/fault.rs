//! What is wrong with a frame, in the words that its sender gets.

use std::borrow::Cow;
use std::time::Duration;

use tidegate_abi::decision::{Class, Direction, Outcome};
use tidegate_abi::message::{
    ARGS_MAX, FRAME_MAX, FaultCode, Frame, FrameFault, Message, Part, VALUES_MAX,
};
use tidegate_abi::{NameFault, VERSION};
use tidegate_limits::window::COUNT_MAX;

use crate::host::bounds::LISTENERS_OF_CONNECTION;

/// Where a sender finds how a frame is to look.
const LAYOUTS: &str = "shared/PROTOCOL.md has the fields of each";

/// The numbers that a field of a frame may hold, with what they stand for.
fn numbers(field: &str) -> String {
    match field {
        "class" => named(|number| Class::from_u8(number).map(Class::name)),
        "direction" => named(|number| Direction::from_u8(number).map(Direction::name)),
        "outcome" => named(|number| Outcome::from_u8(number).map(Outcome::name)),
        "part" => named(|number| Part::from_u8(number).map(Part::name)),
        _flag => "0 and 1".to_owned(),
    }
}

fn named(name: impl Fn(u8) -> Option<&'static str>) -> String {
    let all = (0..=u8::MAX).filter_map(|number| Some(format!("{number} ({})", name(number)?)));
    all.collect::<Vec<_>>().join(", ")
}

/// A fault that is sent back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    code: FaultCode,
    text: Cow<'static, str>,
}

impl Fault {
    fn new(code: FaultCode, text: impl Into<Cow<'static, str>>) -> Self {
        let text = text.into();
        Self { code, text }
    }

    /// The frame that says it.
    pub(super) fn frame(&self) -> Frame {
        let (code, text) = (self.code, self.text.as_ref());
        Message::Fault { code, text }.encode()
    }

    /// What it says.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn oversized() -> Self {
        Self::new(
            FaultCode::Frame,
            format!("the frame is longer than {FRAME_MAX} bytes; no frame is"),
        )
    }

    /// A frame of so many bytes that cannot be read.
    pub(super) fn unreadable(fault: FrameFault, bytes: usize) -> Self {
        match fault {
            FrameFault::Short => Self::new(
                FaultCode::Frame,
                format!(
                    "the frame of {bytes} bytes is shorter than its length or its fields say; {LAYOUTS}"
                ),
            ),
            FrameFault::Long => Self::new(
                FaultCode::Frame,
                format!(
                    "the frame of {bytes} bytes is longer than its length or its fields say; {LAYOUTS}"
                ),
            ),
            FrameFault::Kind(kind) => Self::new(
                FaultCode::Frame,
                format!(
                    "there is no frame of kind {kind}; a service sends 1 (hello), 3 (resolve), 5 (enter), 7 (exit), \
                     10 (resolve_part), 11 (rule), 13 (watch), 16 (resume), 17 (again)"
                ),
            ),
            FrameFault::Value("args") => Self::new(
                FaultCode::Value,
                format!(
                    "args are more than can be; allowed are {ARGS_MAX} arguments with {VALUES_MAX} values together"
                ),
            ),
            FrameFault::Value(field) => Self::new(
                FaultCode::Value,
                format!(
                    "{field} holds a number that is none of its values; allowed are {}",
                    numbers(field)
                ),
            ),
            FrameFault::Text(field) => Self::new(
                FaultCode::Value,
                format!(
                    "{field} is not UTF-8 or longer than 255 bytes; allowed is UTF-8 text of at most 255 bytes"
                ),
            ),
        }
    }

    pub(super) fn no_pages() -> Self {
        Self::new(
            FaultCode::Value,
            "again came without its pages; send two descriptors with it, board and ledger, or hello",
        )
    }

    pub(super) fn version(theirs: u32) -> Self {
        Self::new(
            FaultCode::Version,
            format!(
                "version {theirs} is not spoken here, version {VERSION} is; upgrade the older of client and agent"
            ),
        )
    }

    pub(super) fn flags(flags: u32) -> Self {
        Self::new(
            FaultCode::Value,
            format!("flags = {flags:#x}; allowed are 0 and 1 (map the pages)"),
        )
    }

    pub(super) fn before_hello() -> Self {
        Self::new(
            FaultCode::Order,
            "the first frame of a connection is a hello; this one is not",
        )
    }

    pub(super) fn second_hello() -> Self {
        Self::new(
            FaultCode::Order,
            "a second hello; a connection begins once, connect anew instead",
        )
    }

    pub(super) fn not_a_question() -> Self {
        Self::new(
            FaultCode::Order,
            "this frame is the agent's to send; a service sends hello, resolve, resolve_part, rule, enter, exit, watch, resume",
        )
    }

    pub(super) fn silent(deadline: Duration) -> Self {
        let deadline = humantime::format_duration(deadline).to_string();
        Self::new(
            FaultCode::Order,
            format!("no hello came within {deadline}; the connection ends"),
        )
    }

    pub(super) fn name(field: &str, fault: NameFault) -> Self {
        Self::new(FaultCode::Value, format!("{field} {}", fault.text()))
    }

    pub(super) fn count(count: u32) -> Self {
        Self::new(
            FaultCode::Value,
            format!("count = {count}; allowed is 1 to {COUNT_MAX}"),
        )
    }

    pub(super) fn no_permit() -> Self {
        Self::new(
            FaultCode::Permit,
            "this connection holds no such permit; it was given back already, or another holds it",
        )
    }

    pub(super) fn no_turn() -> Self {
        Self::new(
            FaultCode::Permit,
            "this connection holds no such request; it was decided or given up already, or its caller came too late",
        )
    }

    pub(super) fn too_many_listeners() -> Self {
        Self::new(
            FaultCode::Busy,
            format!(
                "{LISTENERS_OF_CONNECTION} listeners are watched for this connection, more are not"
            ),
        )
    }

    pub(super) fn busy(why: &dyn std::fmt::Display) -> Self {
        Self::new(FaultCode::Busy, why.to_string())
    }

    pub(super) fn stale() -> Self {
        Self::new(
            FaultCode::Busy,
            "the resource changed while the agent decided; ask again",
        )
    }
}
