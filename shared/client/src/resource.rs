//! A resource, and what is asked of it.

use std::num::NonZeroU32;
use std::sync::Arc;

use tidegate_abi::board::name_hash;
use tidegate_abi::decision::{Class, Direction};
use tidegate_segment::gate::{Arg, Name, Request};

use crate::client::Inner;
use crate::entry::Entry;
use crate::permit::Permit;
use crate::refused::Refused;
use crate::session::Names;

/// A named piece of work. Make it once and keep it; clones are cheap.
#[derive(Debug, Clone)]
pub struct Resource {
    inner: Arc<Inner>,
    entry: Arc<Entry>,
}

impl Resource {
    pub(crate) fn new(inner: Arc<Inner>, entry: Arc<Entry>) -> Self {
        Self { inner, entry }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.entry.name()
    }

    /// Asks for one inbound request of normal importance.
    ///
    /// # Errors
    /// The request is refused: do not do it.
    #[inline]
    pub fn enter(&self) -> Result<Permit, Refused> {
        self.decide(Request::default(), Names::default())
    }

    /// Asks for something else than [`Resource::enter`].
    #[inline]
    pub fn ask(&self) -> Ask<'_> {
        Ask {
            resource: self,
            request: Request::default(),
            names: Names {
                origin: "",
                context: "",
            },
        }
    }

    #[inline]
    fn decide(&self, request: Request<'_>, names: Names<'_>) -> Result<Permit, Refused> {
        match self.inner.session().enter(&self.entry, request, names) {
            Some(verdict) => verdict,
            None => self.decide_late(request, names),
        }
    }

    /// Tries once more after the client has caught up, and else admits.
    #[cold]
    fn decide_late(&self, request: Request<'_>, names: Names<'_>) -> Result<Permit, Refused> {
        self.inner.catch_up(&self.entry);
        let session = self.inner.session();
        let verdict = session.enter(&self.entry, request, names);
        verdict.unwrap_or_else(|| {
            session.life().count_open();
            Ok(Permit::open())
        })
    }
}

/// A request under construction.
#[derive(Debug, Clone, Copy)]
#[must_use = "nothing is asked before `enter`"]
pub struct Ask<'r> {
    resource: &'r Resource,
    request: Request<'r>,
    names: Names<'r>,
}

impl<'r> Ask<'r> {
    /// How many requests at once; they count as one in flight. 1 by default.
    #[inline]
    pub const fn count(mut self, count: NonZeroU32) -> Self {
        self.request.count = count.get();
        self
    }

    /// How important the request is. [`Class::Normal`] by default.
    #[inline]
    pub const fn class(mut self, class: Class) -> Self {
        self.request.class = class;
        self
    }

    /// Which way the work goes. [`Direction::In`] by default; scopes look at these alone.
    #[inline]
    pub const fn direction(mut self, direction: Direction) -> Self {
        self.request.direction = direction;
        self
    }

    /// Who calls, for rules that look at the origin; empty if unknown.
    #[inline]
    pub const fn origin(mut self, name: &'r str) -> Self {
        self.request.origin = named(name);
        self.names.origin = name;
        self
    }

    /// In which context the work runs, for chain rules; empty by default.
    #[inline]
    pub const fn context(mut self, name: &'r str) -> Self {
        self.request.context = named(name);
        self.names.context = name;
        self
    }

    /// The arguments, for hot-parameter rules, each hashed with its type by [`crate::argument`]. Give at
    /// most 16 with 64 values together: a process without a seat tells the agent no more.
    #[inline]
    pub const fn args(mut self, args: &'r [Arg<'r>]) -> Self {
        self.request.args = args;
        self
    }

    /// Whether the request may borrow from the next half second where a QPS rule is full.
    #[inline]
    pub const fn prioritized(mut self, prioritized: bool) -> Self {
        self.request.prioritized = prioritized;
        self
    }

    /// Asks.
    ///
    /// # Errors
    /// The request is refused: do not do it.
    #[inline]
    pub fn enter(self) -> Result<Permit, Refused> {
        self.resource.decide(self.request, self.names)
    }
}

/// A name as rules look at it; the node of the resource serves for it.
const fn named(name: &str) -> Name {
    let hash = if name.is_empty() {
        0
    } else {
        name_hash(name.as_bytes())
    };
    Name { hash, node: None }
}
