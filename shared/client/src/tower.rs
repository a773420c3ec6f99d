//! A layer for HTTP services built on tower: refused requests are answered, not passed on.
//!
//! A request that a rule refuses is answered with 429, one that an overloaded scope refuses with 503;
//! both carry `Retry-After` in seconds. A request that a rule lets wait (pacing) waits in its future, by a
//! timer that the service gives; the thread goes on with others. An admitted request holds its permit until its response is
//! ready, or its future is dropped. A response with a 5xx status, or an error, counts as failed.
//!
//! ```
//! use http::{Request, Response};
//! use tidegate_client::Client;
//! use tidegate_client::tower::TidegateLayer;
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
//!     match request.uri().path() {
//!         "/healthz" => None, // not guarded
//!         _path if request.method().is_safe() => Some(read.clone()),
//!         _path => Some(write.clone()),
//!     }
//! };
//! let layer = TidegateLayer::new(pick, tokio::time::sleep);
//! let shop = layer.layer(Shop);
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{Request, Response, StatusCode};
use pin_project_lite::pin_project;
use tidegate_segment::gate::Request as Wanted;
use tower_layer::Layer;
use tower_service::Service;

use crate::resource::Begun;
use crate::session::Names;
use crate::{Permit, Refused, Resource};

/// Guards a service.
pub struct TidegateLayer<F> {
    asking: Arc<Asking<F>>,
}

/// A service that asks before it works.
#[derive(Debug)]
pub struct Guarded<S, F> {
    service: S,
    asking: Arc<Asking<F>>,
}

/// What is asked for a request, and how to wait.
struct Asking<F> {
    pick: F,
    sleep: Arc<dyn Fn(Duration) -> Sleep + Send + Sync>,
}

type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;
type Decision = Pin<Box<dyn Future<Output = Result<Permit, Refused>> + Send>>;

impl<F> TidegateLayer<F> {
    /// Guards each request by the resource that `pick` names for it; `None` = not guarded.
    ///
    /// `sleep` makes a future that is ready after a time, by the timer of the runtime that the service
    /// runs on, such as `tokio::time::sleep`. Only requests that a rule lets wait come to it.
    ///
    /// Make the resources beforehand, as [`crate::Client::resource`] may wait for the agent.
    pub fn new<B, Z>(pick: F, sleep: impl Fn(Duration) -> Z + Send + Sync + 'static) -> Self
    where
        F: Fn(&Request<B>) -> Option<Resource>,
        Z: Future<Output = ()> + Send + 'static,
    {
        let sleep = move |time| -> Sleep { Box::pin(sleep(time)) };
        Self {
            asking: Arc::new(Asking {
                pick,
                sleep: Arc::new(sleep),
            }),
        }
    }
}

impl<F> Asking<F> {
    /// Asks for a request: decided, or on its way to that.
    fn ask<B>(&self, req: &Request<B>) -> Asked
    where
        F: Fn(&Request<B>) -> Option<Resource>,
    {
        let Some(resource) = (self.pick)(req) else {
            return Asked::Decided(Ok(None));
        };
        match resource.begin(Wanted::default(), Names::default(), Duration::MAX) {
            Begun::Decided(answer) => Asked::Decided(answer.map(Some)),
            Begun::Waits(turn) => {
                let sleep = Arc::clone(&self.sleep);
                Asked::Waits(Box::pin(turn.decided(move |time| sleep(time))))
            }
        }
    }
}

enum Asked {
    Decided(Result<Option<Permit>, Refused>),
    Waits(Decision),
}

impl<F> fmt::Debug for TidegateLayer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.asking.fmt(f)
    }
}

impl<F> fmt::Debug for Asking<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TidegateLayer").finish_non_exhaustive()
    }
}

impl<F> Clone for TidegateLayer<F> {
    fn clone(&self) -> Self {
        Self {
            asking: Arc::clone(&self.asking),
        }
    }
}

impl<S, F> Layer<S> for TidegateLayer<F> {
    type Service = Guarded<S, F>;

    fn layer(&self, inner: S) -> Self::Service {
        Guarded {
            service: inner,
            asking: Arc::clone(&self.asking),
        }
    }
}

impl<S: Clone, F> Clone for Guarded<S, F> {
    fn clone(&self) -> Self {
        Self {
            service: self.service.clone(),
            asking: Arc::clone(&self.asking),
        }
    }
}

impl<S, F, B, R> Service<Request<B>> for Guarded<S, F>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    F: Fn(&Request<B>) -> Option<Resource>,
    R: Default,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Answer<S, B, S::Future>;

    // Nothing is asked here: a service may be ready long before it is called, or never be called.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, req: Request<B>) -> Self::Future {
        let state = match self.asking.ask(&req) {
            Asked::Decided(Ok(permit)) => State::Passed {
                response: self.service.call(req),
                permit,
            },
            Asked::Decided(Err(refused)) => State::Refused { refused },
            Asked::Waits(decision) => {
                // The service that was found ready goes with the request; its copy is asked anew.
                let copy = self.service.clone();
                let service = mem::replace(&mut self.service, copy);
                let rest = Some((service, req));
                State::Waits { decision, rest }
            }
        };
        Answer { state }
    }
}

