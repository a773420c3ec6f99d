//! Who hears of refusals besides those who are refused.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::refused::Refused;
#[cfg(any(tidegate_stub, not(target_os = "linux")))]
use crate::stub::sync::{Ordering, Word};
#[cfg(all(target_os = "linux", not(tidegate_stub)))]
use tidegate_segment::sync::{Ordering, Word};

/// Hears what a service may want to count, log or put into its traces.
///
/// It is called in the thread that decides, so it must be quick; admitted requests, which are most, call nobody. A panic in
/// it ends there, is counted in [`Status::observer_panics`](crate::Status::observer_panics), and changes no decision.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use tidegate_client::{Client, Observer, Refused};
///
/// #[derive(Default)]
/// struct Refusals(AtomicU64);
///
/// impl Observer for Refusals {
///     fn refused(&self, _resource: &str, _refused: &Refused) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
/// }
///
/// let client = Client::builder().runtime_dir("/nowhere").observer(Refusals::default());
/// ```
pub trait Observer: Send + Sync + 'static {
    /// A request was refused.
    #[expect(unused_variables, reason = "it hears nothing by default")]
    fn refused(&self, resource: &str, refused: &Refused) {}

    /// A request was admitted because there was nothing to decide on, see [`Status::open`](crate::Status::open).
    #[expect(unused_variables, reason = "it hears nothing by default")]
    fn admitted_open(&self, resource: &str) {}
}

/// An observer that puts `tidegate.refused_by` into the span that the refused request runs in.
///
/// The span must have been
/// made with that field, such as `info_span!("request", tidegate.refused_by = tracing::field::Empty)`.
#[cfg(feature = "tracing")]
#[derive(Debug, Clone, Copy, Default)]
pub struct SpanField;

#[cfg(feature = "tracing")]
impl Observer for SpanField {
    fn refused(&self, _resource: &str, refused: &Refused) {
        let span = tracing::Span::current();
        span.record("tidegate.refused_by", tracing::field::display(refused.by()));
    }
}

/// The observer of a client, if it has one.
pub(crate) struct Observing {
    observer: Option<Arc<dyn Observer>>,
    panics: Word,
}

impl Observing {
    pub(crate) const fn by(observer: Option<Arc<dyn Observer>>) -> Self {
        Self {
            observer,
            panics: Word::new(0),
        }
    }

    #[inline(always)]
    pub(crate) fn refused(&self, resource: &str, refused: &Refused) {
        if let Some(observer) = &self.observer {
            self.tell(|| observer.refused(resource, refused));
        }
    }

    pub(crate) fn admitted_open(&self, resource: &str) {
        if let Some(observer) = &self.observer {
            self.tell(|| observer.admitted_open(resource));
        }
    }

    /// How often it has panicked.
    pub(crate) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    #[cold]
    #[inline(never)]
    fn tell(&self, tell: impl FnOnce()) {
        // What it has left half done is its own.
        if catch_unwind(AssertUnwindSafe(tell)).is_err() {
            self.panics.count(1);
        }
    }
}

impl fmt::Debug for Observing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observing")
            .field("observer", &self.observer.is_some())
            .finish_non_exhaustive()
    }
}
