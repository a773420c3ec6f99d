//! A resource, and what is asked of it.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tidegate_abi::board::name_hash;
use tidegate_abi::decision::{Class, Direction};
use tidegate_segment::gate::{Arg, Name, Request};

use crate::current::CurrentSession;
use crate::entry::Entry;
use crate::inner::Inner;
use crate::pending::{PendingEntry, Progress};
use crate::permit::Permit;
use crate::refused::Refused;
use crate::session::{Names, Session};

/// A named piece of work. Make it once and keep it; clones are cheap.
#[derive(Debug, Clone)]
pub struct Resource {
    inner: Arc<Inner>,
    /// Copied out of the inner part, because each decision looks at it.
    current: &'static CurrentSession,
    entry: Arc<Entry>,
}

impl Resource {
    pub(crate) fn new(inner: Arc<Inner>, entry: Arc<Entry>) -> Self {
        let current = inner.current();
        Self {
            inner,
            current,
            entry,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.entry.name()
    }

    /// Asks for one inbound request of normal importance.
    ///
    /// Where a rule lets requests wait (pacing, borrowing), this **sleeps in the calling thread** until the
    /// turn has come, as long as the rules of the resource allow; [`Ask::wait_at_most`] sets a bound, and
    /// [`Resource::enter_async`] leaves the thread to others.
    ///
    /// # Errors
    /// The request is refused: do not do it.
    #[inline]
    pub fn enter(&self) -> Result<Permit, Refused> {
        self.decide(Request::default(), Names::default(), Duration::MAX)
    }

    /// [`Resource::enter`] for tasks: where a rule lets wait, the task waits, and its thread goes on with
    /// others. Decisions themselves take nanoseconds and are made at once.
    ///
    /// The client has no timers. `sleep` makes a future that is ready after a time, such as
    /// `tokio::time::sleep`; one that is ready too early is asked again. A task that is dropped while it waits
    /// puts back what it has taken and counts as refused; its turn in the queue is lost.
    ///
    /// A process without a seat asks the agent, whose answer its thread waits for (50 ms at most); for its turn
    /// the task waits as elsewhere.
    ///
    /// ```no_run
    /// # mod tokio { pub mod time { pub async fn sleep(_time: std::time::Duration) {} } }
    /// # async fn of(orders: tidegate_client::Resource) -> Result<(), tidegate_client::Refused> {
    /// let permit = orders.enter_async(tokio::time::sleep).await?;
    /// # permit.ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The request is refused: do not do it.
    pub async fn enter_async<S, F>(&self, sleep: S) -> Result<Permit, Refused>
    where
        S: Fn(Duration) -> F,
        F: Future<Output = ()>,
    {
        self.ask().enter_async(sleep).await
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
            patience: Duration::MAX,
        }
    }

    #[inline(always)]
    fn decide(
        &self,
        request: Request<'_>,
        names: Names<'_>,
        patience: Duration,
    ) -> Result<Permit, Refused> {
        let session = self.current.get();
        match session.express(&self.entry, &request) {
            Some(Ok(ticket)) => Ok(Permit::ticket(session, ticket)),
            Some(Err(refusal)) => Err(refusal.into()),
            None => self.decide_at_length(&request, names, patience),
        }
    }

    /// The same where that takes more than the express way; sleeps in this thread where a rule lets wait.
    #[inline(never)]
    fn decide_at_length(
        &self,
        request: &Request<'_>,
        names: Names<'_>,
        patience: Duration,
    ) -> Result<Permit, Refused> {
        let session = self.current.get();
        let progress = session.begin(&self.entry, *request, names, patience);
        match progress.sleep_through() {
            Some(answer) => answer.map(|admitted| Permit::of(session, admitted)),
            None => self.decide_late(*request, names, patience),
        }
    }

    /// Tries once more after the client has caught up, and else admits.
    #[cold]
    fn decide_late(
        &self,
        request: Request<'_>,
        names: Names<'_>,
        patience: Duration,
    ) -> Result<Permit, Refused> {
        self.inner.catch_up(&self.entry);
        let session = self.current.get();
        let progress = session.begin(&self.entry, request, names, patience);
        // A slot that is stale still: the one that names without a slot share is asked.
        let overflow = || {
            let progress = session.begin_overflow(&self.entry, request, patience);
            progress.sleep_through()
        };
        match progress.sleep_through().or_else(overflow) {
            Some(answer) => answer.map(|admitted| Permit::of(session, admitted)),
            None => Ok(self.admit_open()),
        }
    }