pin_project! {
    /// The response of a guarded service, or its refusal.
    #[must_use = "futures do nothing unless polled"]
    pub struct Answer<S, B, A> {
        #[pin]
        state: State<S, B, A>,
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
        Refused { refused: Refused },
        Over,
    }
}

impl<S, B, A> fmt::Debug for Answer<S, B, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").finish_non_exhaustive()
    }
}

impl<S, B, R> Future for Answer<S, B, S::Future>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Default,
{
    type Output = Result<Response<R>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        if let StateNow::Waits { decision, rest } = state.as_mut().project() {
            let decided = ready!(decision.as_mut().poll(cx));
            let next = match (decided, rest.take()) {
                (Ok(permit), Some((mut service, req))) => State::Passed {
                    response: service.call(req),
                    permit: Some(permit),
                },
                (Ok(_), None) => State::Over,
                (Err(refused), _) => State::Refused { refused },
            };
            state.set(next);
        }
        match state.project() {
            StateNow::Passed { response, permit } => {
                let output = ready!(response.poll(cx));
                match (permit.take(), &output) {
                    (Some(permit), Ok(answer)) if !answer.status().is_server_error() => permit.ok(),
                    (Some(permit), _failed) => permit.error(),
                    (None, _any) => {}
                }
                Poll::Ready(output)
            }
            StateNow::Refused { refused } => Poll::Ready(Ok(refusal(refused))),
            StateNow::Waits { .. } | StateNow::Over => Poll::Pending,
        }
    }
}

fn refusal<R: Default>(refused: &Refused) -> Response<R> {
    let mut response = Response::new(R::default());
    *response.status_mut() =
        StatusCode::from_u16(refused.http_status()).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let seconds = refused.retry_after_s().into();
    response.headers_mut().insert(RETRY_AFTER, seconds);
    response
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::{Pending, pending, ready};
    use std::pin::pin;
    use std::task::Waker;

    use tempfile::TempDir;

    use super::*;
    use crate::Client;
    use crate::test_agent::{Manners, TestAgent};
    use crate::test_rules::concurrency;

    type Reply = Result<Response<String>, Infallible>;

    /// A service that answers with the status of the request's path, or never.
    #[derive(Clone)]
    struct Fixed;

    #[derive(Clone)]
    struct Never;

    impl Service<Request<()>> for Fixed {
        type Response = Response<String>;
        type Error = Infallible;
        type Future = std::future::Ready<Reply>;
        fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }
        fn call(&mut self, req: Request<()>) -> Self::Future {
            let mut response = Response::new("done".to_owned());
            let status = req.uri().path().trim_matches('/').parse().unwrap();
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            ready(Ok(response))
        }
    }

    impl Service<Request<()>> for Never {
        type Response = Response<String>;
        type Error = Infallible;
        type Future = Pending<Reply>;
        fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }
        fn call(&mut self, _req: Request<()>) -> Self::Future {
            pending()
        }
    }

    fn answer(future: impl Future<Output = Reply>) -> Response<String> {
        let mut context = Context::from_waker(Waker::noop());
        match pin!(future).poll(&mut context) {
            Poll::Ready(reply) => reply.unwrap(),
            Poll::Pending => panic!("the answer is not ready"),
        }
    }

    fn get(path: &str) -> Request<()> {
        Request::get(path).body(()).unwrap()
    }

    fn resource(dir: &TempDir, name: &str) -> Resource {
        let client = Client::builder().runtime_dir(dir.path()).connect();
        client.unwrap().resource(name).unwrap()
    }

    #[test]
    fn a_permit_is_held_until_the_response_and_a_refusal_is_an_answer() {
        let dir = tempfile::tempdir().unwrap();
        let agent = TestAgent::start(dir.path(), Manners::default(), &[("a", concurrency(1))]);
        let guarded = resource(&dir, "a");
        let pick =
            move |request: &Request<()>| (request.uri().path() != "/204").then(|| guarded.clone());
        let layer = TidegateLayer::new(pick, |_time| pending());
        let waiting = layer.layer(Never).call(get("/200"));
        assert_eq!(agent.inflight("a"), 1);
        let mut fixed = layer.layer(Fixed);
        let refused = answer(fixed.call(get("/200")));
        assert_eq!(refused.status(), 429);
        assert_eq!(refused.headers()[RETRY_AFTER], "1");
        assert_eq!(refused.body(), "");
        let unguarded = answer(fixed.call(get("/204")));
        assert_eq!(unguarded.status(), 204);
        drop(waiting);
        assert_eq!(agent.inflight("a"), 0);
        assert_eq!(answer(fixed.call(get("/200"))).body(), "done");
        assert_eq!(answer(fixed.call(get("/500"))).status(), 500);
        let state = agent.state();
        let slot = state.find("a").unwrap();
        let counts = state.ledger.node_counts(&state.board, slot);
        assert_eq!((counts.success, counts.error, counts.inflight), (1, 1, 0));
    }
}
