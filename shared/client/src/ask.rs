//! What is asked of a resource, and the ways to wait for the answer.

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_abi::board::name_hash;
use tidegate_abi::decision::{Class, Direction};
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
use tidegate_segment::gate::{Request, RequestName};

use crate::permit::Permit;
use crate::refused::Refused;
use crate::resource::{Begun, Resource};
use crate::session::Names;
#[cfg(any(tidegate_stub, not(target_os = "linux")))]
use crate::stub::gate::{Request, RequestName};
use tidegate_abi::argument::Arg;

/// A request under construction.
#[derive(Debug, Clone, Copy)]
#[must_use = "nothing is asked before `enter`"]
pub struct Ask<'r> {
    resource: &'r Resource,
    request: Request<'r>,
    names: Names<'r>,
    patience: Duration,
}

impl Resource {
    /// Asks for something else than [`Resource::enter`].
    #[inline]
    pub fn ask(&self) -> Ask<'_> {
        Ask {
            resource: self,
            request: Request::default(),
            names: Names::default(),
            patience: Duration::MAX,
        }
    }

    /// [`Resource::enter`] that never sleeps: where a rule would let the request wait for its turn, it is refused.
    ///
    /// A decision on the pages waits for nobody. A process without a seat asks the agent, which takes a round trip,
    /// and 50 ms where it does not answer; so may the first decision after a fork, or after the agent took the
    /// resource's place away.
    ///
    /// # Errors
    /// The request is refused: do not do it.
    #[inline]
    pub fn try_enter(&self) -> Result<Permit, Refused> {
        self.enter_within(Duration::ZERO)
    }

    /// [`Resource::enter`] with what is to be used instead of the work's result where the request is refused.
    ///
    /// # Errors
    /// The fallback: the request is refused.
    #[inline]
    pub fn enter_or<T>(&self, fallback: T) -> Result<Permit, T> {
        self.enter().map_err(|_refused| fallback)
    }

    /// [`Resource::enter_or`] with a fallback that is made of the refusal.
    ///
    /// # Errors
    /// The fallback: the request is refused.
    #[inline]
    pub fn enter_or_else<T>(&self, fallback: impl FnOnce(Refused) -> T) -> Result<Permit, T> {
        self.enter().map_err(fallback)
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
    /// let permit = orders.enter_async_with(tokio::time::sleep).await?;
    /// # permit.ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The request is refused: do not do it.
    pub async fn enter_async_with<S, F>(&self, sleep: S) -> Result<Permit, Refused>
    where
        S: Fn(Duration) -> F,
        F: Future<Output = ()>,
    {
        self.ask().enter_async_with(sleep).await
    }

    /// [`Resource::enter_async_with`] by tokio's timer. Call it in a runtime whose timer is on.
    ///
    /// # Errors
    /// The request is refused: do not do it.
    #[cfg(feature = "tokio")]
    pub async fn enter_async(&self) -> Result<Permit, Refused> {
        self.ask().enter_async().await
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

    /// Asks. Like [`Resource::enter`], it **may block**: it sleeps in the calling thread where a rule lets wait.
    ///
    /// # Errors
    /// The request is refused: do not do it.
    #[inline]
    pub fn enter(self) -> Result<Permit, Refused> {
        match self.express() {
            Some(answer) => answer,
            None => self
                .resource
                .decide_at_length(&self.request, self.names, self.patience),
        }
    }

    /// Asks like [`Resource::try_enter`].
    ///
    /// # Errors
    /// The request is refused: do not do it.
    #[inline]
    pub fn try_enter(self) -> Result<Permit, Refused> {
        self.wait_at_most(Duration::ZERO).enter()
    }

    /// Asks like [`Resource::enter_async_with`].
    ///
    /// # Errors
    /// The request is refused: do not do it.
    pub async fn enter_async_with<S, F>(self, sleep: S) -> Result<Permit, Refused>
    where
        S: Fn(Duration) -> F,
        F: Future<Output = ()>,
    {
        if let Some(answer) = self.express() {
            return answer;
        }
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

    /// Asks like [`Resource::enter_async`].
    ///
    /// # Errors
    /// The request is refused: do not do it.
    #[cfg(feature = "tokio")]
    pub async fn enter_async(self) -> Result<Permit, Refused> {
        self.enter_async_with(tokio::time::sleep).await
    }

    /// Decides where that takes no more than the express way.
    #[inline]
    pub(crate) fn express(&self) -> Option<Result<Permit, Refused>> {
        self.resource.express_for(&self.request)
    }
}

/// A name as rules look at it; the node of the resource serves for it.
const fn named(name: &str) -> RequestName {
    let hash = if name.is_empty() {
        0
    } else {
        name_hash(name.as_bytes())
    };
    RequestName { hash, node: None }
}
