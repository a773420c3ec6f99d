//! A body that holds the permit of its request until it ends.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tidegate_abi::decision::Outcome;

use super::grpc_status::of_grpc;
use crate::Permit;

pin_project! {
    /// A body whose request is over with its end. Where it is dropped before, its caller went away, and the request counts
    /// as ignored.
    #[derive(Debug)]
    pub struct GuardedBody<R> {
        #[pin]
        body: R,
        permit: Option<Permit>,
        verdict: Verdict,
    }
}

/// What the end of a body says of its request.
#[derive(Debug, Clone, Copy)]
enum Verdict {
    /// This, if nothing goes wrong.
    Known(Outcome),
    /// What the trailers say, and a failure without any.
    InTrailers,
}

impl<R> GuardedBody<R> {
    /// A body that holds nothing.
    pub(super) const fn free(body: R) -> Self {
        Self {
            body,
            permit: None,
            verdict: Verdict::Known(Outcome::Ignore),
        }
    }
}

impl<R: Body> GuardedBody<R> {
    /// A body of a request whose outcome is known.
    pub(super) fn until_end(body: R, permit: Option<Permit>, outcome: Outcome) -> Self {
        Self::new(body, permit, Verdict::Known(outcome))
    }

    /// A body whose trailers say how the request ended.
    pub(super) fn until_trailers(body: R, permit: Option<Permit>) -> Self {
        Self::new(body, permit, Verdict::InTrailers)
    }

    fn new(body: R, mut permit: Option<Permit>, verdict: Verdict) -> Self {
        // Nobody asks for the end of a body that says it has ended.
        if body.is_end_stream() {
            end(&mut permit, verdict.without_trailers());
        }
        Self {
            body,
            permit,
            verdict,
        }
    }
}

impl Verdict {
    const fn without_trailers(self) -> Outcome {
        match self {
            Self::Known(outcome) => outcome,
            Self::InTrailers => Outcome::Error,
        }
    }
}

fn end(permit: &mut Option<Permit>, outcome: Outcome) {
    if let Some(permit) = permit.take() {
        permit.end_as(outcome);
    }
}

impl<R: Body> Body for GuardedBody<R> {
    type Data = R::Data;
    type Error = R::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<R::Data>, R::Error>>> {
        let mut this = self.project();
        let frame = ready!(this.body.as_mut().poll_frame(cx));
        let ended = match &frame {
            None => Some(this.verdict.without_trailers()),
            Some(Err(_)) => Some(Outcome::Error),
            Some(Ok(frame)) => match (frame.trailers_ref(), &this.verdict) {
                (Some(trailers), Verdict::InTrailers) => {
                    Some(of_grpc(trailers).unwrap_or(Outcome::Error))
                }
                (Some(_), Verdict::Known(outcome)) => Some(*outcome),
                (None, verdict) => this
                    .body
                    .is_end_stream()
                    .then(|| verdict.without_trailers()),
            },
        };
        if let Some(outcome) = ended {
            end(this.permit, outcome);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
