//! Work that runs where it is admitted, and tells how it ended by itself.

use std::error::Error;
use std::fmt;
use std::thread;
use std::time::Duration;

use tidegate_abi::decision::Outcome;

use crate::ask::Ask;
use crate::permit::Permit;
use crate::refused::Refused;
use crate::resource::Resource;

/// Why work that was asked for has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError<E> {
    /// It was refused, and not done.
    Refused(Refused),
    /// It was done, and failed.
    Failed(E),
}

impl<E> RunError<E> {
    /// The refusal, if it was one.
    pub const fn refused(&self) -> Option<&Refused> {
        match self {
            Self::Refused(refused) => Some(refused),
            Self::Failed(_) => None,
        }
    }
}

impl<E> From<Refused> for RunError<E> {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl<E: fmt::Display> fmt::Display for RunError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => refused.fmt(f),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl<E: Error + 'static> Error for RunError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused(_) => None,
            // It speaks for itself already.
            Self::Failed(error) => error.source(),
        }
    }
}

impl Resource {
    /// Does work if it is admitted, and records how it ended: `Ok` as a success, `Err` and a panic as a failure.
    /// **May block** like [`Resource::enter`].
    ///
    /// ```no_run
    /// # use tidegate_client::{Resource, RunError};
    /// # fn load() -> Result<String, std::io::Error> { Ok(String::new()) }
    /// # fn of(orders: Resource) -> Result<String, RunError<std::io::Error>> {
    /// let text = orders.run(|| {
    ///     let text = load()?; // a failure that a breaker sees
    ///     Ok(text.to_uppercase())
    /// })?;
    /// # Ok(text)
    /// # }
    /// ```
    ///
    /// # Errors
    /// The refusal, or the failure of the work.
    #[inline]
    pub fn run<T, E>(&self, work: impl FnOnce() -> Result<T, E>) -> Result<T, RunError<E>> {
        let permit = self.enter()?;
        run_in(permit, work)
    }

    /// [`Resource::run`] for tasks, which wait as in [`Resource::enter_async_with`]. A task that is dropped before the
    /// work is over counts as ignored: its caller went away.
    ///
    /// # Errors
    /// The refusal, or the failure of the work.
    pub async fn run_async_with<S, Z, T, E>(
        &self,
        sleep: S,
        work: impl AsyncFnOnce() -> Result<T, E>,
    ) -> Result<T, RunError<E>>
    where
        S: Fn(Duration) -> Z,
        Z: Future<Output = ()>,
    {
        self.ask().run_async_with(sleep, work).await
    }

    /// [`Resource::run_async_with`] by tokio's timer.
    ///
    /// # Errors
    /// The refusal, or the failure of the work.
    #[cfg(feature = "tokio")]
    pub async fn run_async<T, E>(
        &self,
        work: impl AsyncFnOnce() -> Result<T, E>,
    ) -> Result<T, RunError<E>> {
        self.ask().run_async(work).await
    }
}

impl Ask<'_> {
    /// [`Resource::run`] for what is asked.
    ///
    /// # Errors
    /// The refusal, or the failure of the work.
    #[inline]
    pub fn run<T, E>(self, work: impl FnOnce() -> Result<T, E>) -> Result<T, RunError<E>> {
        let permit = self.enter()?;
        run_in(permit, work)
    }

    /// [`Resource::run_async_with`] for what is asked.
    ///
    /// # Errors
    /// The refusal, or the failure of the work.
    pub async fn run_async_with<S, Z, T, E>(
        self,
        sleep: S,
        work: impl AsyncFnOnce() -> Result<T, E>,
    ) -> Result<T, RunError<E>>
    where
        S: Fn(Duration) -> Z,
        Z: Future<Output = ()>,
    {
        let task = Task(Some(self.enter_async_with(sleep).await?));
        let result = work().await;
        task.record(&result);
        result.map_err(RunError::Failed)
    }

    /// [`Resource::run_async`] for what is asked.
    ///
    /// # Errors
    /// The refusal, or the failure of the work.
    #[cfg(feature = "tokio")]
    pub async fn run_async<T, E>(
        self,
        work: impl AsyncFnOnce() -> Result<T, E>,
    ) -> Result<T, RunError<E>> {
        self.run_async_with(tokio::time::sleep, work).await
    }
}

#[inline]
fn run_in<T, E>(permit: Permit, work: impl FnOnce() -> Result<T, E>) -> Result<T, RunError<E>> {
    // Of a panic.
    let permit = permit.on_drop(Outcome::Error);
    let result = work();
    permit.record(&result);
    result.map_err(RunError::Failed)
}

/// The permit of a task at work. Dropped by a panic it failed, dropped by anybody else its caller went away.
struct Task(Option<Permit>);

impl Task {
    fn record<T, E>(mut self, result: &Result<T, E>) {
        if let Some(permit) = self.0.take() {
            permit.record(result);
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        match self.0.take() {
            Some(permit) if thread::panicking() => permit.error(),
            Some(permit) => permit.ignore(),
            None => {}
        }
    }
}
