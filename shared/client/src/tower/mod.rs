//! A layer for HTTP and gRPC services built on tower: refused requests are answered, not passed on.
//!
//! A request that a rule refuses is answered with 429, one that an overloaded scope refuses with 503, both with
//! `Retry-After` in seconds where coming again helps. A request that a rule lets wait (pacing) waits in its future, by a
//! timer that the service gives; the thread goes on with others. An admitted request holds its permit until its response is
//! ready, with [`TidegateLayer::streamed`] until the body of that has gone out; where its future is dropped before, its
//! caller went away, and it counts as ignored. A response with a 5xx status, an error and a panic count as failed.
//!
//! | says | by |
//! |---|---|
//! | resource, class, origin, arguments, longest wait | what `pick` gives: a [`Resource`](crate::Resource) or an [`EntryRequest`] |
//! | what counts as failed | [`TidegateLayer::classify`] |
//! | the answer to what is refused | [`TidegateLayer::problem_json`], [`TidegateLayer::on_refused`] |
//! | gRPC | [`TidegateLayer::grpc`] |
//!
//! ```
//! use http::{Request, Response};
//! use tidegate_client::tower::TidegateLayer;
//! use tidegate_client::{Class, Client, EntryRequest, origin_of};
//! use tower_layer::Layer as _;
//!
//! # mod tokio { pub mod time { pub async fn sleep(_time: std::time::Duration) {} } }
//! # #[derive(Clone)]
//! # struct Shop;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = "/nowhere";
//! let client = Client::builder().runtime_dir(dir).connect()?;
//! let (read, write) = (client.resource("shop-read")?, client.resource("shop-write")?);
//! let pick = move |request: &Request<String>| {
//!     let asked = match request.uri().path() {
//!         "/healthz" => return None, // not guarded
//!         _path if request.method().is_safe() => EntryRequest::of(read.clone()).class(Class::Sheddable),
//!         _path => EntryRequest::of(write.clone()),
//!     };
//!     Some(asked.origin(origin_of(request.headers())))
//! };
//! let layer = TidegateLayer::new(pick, tokio::time::sleep).problem_json();
//! let shop = layer.layer(Shop);
//! # Ok(())
//! # }
//! ```

mod body;
mod grpc_status;
mod protocol;

use std::fmt;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use http::{HeaderMap, Request, Response, StatusCode};
use pin_project_lite::pin_project;
use tidegate_abi::decision::Outcome;
use tower_layer::Layer;
use tower_service::Service;

pub use self::body::GuardedBody;
pub use self::protocol::{Custom, Grpc, Http, NoBody, ProblemJson, Protocol, Refuse, Streamed};
use crate::entry_request::EntryRequest;
use crate::permit::Permit;
use crate::refused::Refused;

/// Guards a service.
#[must_use = "a layer guards what it is put around"]
pub struct TidegateLayer<F, P = Http> {
    asking: Arc<Asking<F>>,
    protocol: P,
}

/// A service that asks before it works.
#[derive(Debug)]
pub struct Guarded<S, F, P = Http> {
    service: S,
    asking: Arc<Asking<F>>,
    protocol: P,
}

/// What is asked for a request, and how to wait.
struct Asking<F> {
    pick: F,
    sleep: Arc<dyn Fn(Duration) -> Sleep + Send + Sync>,
}

type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;
type Decision = Pin<Box<dyn Future<Output = Decided> + Send>>;
/// A permit, or why not and for which resource.
type Decided = Result<Permit, (Refused, EntryRequest)>;

