//! The layer against an agent's pages.

use std::convert::Infallible;
use std::future::{Pending, pending, ready};
use std::pin::pin;

use http::header::RETRY_AFTER;
use http_body::{Body, Frame};
use tempfile::TempDir;

use super::*;
use crate::test_agent::{Behaviour, TestAgent};
use crate::test_rules::concurrency;
use crate::{Client, Resource};

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
    let agent = TestAgent::start(dir.path(), Behaviour::default(), &[("a", concurrency(1))]);
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

/// A body of some frames, each asked for apart.
#[derive(Debug, Default)]
struct Frames(Vec<Frame<&'static [u8]>>);

impl Body for Frames {
    type Data = &'static [u8];
    type Error = Infallible;
    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<&'static [u8]>, Infallible>>> {
        let next = (!self.0.is_empty()).then(|| self.0.remove(0));
        Poll::Ready(next.map(Ok))
    }
    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }
}

/// A gRPC service whose answer ends with the status of the request's path; 0 = in the head, for an answer of trailers alone.
#[derive(Clone)]
struct Calls;

impl Service<Request<()>> for Calls {
    type Response = Response<Frames>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Frames>, Infallible>>;
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }
    fn call(&mut self, req: Request<()>) -> Self::Future {
        let status = req.uri().path().trim_matches('/');
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", status.parse().unwrap());
        if req.method() == "HEAD" {
            let mut response = Response::new(Frames::default());
            response.headers_mut().extend(trailers);
            return ready(Ok(response));
        }
        let frames = vec![Frame::data(&b"reply"[..]), Frame::trailers(trailers)];
        ready(Ok(Response::new(Frames(frames))))
    }
}

fn now<T>(future: impl Future<Output = Result<T, Infallible>>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(reply) => reply.unwrap(),
        Poll::Pending => panic!("the answer is not ready"),
    }
}

/// The next frame of a body, if there is one.
fn frame<B: Body + Unpin>(body: &mut B) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    let next = Pin::new(body).poll_frame(&mut context);
    matches!(next, Poll::Ready(Some(Ok(_frame))))
}

fn ended(agent: &TestAgent) -> (u64, u64, u64) {
    let state = agent.state();
    let slot = state.find("a").unwrap();
    let counts = state.ledger.node_counts(&state.board, slot);
    (counts.success, counts.error, counts.inflight)
}

#[test]
fn field_o16_a_grpc_call_holds_its_permit_until_its_trailers_and_they_say_how_it_ended() {
    let dir = tempfile::tempdir().unwrap();
    let agent = TestAgent::start(dir.path(), Behaviour::default(), &[("a", concurrency(1))]);
    let guarded = resource(&dir, "a");
    let pick = move |_request: &Request<()>| Some(guarded.clone());
    let mut calls = TidegateLayer::grpc(pick, |_time| pending::<()>()).layer(Calls);
    let mut body = now(calls.call(get("/0"))).into_body();
    assert!(frame(&mut body), "a message");
    assert_eq!(ended(&agent), (0, 0, 1));
    let refused = now(calls.call(get("/0")));
    let header = |name| refused.headers()[name].to_str().unwrap();
    assert_eq!(
        (refused.status(), header("grpc-status")),
        (StatusCode::OK, "8")
    );
    let pushback: u64 = header("grpc-retry-pushback-ms").parse().unwrap();
    assert!(pushback >= 100, "{pushback}");
    assert!(header("grpc-message").starts_with("refused by flow (concurrency): 1 of 1"));
    assert!(frame(&mut body), "the trailers");
    assert_eq!(ended(&agent), (1, 0, 0));
    // INTERNAL is the service's fault, NOT_FOUND the caller's.
    for (status, expected) in [("/13", (1, 1, 0)), ("/5", (2, 1, 0))] {
        let mut body = now(calls.call(get(status))).into_body();
        while frame(&mut body) {}
        assert_eq!(ended(&agent), expected, "{status}");
    }
    // An answer of trailers alone, and a caller who goes away in the middle.
    let at_once = Request::head("/14").body(()).unwrap();
    let _body = now(calls.call(at_once));
    assert_eq!(ended(&agent), (2, 2, 0));
    drop(now(calls.call(get("/0"))));
    assert_eq!(ended(&agent), (2, 2, 0), "ignored");
}

#[test]
fn field_o16_a_streamed_answer_holds_its_permit_until_it_has_gone_out() {
    let dir = tempfile::tempdir().unwrap();
    let agent = TestAgent::start(dir.path(), Behaviour::default(), &[("a", concurrency(1))]);
    let guarded = resource(&dir, "a");
    let pick = move |_request: &Request<()>| Some(guarded.clone());
    let mut calls = TidegateLayer::new(pick, |_time| pending::<()>())
        .streamed()
        .layer(Calls);
    let mut body = now(calls.call(get("/0"))).into_body();
    assert!(frame(&mut body));
    assert_eq!(ended(&agent), (0, 0, 1));
    while frame(&mut body) {}
    assert_eq!(ended(&agent), (1, 0, 0));
}

#[test]
fn field_o16_the_layer_says_class_and_origin_judges_and_refuses_as_it_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let agent = TestAgent::start(dir.path(), Behaviour::default(), &[("a", concurrency(1))]);
    let guarded = resource(&dir, "a");
    let held = guarded.enter().unwrap();
    let pick = move |request: &Request<()>| {
        let asked = EntryRequest::of(guarded.clone()).class(crate::Class::Sheddable);
        Some(
            asked
                .origin(crate::origin_of(request.headers()))
                .text_arg("user"),
        )
    };
    let layer = TidegateLayer::new(pick, |_time| pending::<()>()).classify(|status, _headers| {
        if status == 404 {
            Outcome::Error
        } else {
            Outcome::Ok
        }
    });
    let problem = answer(layer.clone().problem_json().layer(Fixed).call(get("/200")));
    assert!(problem.body().contains("\"resource\":\"a\""), "{problem:?}");
    assert_eq!(
        problem.headers()["content-type"],
        "application/problem+json"
    );
    let own = layer.clone().on_refused(|name, refused| {
        let mut response = Response::new(format!("{name} is busy: {}", refused.by()));
        *response.status_mut() = StatusCode::IM_A_TEAPOT;
        response
    });
    let own = answer(own.layer(Fixed).call(get("/200")));
    assert_eq!(own.status(), 418);
    assert_eq!(own.body(), "a is busy: flow/concurrency rule 0");
    held.ok();
    let mut fixed = layer.layer(Fixed);
    answer(fixed.call(get("/404")));
    answer(fixed.call(get("/500")));
    assert_eq!(ended(&agent), (2, 1, 0));
}
