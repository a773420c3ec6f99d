//! A resource, and how it is decided.

use std::sync::Arc;
use std::time::Duration;

use tidegate_abi::decision::Direction;
use tidegate_segment::board::Slot;
use tidegate_segment::gate::{PlainRequest, Request};

use crate::admitted::Admitted;
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

    /// Asks for one inbound request of normal importance. **May block.**
    ///
    /// Where a rule lets requests wait (pacing, borrowing), the calling thread sleeps until the turn has come, as long
    /// as the rules of the resource allow. [`Resource::try_enter`] never waits for a turn,
    /// [`Ask::wait_at_most`](crate::Ask::wait_at_most) sets a bound, and
    /// [`Resource::enter_async_with`] leaves the thread to others.
    ///
    /// # Errors
    /// The request is refused: do not do it.
    #[inline(always)]
    pub fn enter(&self) -> Result<Permit, Refused> {
        self.enter_within(Duration::MAX)
    }

    /// [`Resource::enter`] for a caller who waits no longer than `patience`.
    #[inline(always)]
    pub(crate) fn enter_within(&self, patience: Duration) -> Result<Permit, Refused> {
        let plain = |slot| {
            let direction = Direction::In;
            Some(PlainRequest { slot, direction })
        };
        match self.express(plain) {
            Some(answer) => answer,
            None => self.enter_at_length(patience),
        }
    }

    /// Decides where that takes no more than the express way.
    #[inline(always)]
    pub(crate) fn express_for(&self, request: &Request<'_>) -> Option<Result<Permit, Refused>> {
        self.express(|slot| PlainRequest::of(slot, request))
    }

    /// Decides where that takes no more than the express way, for the request that `plain` makes of a slot.
    #[inline(always)]
    fn express(
        &self,
        plain: impl FnOnce(Slot) -> Option<PlainRequest>,
    ) -> Option<Result<Permit, Refused>> {
        let session = self.current.get();
        match session.express(&self.entry, plain)? {
            Ok(ticket) => Some(Ok(Permit::ticket(session, ticket))),
            Err(refusal) => Some(Err(self.refused(refusal.into()))),
        }
    }

    #[inline(never)]
    fn enter_at_length(&self, patience: Duration) -> Result<Permit, Refused> {
        self.decide_at_length(&Request::PLAIN, Names::NONE, patience)
    }

    /// Decides after [`Resource::express`] gave no answer, where that takes little more.
    #[inline]
    fn express_closely(&self, request: &Request<'_>) -> Option<Result<Permit, Refused>> {
        let session = self.current.get();
        match session.express_closely(&self.entry, request)? {
            Ok(ticket) => Some(Ok(Permit::ticket(session, ticket))),
            Err(refusal) => Some(Err(self.refused(refusal.into()))),
        }
    }

    /// A refusal on its way to the caller.
    #[inline(always)]
    fn refused(&self, refused: Refused) -> Refused {
        self.inner.observing().refused(self.name(), &refused);
        refused
    }

    /// What a session admitted or refused, on its way to the caller.
    fn answer(
        &self,
        session: &'static Session,
        answer: Result<Admitted, Refused>,
    ) -> Result<Permit, Refused> {
        match answer {
            Ok(admitted) => Ok(Permit::of(session, admitted)),
            Err(refused) => Err(self.refused(refused)),
        }
    }

    /// Decides where that takes more than the express way; sleeps in this thread where a rule lets wait.
    #[inline(never)]
    pub(crate) fn decide_at_length(
        &self,
        request: &Request<'_>,
        names: Names<'_>,
        patience: Duration,
    ) -> Result<Permit, Refused> {
        match self.express_closely(request) {
            Some(answer) => answer,
            None => self.decide_by_rules(request, names, patience),
        }
    }

    /// The same by the rules of the table. Apart, so that the other needs no room for all that a walk may hold.
    #[inline(never)]
    fn decide_by_rules(
        &self,
        request: &Request<'_>,
        names: Names<'_>,
        patience: Duration,
    ) -> Result<Permit, Refused> {
        let session = self.current.get();
        let progress = session.begin(&self.entry, *request, names, patience);
        match progress.sleep_through() {
            Some(answer) => self.answer(session, answer),
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
            Some(answer) => self.answer(session, answer),
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
        if let Some(answer) = self.express_closely(&request) {
            return Begun::Decided(answer);
        }
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
            Progress::Decided(Some(answer)) => Begun::Decided(self.answer(session, answer)),
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
        self.inner.observing().admitted_open(self.name());
        Permit::open()
    }
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
                    return resource.answer(session, answer);
                }
                // Its pages are gone. It has waited: it does not wait on those of the next agent.
                Progress::Decided(None) => {
                    return resource.decide_late(request, names, Duration::ZERO);
                }
            };
        }
    }
}
