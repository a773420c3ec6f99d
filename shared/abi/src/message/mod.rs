//! Socket messages: one SEQPACKET packet is one frame.
//!
//! A frame is little-endian: kind (u16), zero (u16), length of the whole frame (u32), then the
//! fields of that kind in the order of the struct. Text is a length (u16) and its bytes. A frame
//! that is longer or shorter than its fields say is refused.

mod args;
mod decode;
mod encode;

pub use args::{ARGS_MAX, Args, ArgsBuffer, VALUES_MAX};
pub use encode::Frame;

use crate::decision::{Class, Direction, Outcome, Reason, RefusalKind};
use crate::list::wire_enum;

/// The longest frame, bytes.
pub const FRAME_MAX: usize = 1344;
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
    /// Text is not UTF-8 or longer than [`crate::NAME_MAX`].
    Text(&'static str),
}

wire_enum! {
    /// Which message a frame holds.
    FrameKind {
        /// Service: first frame of a connection.
        Hello = 1, "hello";
        /// Agent: answers hello; descriptors may come with it.
        Welcome = 2, "welcome";
        /// Service: asks for the slot of a resource.
        Resolve = 3, "resolve";
        /// Agent: answers resolve.
        Resolved = 4, "resolved";
        /// Service: asks for a permit that the agent holds.
        Enter = 5, "enter";
        /// Agent: answers enter, or resume.
        Verdict = 6, "verdict";
        /// Service: gives a permit back.
        Exit = 7, "exit";
        /// Agent: answers exit.
        Exited = 8, "exited";
        /// Agent: something was wrong with the last frame.
        Fault = 9, "fault";
        /// Service: asks for the slot of a resource's node for an origin or in a context.
        ResolvePart = 10, "resolve_part";
        /// Service: asks for the id of a rule.
        Rule = 11, "rule";
        /// Agent: answers rule.
        Ruled = 12, "ruled";
        /// Service: names a socket at which its requests come in.
        Watch = 13, "watch";
        /// Agent: answers watch.
        Watched = 14, "watched";
        /// Agent: answers an enter or resume whose caller waits by itself.
        Held = 15, "held";
        /// Service: its turn has come, and it wants to go on.
        Resume = 16, "resume";
        /// Service: first frame of a connection in the place of hello, of one that still maps its pages; they come with it.
        Again = 17, "again";
    }
}

wire_enum! {
    /// Which part of a resource a node counts.
    Part {
        /// The requests of an origin.
        Origin = 1, "origin";
        /// The requests in a context.
        Context = 2, "context";
    }
}

wire_enum! {
    /// Why the agent answered with a fault.
    FaultCode {
        /// The frame could not be read.
        Frame = 1, "frame";
        /// The version is not the agent's.
        Version = 2, "version";
        /// The frame came at the wrong time: before hello, or a second hello.
        Order = 3, "order";
        /// A name, count or other value is not allowed.
        Value = 4, "value";
        /// No such permit, or not the caller's.
        Permit = 5, "permit";
        /// The agent cannot serve it now (too many clients).
        Busy = 6, "busy";
    }
}

/// What a service asks for, in [`Message::Enter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnterRequest<'a> {
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
    /// May borrow from the next half second where a QPS rule is full.
    pub prioritized: bool,
    /// In which context the work runs, empty if in none.
    pub context: &'a str,
    /// Arguments that hot-parameter rules look at.
    pub args: Args<'a>,
    /// How long rules may let the request wait, all waits together, ms. It is refused at once where it would
    /// be longer, or longer than the agent holds anybody.
    pub wait_at_most_ms: u32,
    /// The caller waits by itself: it is answered [`Message::Held`] at once and comes back with
    /// [`Message::Resume`]. Else the agent holds its answer, and all of the connection with it.
    pub waits_itself: bool,
}

impl<'a> EnterRequest<'a> {
    /// One inbound request of normal importance, of nobody known.
    pub const fn of(resource: &'a str) -> Self {
        Self {
            resource,
            origin: "",
            count: 1,
            class: Class::Normal,
            direction: Direction::In,
            prioritized: false,
            context: "",
            args: Args::NONE,
            wait_at_most_ms: u32::MAX,
            waits_itself: false,
        }
    }
}

/// The answer to [`Message::Enter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnterAnswer<'a> {
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
        /// The value measured.
        value: u32,
        /// The limit it was held against.
        limit: u32,
        /// Id of the rule, empty where no rule refused.
        id: &'a str,
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

/// What a service says that was seated before, in [`Message::Again`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Again {
    /// [`crate::VERSION`].
    pub version: u32,
    /// The seat it had.
    pub seat: u32,
    /// Generation of that seat.
    pub seat_generation: u32,
    /// The service's `CLOCK_MONOTONIC`, ns.
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
    /// First frame of a service that was seated by the agent's life before and still maps its pages: board and
    /// ledger descriptors come with it, in this order. It wants to map the new board.
    Again(Again),
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
    Enter(EnterRequest<'a>),
    /// The answer.
    Verdict(EnterAnswer<'a>),
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
    /// Asks for the slot of a resource's node for an origin or in a context; [`Message::Resolved`]
    /// answers. Overflow says that there is none, and the slot is the resource's own, which serves.
    ResolvePart {
        /// Which.
        part: Part,
        /// Name of the resource.
        resource: &'a str,
        /// The origin or context.
        name: &'a str,
    },
    /// Asks for the id of a rule.
    Rule {
        /// Its number in the set in force.
        number: u32,
    },
    /// The id, empty if there is no such rule.
    Ruled {
        /// The id, cut where it is longer than a name.
        id: &'a str,
    },
    /// Names a listening TCP socket of the service. From the next tick on, until the connection ends,
    /// what waits in its accept queue counts as held by the scope.
    Watch {
        /// `SO_COOKIE` of the socket.
        cookie: u64,
    },
    /// The socket will be looked for.
    Watched,
    /// The turn of a request has not come yet.
    Held {
        /// Names the request, and its permit if it gets one. [`Message::Exit`] gives it up.
        token: [u8; TOKEN],
        /// How long to wait before [`Message::Resume`], µs.
        wait_us: u32,
    },
    /// Goes on with a request that was held; [`Message::Verdict`] or [`Message::Held`] answers.
    Resume {
        /// The request.
        token: [u8; TOKEN],
    },
}

/// Flag of [`Message::Hello`]: the service wants to map the pages.
pub const HELLO_MAP: u32 = 1;

#[cfg(test)]
mod tests;