impl<F> Asking<F> {
    fn new<Z>(pick: F, sleep: impl Fn(Duration) -> Z + Send + Sync + 'static) -> Arc<Self>
    where
        Z: Future<Output = ()> + Send + 'static,
    {
        let sleep = move |time| -> Sleep { Box::pin(sleep(time)) };
        Arc::new(Self {
            pick,
            sleep: Arc::new(sleep),
        })
    }
}

impl<F> TidegateLayer<F> {
    /// Guards each request by what `pick` asks for it, a [`Resource`](crate::Resource) or an [`EntryRequest`]; `None` =
    /// not guarded.
    ///
    /// `sleep` makes a future that is ready after a time, by the timer of the runtime that the service
    /// runs on, such as `tokio::time::sleep`. Only requests that a rule lets wait come to it.
    ///
    /// Make the resources beforehand, as [`crate::Client::resource`] may wait for the agent, and from a small set, such as
    /// the patterns of routes: never from what callers send.
    pub fn new<B, Q, Z>(pick: F, sleep: impl Fn(Duration) -> Z + Send + Sync + 'static) -> Self
    where
        F: Fn(&Request<B>) -> Option<Q>,
        Q: Into<EntryRequest>,
        Z: Future<Output = ()> + Send + 'static,
    {
        Self {
            asking: Asking::new(pick, sleep),
            protocol: Http::new(),
        }
    }
}

impl<F> TidegateLayer<F, Grpc> {
    /// The same for gRPC.
    ///
    /// A refusal has the status `RESOURCE_EXHAUSTED` (a rule) or `UNAVAILABLE` (a scope) and
    /// `grpc-retry-pushback-ms`, below zero where coming again does not help. A call is over with its trailers, and failed
    /// where their status says that the service could not do it.
    pub fn grpc<B, Q, Z>(pick: F, sleep: impl Fn(Duration) -> Z + Send + Sync + 'static) -> Self
    where
        F: Fn(&Request<B>) -> Option<Q>,
        Q: Into<EntryRequest>,
        Z: Future<Output = ()> + Send + 'static,
    {
        Self {
            asking: Asking::new(pick, sleep),
            protocol: Grpc,
        }
    }
}

impl<F, W> TidegateLayer<F, Http<W>> {
    /// Says what an answer means; without this, a 5xx status is a failure and all else a success.
    pub fn classify(
        mut self,
        classify: impl Fn(StatusCode, &HeaderMap) -> Outcome + Send + Sync + 'static,
    ) -> Self {
        self.protocol.classify = Arc::new(classify);
        self
    }

    /// Answers what is refused with a body of `application/problem+json`.
    pub fn problem_json(self) -> TidegateLayer<F, Http<ProblemJson>> {
        self.refusing_by(ProblemJson)
    }

    /// Answers what is refused with what `refuse` makes of the resource's name and the refusal;
    /// [`Refused::to_response`] is a good start.
    pub fn on_refused<R, G: Fn(&str, &Refused) -> Response<R>>(
        self,
        refuse: G,
    ) -> TidegateLayer<F, Http<Custom<G>>> {
        self.refusing_by(Custom(refuse))
    }

    /// Holds permits until the bodies of answers have gone out, for services that send much or slowly.
    pub fn streamed(self) -> TidegateLayer<F, Streamed<W>> {
        TidegateLayer {
            asking: self.asking,
            protocol: Streamed(self.protocol),
        }
    }

    fn refusing_by<V>(self, refuse: V) -> TidegateLayer<F, Http<V>> {
        TidegateLayer {
            asking: self.asking,
            protocol: self.protocol.refusing_by(refuse),
        }
    }
}

impl<F> Asking<F> {
    /// Asks for a request: decided, or on its way to that.
    fn ask<B, Q>(&self, req: &Request<B>) -> AskState
    where
        F: Fn(&Request<B>) -> Option<Q>,
        Q: Into<EntryRequest>,
    {
        let Some(asked) = (self.pick)(req) else {
            return AskState::Decided(Ok(None));
        };
        let asked: EntryRequest = asked.into();
        let express = asked.ask().express();
        if let Some(answer) = express {
            return AskState::Decided(answer.map(Some).map_err(|refused| (refused, asked)));
        }
        let sleep = Arc::clone(&self.sleep);
        let mut decision: Decision = Box::pin(async move {
            let answer = asked.ask().enter_async_with(|time| sleep(time)).await;
            answer.map_err(|refused| (refused, asked))
        });
        // It is decided here or waits; a waiting one is asked again with the waker of its task.
        let mut nobody = Context::from_waker(Waker::noop());
        match decision.as_mut().poll(&mut nobody) {
            Poll::Ready(decided) => AskState::Decided(decided.map(Some)),
            Poll::Pending => AskState::Waits(decision),
        }
    }
}

enum AskState {
    Decided(Result<Option<Permit>, (Refused, EntryRequest)>),
    Waits(Decision),
}

impl<F, P> fmt::Debug for TidegateLayer<F, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.asking.fmt(f)
    }
}

impl<F> fmt::Debug for Asking<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TidegateLayer").finish_non_exhaustive()
    }
}

impl<F, P: Clone> Clone for TidegateLayer<F, P> {
    fn clone(&self) -> Self {
        Self {
            asking: Arc::clone(&self.asking),
            protocol: self.protocol.clone(),
        }
    }
}

impl<S, F, P: Clone> Layer<S> for TidegateLayer<F, P> {
    type Service = Guarded<S, F, P>;

