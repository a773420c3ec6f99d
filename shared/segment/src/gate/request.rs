//! What is asked for, and what an admitted request carries until it is given back.

pub use tidegate_abi::argument::Arg;
use tidegate_abi::decision::{Class, Direction};

use crate::board::Slot;
use crate::ledger::ValueKey;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// How many requests at once; they count as one in flight.
    pub count: u32,
    /// Which way the work goes.
    pub direction: Direction,
    /// How important it is.
    pub class: Class,
    /// May borrow from the next half second where a QPS rule is full.
    pub prioritized: bool,
    /// Who calls.
    pub origin: RequestName,
    /// In which context.
    pub context: RequestName,
    /// Arguments that hot-parameter rules look at.
    pub args: &'a [Arg<'a>],
    /// Connections that wait at the caller's own listeners, where it has just looked. A scope takes
    /// them for its accept queue in the place of what the last tick saw.
    pub waiting: Option<u32>,
}

/// An origin or context: its hash, and the node of the resource with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestName {
    /// [`tidegate_abi::board::name_hash`] of the name; 0 = empty.
    pub hash: u64,
    /// The node, where rules need one and it was resolved; the resource's own node serves otherwise.
    pub node: Option<Slot>,
}

impl Request<'_> {
    /// One inbound request of normal importance.
    pub const PLAIN: Self = Self {
        count: 1,
        direction: Direction::In,
        class: Class::Normal,
        prioritized: false,
        origin: RequestName::EMPTY,
        context: RequestName::EMPTY,
        args: &[],
        waiting: None,
    };
}

impl RequestName {
    /// No name.
    pub const EMPTY: Self = Self {
        hash: 0,
        node: None,
    };
}

impl Default for Request<'_> {
    /// [`Request::PLAIN`].
    fn default() -> Self {
        Self::PLAIN
    }
}

/// Who asks, as a scope in overload tells callers apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassAndOrigin {
    /// How important the request is.
    pub class: Class,
    /// [`tidegate_abi::board::name_hash`] of who calls; 0 = unknown.
    pub origin: u64,
}

impl ClassAndOrigin {
    /// The caller of a request.
    #[inline]
    pub const fn of(request: &Request<'_>) -> Self {
        Self {
            class: request.class,
            origin: request.origin.hash,
        }
    }
}

/// Most breakers of one resource.
pub const BREAKERS: usize = 4;
/// Most values with a concurrency limit that one request holds.
pub const VALUES: usize = 8;

/// An admitted request. It is given back with [`super::Gate::exit`], on any thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "an admitted request stays in flight until it is given back with `Gate::exit`"]
pub struct Pass {
    /// The resource.
    pub slot: Slot,
    /// When it came, monotonic ns.
    pub entered_ns: u64,
    /// How long it was told to wait, ns.
    pub waited_ns: u64,
    /// Which way it goes.
    pub direction: Direction,
    /// How many requests it stands for.
    pub count: u32,
    /// What else it holds; rules of the table were asked where there is anything.
    pub(super) kept: PassExtras,
}

/// What a request holds besides its place in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PassExtras {
    /// Nothing.
    Nothing,
    /// One breaker that was closed.
    Breaker(PassedBreaker),
    /// What a walk through the rules took.
    Walked(PassHoldings),
}

impl Pass {
    /// One request on one resource that holds nothing but its place in flight.
    #[inline]
    pub const fn plain(slot: Slot, entered_ns: u64, direction: Direction) -> Self {
        Self {
            slot,
            entered_ns,
            waited_ns: 0,
            direction,
            count: 1,
            kept: PassExtras::Nothing,
        }
    }

    /// All that it holds besides its place.
    pub(super) const fn held(&self) -> PassHoldings {
        match self.kept {
            PassExtras::Nothing => PassHoldings::NOTHING,
            PassExtras::Breaker(passed) => PassHoldings {
                breakers: [Some(passed), None, None, None],
                ..PassHoldings::NOTHING
            },
            PassExtras::Walked(held) => held,
        }
    }
}

/// What else a request holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PassHoldings {
    /// Node of the resource with its origin.
    pub(super) origin: Option<Slot>,
    /// Node of the resource in its context.
    pub(super) context: Option<Slot>,
    /// Breakers it passed.
    pub(super) breakers: [Option<PassedBreaker>; BREAKERS],
    /// Values it counts for.
    pub(super) values: [Option<ValueKey>; VALUES],
}

impl PassHoldings {
    /// Nothing.
    pub(super) const NOTHING: Self = Self {
        origin: None,
        context: None,
        breakers: [None; BREAKERS],
        values: [None; VALUES],
    };
}

/// A breaker that a request passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PassedBreaker {
    /// Line of the breaker's state.
    pub(super) state: u32,
    /// Generation in which it was passed.
    pub(super) generation: u16,
    /// Whether as the probe.
    pub(super) probe: bool,
}

/// Puts a value into the first free place; `false` if there is none.
pub(super) fn remember<T>(places: &mut [Option<T>], value: T) -> bool {
    match places.iter_mut().find(|place| place.is_none()) {
        Some(place) => {
            *place = Some(value);
            true
        }
        None => false,
    }
}
