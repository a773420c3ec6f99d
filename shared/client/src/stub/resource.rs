//! A resource that admits everything.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use super::gate::Request;
use super::inner::Inner;
use super::permit::Permit;
use super::session::Names;
use crate::refused::Refused;

/// A named piece of work. Make it once and keep it; clones are cheap.
#[derive(Debug, Clone)]
pub struct Resource {
    inner: Arc<Inner>,
    name: Arc<str>,
}

impl Resource {
    pub(crate) fn new(inner: Arc<Inner>, name: &str) -> Self {
        Self {
            inner,
            name: name.into(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Asks for one inbound request of normal importance. On Linux it **may block**, see [`Resource::try_enter`].
    ///
    /// # Errors
    /// The request is refused: do not do it. On this system none is.
    pub fn enter(&self) -> Result<Permit, Refused> {
        self.enter_within(Duration::MAX)
    }

    #[expect(clippy::unnecessary_wraps, reason = "on Linux requests are refused")]
    pub(crate) fn enter_within(&self, _patience: Duration) -> Result<Permit, Refused> {
        self.inner.admit_open(&self.name);
        Ok(Permit::open())
    }

    pub(crate) fn express_for(&self, _request: &Request<'_>) -> Option<Result<Permit, Refused>> {
        Some(self.enter())
    }

    pub(crate) fn decide_at_length(
        &self,
        _request: &Request<'_>,
        _names: Names<'_>,
        patience: Duration,
    ) -> Result<Permit, Refused> {
        self.enter_within(patience)
    }

    pub(crate) fn begin<'a>(
        &self,
        _request: Request<'a>,
        _names: Names<'a>,
        patience: Duration,
    ) -> Begun<'a> {
        Begun::Decided(self.enter_within(patience))
    }
}

/// A request that was asked for.
pub(crate) enum Begun<'r> {
    /// And decided.
    Decided(Result<Permit, Refused>),
    /// And has to wait: on Linux.
    Waits(Turn<'r>),
}

/// A request that waits for its turn.
pub(crate) struct Turn<'r>(Infallible, PhantomData<&'r ()>);

impl Turn<'_> {
    pub(crate) async fn decided<F>(self, _sleep: impl Fn(Duration) -> F) -> Result<Permit, Refused>
    where
        F: Future<Output = ()>,
    {
        match self.0 {}
    }
}