    fn layer(&self, inner: S) -> Self::Service {
        Guarded {
            service: inner,
            asking: Arc::clone(&self.asking),
            protocol: self.protocol.clone(),
        }
    }
}

impl<S: Clone, F, P: Clone> Clone for Guarded<S, F, P> {
    fn clone(&self) -> Self {
        Self {
            service: self.service.clone(),
            asking: Arc::clone(&self.asking),
            protocol: self.protocol.clone(),
        }
    }
}

impl<S, F, P, B, Q, R> Service<Request<B>> for Guarded<S, F, P>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    F: Fn(&Request<B>) -> Option<Q>,
    Q: Into<EntryRequest>,
    P: Protocol<R>,
{
    type Response = Response<P::Body>;
    type Error = S::Error;
    type Future = GuardedFuture<S, B, S::Future, P>;

    // Nothing is asked here: a service may be ready long before it is called, or never be called.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, req: Request<B>) -> Self::Future {
        let state = match self.asking.ask(&req) {
            AskState::Decided(Ok(permit)) => State::passed(&mut self.service, req, permit),
            AskState::Decided(Err(refused)) => State::Refused { refused },
            AskState::Waits(decision) => {
                // The service that was found ready goes with the request; its copy is asked anew.
                let copy = self.service.clone();
                let service = mem::replace(&mut self.service, copy);
                let rest = Some((service, req));
                State::Waits { decision, rest }
            }
        };
        GuardedFuture {
            state,
            protocol: self.protocol.clone(),
        }
    }
}

pin_project! {
    /// The response of a guarded service, or its refusal.
    #[must_use = "futures do nothing unless polled"]
    pub struct GuardedFuture<S, B, A, P> {
        #[pin]
        state: State<S, B, A>,
        protocol: P,
    }
}

pin_project! {
    #[project = StateNow]
    enum State<S, B, A> {
        // A rule holds the request back.
        Waits {
            decision: Decision,
            rest: Option<(S, Request<B>)>,
        },
        // The permit is held until the response is there.
        Passed {
            #[pin]
            response: A,
            permit: Option<Permit>,
        },
        Refused { refused: (Refused, EntryRequest) },
        Over,
    }
}

impl<S: Service<Request<B>>, B> State<S, B, S::Future> {
    fn passed(service: &mut S, req: Request<B>, mut permit: Option<Permit>) -> Self {
        let response = at_work(&mut permit, || service.call(req));
        Self::Passed { response, permit }
    }
}

/// Works under a permit: a panic is a failure, while a future that is dropped between two steps had a caller who went away.
fn at_work<T>(permit: &mut Option<Permit>, work: impl FnOnce() -> T) -> T {
    if let Some(permit) = permit {
        permit.set_on_drop(Outcome::Error);
    }
    let done = work();
    if let Some(permit) = permit {
        permit.set_on_drop(Outcome::Ignore);
    }
    done
}

impl<S, B, A, P> fmt::Debug for GuardedFuture<S, B, A, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").finish_non_exhaustive()
    }
}

impl<S, B, R, P> Future for GuardedFuture<S, B, S::Future, P>
where
    S: Service<Request<B>, Response = Response<R>>,
    P: Protocol<R>,
{
    type Output = Result<Response<P::Body>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let (mut state, protocol) = (this.state, this.protocol);
        if let StateNow::Waits { decision, rest } = state.as_mut().project() {
            let decided = ready!(decision.as_mut().poll(cx));
            let next = match (decided, rest.take()) {
                (Ok(permit), Some((mut service, req))) => {
                    State::passed(&mut service, req, Some(permit))
                }
                (Ok(_), None) => State::Over,
                (Err(refused), _) => State::Refused { refused },
            };
            state.set(next);
        }
        match state.project() {
            StateNow::Passed { response, permit } => {
                let output = ready!(at_work(permit, || response.poll(cx)));
                Poll::Ready(match output {
                    Ok(answer) => Ok(protocol.answer(answer, permit.take())),
                    Err(error) => {
                        if let Some(permit) = permit.take() {
                            permit.error();
                        }
                        Err(error)
                    }
                })
            }
            StateNow::Refused {
                refused: (refused, asked),
            } => Poll::Ready(Ok(protocol.refusal(asked.resource().name(), refused))),
            StateNow::Waits { .. } | StateNow::Over => Poll::Pending,
        }
    }
}

#[cfg(all(target_os = "linux", not(tidegate_stub)))]
#[cfg(test)]
mod tests;
