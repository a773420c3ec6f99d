//! What an answer is: how a refusal is told, and how an admitted request ended.

use std::fmt;
use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use tidegate_abi::decision::{Outcome, RefusalKind};

use super::body::GuardedBody;
use super::grpc_status::{GRPC_STATUS, of_grpc};
use crate::{Permit, Refused};

/// What the layer does with answers whose body is an `R`.
pub trait Protocol<R>: Clone {
    /// The body of what leaves the layer.
    type Body;

    /// The answer to a request that was refused.
    fn refusal(&self, resource: &str, refused: &Refused) -> Response<Self::Body>;

    /// An answer of the service on its way out. The permit goes back now, or with the end of the body.
    fn answer(&self, response: Response<R>, permit: Option<Permit>) -> Response<Self::Body>;
}

/// How a refusal is told over HTTP.
pub trait Refuse<R> {
    /// The answer to a request that was refused.
    fn refuse(&self, resource: &str, refused: &Refused) -> Response<R>;
}

/// Status and `Retry-After`, and no body.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoBody;

/// Status, `Retry-After` and `application/problem+json`, see [`Refused::problem`].
#[derive(Debug, Clone, Copy, Default)]
pub struct ProblemJson;

/// What a function of the service makes of a refusal.
#[derive(Debug, Clone, Copy)]
pub struct Custom<G>(pub(super) G);

impl<R: Default> Refuse<R> for NoBody {
    fn refuse(&self, _resource: &str, refused: &Refused) -> Response<R> {
        refused.head().map(|()| R::default())
    }
}

impl<R: From<String>> Refuse<R> for ProblemJson {
    fn refuse(&self, resource: &str, refused: &Refused) -> Response<R> {
        refused.to_response(resource).map(R::from)
    }
}

impl<R, G: Fn(&str, &Refused) -> Response<R>> Refuse<R> for Custom<G> {
    fn refuse(&self, resource: &str, refused: &Refused) -> Response<R> {
        (self.0)(resource, refused)
    }
}

/// How an HTTP answer is judged: by its status and headers.
type Classify = dyn Fn(StatusCode, &HeaderMap) -> Outcome + Send + Sync;

/// HTTP, where a request is over with the head of its answer.
pub struct Http<W = NoBody> {
    pub(super) refuse: Arc<W>,
    pub(super) classify: Arc<Classify>,
}

/// HTTP, where a request is over with the body of its answer.
pub struct Streamed<W = NoBody>(pub(super) Http<W>);

/// gRPC, where a request is over with its trailers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Grpc;

impl Http {
    pub(super) fn new() -> Self {
        Self {
            refuse: Arc::new(NoBody),
            classify: Arc::new(|status, _headers| of_status(status)),
        }
    }
}

impl<W> Http<W> {
    pub(super) fn refusing_by<V>(&self, refuse: V) -> Http<V> {
        Http {
            refuse: Arc::new(refuse),
            classify: Arc::clone(&self.classify),
        }
    }

    fn judge<R>(&self, response: &Response<R>) -> Outcome {
        (self.classify)(response.status(), response.headers())
    }
}

/// What the service could not do is its failure, what the caller asked for wrongly is not.
fn of_status(status: StatusCode) -> Outcome {
    if status.is_server_error() {
        Outcome::Error
    } else {
        Outcome::Ok
    }
}

impl<W> Clone for Http<W> {
    fn clone(&self) -> Self {
        Self {
            refuse: Arc::clone(&self.refuse),
            classify: Arc::clone(&self.classify),
        }
    }
}

impl<W> Clone for Streamed<W> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<W> fmt::Debug for Http<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

impl<W> fmt::Debug for Streamed<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streamed").finish_non_exhaustive()
    }
}

impl<R, W: Refuse<R>> Protocol<R> for Http<W> {
    type Body = R;

    fn refusal(&self, resource: &str, refused: &Refused) -> Response<R> {
        self.refuse.refuse(resource, refused)
    }

    fn answer(&self, response: Response<R>, permit: Option<Permit>) -> Response<R> {
        if let Some(permit) = permit {
            permit.end_as(self.judge(&response));
        }
        response
    }
}

impl<R: http_body::Body, W: Refuse<R>> Protocol<R> for Streamed<W> {
    type Body = GuardedBody<R>;

    fn refusal(&self, resource: &str, refused: &Refused) -> Response<Self::Body> {
        self.0
            .refuse
            .refuse(resource, refused)
            .map(GuardedBody::free)
    }

    fn answer(&self, response: Response<R>, permit: Option<Permit>) -> Response<Self::Body> {
        let outcome = self.0.judge(&response);
        response.map(|body| GuardedBody::until_end(body, permit, outcome))
    }
}

impl<R: http_body::Body + Default> Protocol<R> for Grpc {
    type Body = GuardedBody<R>;

    fn refusal(&self, _resource: &str, refused: &Refused) -> Response<Self::Body> {
        let mut response = Response::new(GuardedBody::free(R::default()));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        // RESOURCE_EXHAUSTED where a rule refused, UNAVAILABLE where a scope did.
        let status = if refused.kind == RefusalKind::System {
            14
        } else {
            8
        };
        headers.insert(GRPC_STATUS, HeaderValue::from(status));
        // gRPC's own retry policy obeys this; below zero it does not try again.
        let pushback = if refused.retry {
            i64::try_from(refused.retry_after.as_millis()).unwrap_or(i64::MAX)
        } else {
            -1
        };
        headers.insert("grpc-retry-pushback-ms", HeaderValue::from(pushback));
        // Words and numbers alone, nothing that would have to be escaped.
        if let Ok(message) = HeaderValue::try_from(refused.to_string()) {
            headers.insert("grpc-message", message);
        }
        response
    }

    fn answer(&self, response: Response<R>, permit: Option<Permit>) -> Response<Self::Body> {
        // An answer of trailers alone has them in the place of its headers.
        let at_once = of_grpc(response.headers());
        response.map(|body| match at_once {
            Some(outcome) => GuardedBody::until_end(body, permit, outcome),
            None => GuardedBody::until_trailers(body, permit),
        })
    }
}