    /// Asks, and leaves it to the caller to wait.
    pub(crate) fn begin<'a>(
        &self,
        request: Request<'a>,
        names: Names<'a>,
        patience: Duration,
    ) -> Begun<'a> {
        let begin = || {
            let session = self.current.get();
            let progress = session.begin(&self.entry, request, names, patience);
            (session, progress)
        };
        let (mut session, mut progress) = begin();
        if let Progress::Decided(None) = progress {
            self.inner.catch_up(&self.entry);
            (session, progress) = begin();
        }
        if let Progress::Decided(None) = progress {
            session = self.current.get();
            progress = session.begin_overflow(&self.entry, request, patience);
        }
        match progress {
            Progress::Decided(Some(answer)) => {
                Begun::Decided(answer.map(|admitted| Permit::of(session, admitted)))
            }
            Progress::Decided(None) => Begun::Decided(Ok(self.admit_open())),
            Progress::Held(held) => Begun::Waits(Turn {
                resource: self.clone(),
                session,
                request,
                names,
                held,
            }),
        }
    }

    fn admit_open(&self) -> Permit {
        self.current.get().life().count_open();
        Permit::open()
    }
}

/// A request under construction.
#[derive(Debug, Clone, Copy)]
#[must_use = "nothing is asked before `enter`"]
pub struct Ask<'r> {
    resource: &'r Resource,
    request: Request<'r>,
    names: Names<'r>,
    patience: Duration,
}

/// A request that was asked for.
#[expect(
    clippy::large_enum_variant,
    reason = "a box would be an allocation, and decisions make none"
)]
pub(crate) enum Begun<'r> {
    /// And decided.
    Decided(Result<Permit, Refused>),
    /// And has to wait.
    Waits(Turn<'r>),
}

/// A request that waits for its turn.
pub(crate) struct Turn<'r> {
    resource: Resource,
    session: &'static Session,
    request: Request<'r>,
    names: Names<'r>,
    held: PendingEntry<'r>,
}

impl Turn<'_> {
    /// Waits until it is decided, without the thread.
    pub(crate) async fn decided<F>(self, sleep: impl Fn(Duration) -> F) -> Result<Permit, Refused>
    where
        F: Future<Output = ()>,
    {
        let Self {
            resource,
            session,
            request,
            names,
            mut held,
        } = self;
        loop {
            let left = held.left();
            if !left.is_zero() {
                sleep(left).await;
                continue;
            }
            held = match held.resume() {
                Progress::Held(again) => again,
                Progress::Decided(Some(answer)) => {
                    return answer.map(|admitted| Permit::of(session, admitted));
                }
                // Its pages are gone. It has waited: it does not wait on those of the next agent.
                Progress::Decided(None) => {
                    return resource.decide_late(request, names, Duration::ZERO);
                }
            };
        }
    }
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

    /// How long rules may let the request wait, all waits together; where it would be longer, the request is
    /// refused at once. Without this, as long as the rules allow; with zero it never waits.
    ///
    /// A turn that is not waited for is lost to others, as it is when a caller goes away. The agent lets a process
    /// without a seat wait 10 s at most.
    #[inline]
    pub const fn wait_at_most(mut self, time: Duration) -> Self {
        self.patience = time;
        self
    }

    /// Asks. Like [`Resource::enter`], it sleeps in the calling thread where a rule lets wait.
    ///
    /// # Errors
    /// The request is refused: do not do it.
    #[inline]
    pub fn enter(self) -> Result<Permit, Refused> {
        self.resource
            .decide(self.request, self.names, self.patience)
    }

    /// Asks like [`Resource::enter_async`].
    ///
    /// # Errors
    /// The request is refused: do not do it.
    pub async fn enter_async<S, F>(self, sleep: S) -> Result<Permit, Refused>
    where
        S: Fn(Duration) -> F,
        F: Future<Output = ()>,
    {
        let Self {
            resource,
            request,
            names,
            patience,
        } = self;
        match resource.begin(request, names, patience) {
            Begun::Decided(answer) => answer,
            Begun::Waits(turn) => turn.decided(sleep).await,
        }
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
