//! One connection over HTTP: heads of a bounded length, bodies read in whole before anything is answered, and answers
//! that are counted until they are sent.
//!
//! Who sends a body that nobody wants still hears the answer: a connection that ended under it would break instead.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Request, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;
use tower_service::Service as _;

use super::answer::Wrong;
use super::caller::Caller;
use crate::host::bounds::{
    BODY_BYTES, BODY_WITHIN, Bounds, DRAINED_BYTES, DRAINED_WITHIN, HEAD_BYTES,
};
use crate::places::{HeldPlaces, Holder, NoPlace};

/// Bodies and answers up to this length are part of what a connection costs, bytes.
const SMALL: usize = 4096;

/// What answers on a connection, and for whom.
#[derive(Debug, Clone)]
pub(super) struct Served {
    /// The routes, with all that they take beside the request.
    pub(super) routes: Router,
    /// Where bodies and answers are counted.
    pub(super) bounds: Arc<Bounds>,
    /// In whose name bodies and answers are counted.
    pub(super) holder: Holder,
    /// Who asks, where that is known.
    pub(super) caller: Option<Caller>,
}

impl Served {
    /// Answers on a connection until it ends.
    pub(super) async fn on<S>(self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let answer = service_fn(move |request| {
            let served = self.clone();
            Box::pin(async move { Ok::<Response, Infallible>(served.answer(request).await) })
        });
        let mut connection = http1::Builder::new()
            .max_buf_size(HEAD_BYTES)
            .max_header_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), answer);
        if let Err(error) = poll_fn(|cx| connection.poll_without_shutdown(cx)).await {
            tracing::debug!(event = "connection_ended", %error, "a connection over HTTP ended");
        }
        Box::pin(close(connection.into_parts().io.into_inner())).await;
    }

    async fn answer(mut self, request: Request<Incoming>) -> Response {
        let (mut head, body) = request.into_parts();
        if let Some(caller) = self.caller.take() {
            head.extensions.insert(ConnectInfo(caller));
        }
        let answer = match self.whole(&head.headers, body).await {
            Ok((body, _place)) => {
                let request = Request::from_parts(head, Body::from(body));
                match self.routes.call(request).await {
                    Ok(answer) => answer,
                    Err(never) => match never {},
                }
            }
            Err(wrong) => last(wrong),
        };
        self.counted(answer).await
    }

    /// The whole body, with the place that it takes.
    async fn whole(
        &self,
        headers: &HeaderMap,
        mut body: Incoming,
    ) -> Result<(Bytes, Option<HeldPlaces>), Wrong> {
        let place = match self.room_for(&body) {
            Ok(place) => place,
            Err(wrong) => {
                // Who asks first whether to send the body has sent nothing yet.
                if !headers.contains_key(header::EXPECT) {
                    drain(body).await;
                }
                return Err(wrong);
            }
        };
        match timeout(BODY_WITHIN, collect(&mut body)).await {
            Ok(Ok(whole)) => Ok((whole, place)),
            Ok(Err(wrong)) => {
                drain(body).await;
                Err(wrong)
            }
            Err(_late) => Err(late()),
        }
    }

    /// Room for a body, by what its head says of it; none is needed for a short one.
    fn room_for(&self, body: &Incoming) -> Result<Option<HeldPlaces>, Wrong> {
        let longest = body.size_hint().upper();
        let longest = longest.map_or(BODY_BYTES, |most| {
            usize::try_from(most).unwrap_or(usize::MAX)
        });
        if longest > BODY_BYTES {
            return Err(too_long());
        }
        if longest <= SMALL {
            return Ok(None);
        }
        let place = self.bounds.bodies.take_many(self.holder, longest);
        place.map(Some).map_err(|no_place| busy(&no_place))
    }

    /// The answer, counted until its last byte is sent.
    pub(super) async fn counted(&self, answer: Response) -> Response {
        let (head, body) = answer.into_parts();
        let Ok(collected) = body.collect().await else {
            let text = "the answer cannot be written";
            return Wrong::new(StatusCode::INTERNAL_SERVER_ERROR, text).into_response();
        };
        let bytes = collected.to_bytes();
        if head.extensions.get::<Counted>().is_some() {
            return Response::from_parts(head, Body::from(bytes));
        }
        match room_for_answer(&self.bounds, self.holder, bytes.len()) {
            Ok(place) => Response::from_parts(head, Body::from(kept(bytes, place))),
            Err(wrong) => wrong.into_response(),
        }
    }
}

/// Room for an answer of this length; none is needed for a short one.
pub(super) fn room_for_answer(
    bounds: &Bounds,
    holder: Holder,
    bytes: usize,
) -> Result<Option<HeldPlaces>, Wrong> {
    if bytes <= SMALL {
        return Ok(None);
    }
    let place = bounds.answers.take_up_to(holder, bytes);
    place.map(Some).map_err(|no_place| busy(&no_place))
}

/// These bytes, which hold a place until they are sent.
pub(super) fn kept(bytes: Bytes, place: Option<HeldPlaces>) -> Bytes {
    match place {
        Some(place) => Bytes::from_owner(UnsentAnswer {
            bytes,
            _place: place,
        }),
        None => bytes,
    }
}

/// Marks an answer that was counted before it was made, or whose bytes are the same for all who get it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted;

/// An answer that is not sent yet.
struct UnsentAnswer {
    bytes: Bytes,
    _place: HeldPlaces,
}

impl AsRef<[u8]> for UnsentAnswer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

async fn collect(body: &mut Incoming) -> Result<Bytes, Wrong> {
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| broken(&error))?;
        // Trailers say nothing here.
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if whole.len().saturating_add(data.len()) > BODY_BYTES {
            return Err(too_long());
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.into())
}

/// Ends a connection once what was sent on it is read, within bounds: what is left unread would break the connection
/// before its last answer is heard.
pub(super) async fn close(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let all = async {
        stream.shutdown().await?;
        // On the heap: a connection is small while it waits.
        let mut sent = vec![0; 4096];
        let mut left = DRAINED_BYTES;
        loop {
            let bytes = stream.read(&mut sent).await?;
            let Some(rest) = left.checked_sub(bytes).filter(|_rest| bytes > 0) else {
                return io::Result::Ok(());
            };
            left = rest;
        }
    };
    if let Ok(Err(error)) = timeout(DRAINED_WITHIN, all).await {
        tracing::debug!(event = "connection_ended", %error, "a connection over HTTP broke at its end");
    }
}

/// Reads and throws away what a sender still sends of a body, within bounds.
async fn drain(mut body: Incoming) {
    let all = async {
        let mut left = DRAINED_BYTES;
        while let Some(Ok(frame)) = body.frame().await {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            let Some(rest) = left.checked_sub(bytes) else {
                return;
            };
            left = rest;
        }
    };
    // Who is not done by then is answered all the same.
    let _in_time: Result<(), tokio::time::error::Elapsed> = timeout(DRAINED_WITHIN, all).await;
}

/// An answer after which the connection ends: what is left of the body would be taken for the next request.
fn last(wrong: Wrong) -> Response {
    ([(header::CONNECTION, "close")], wrong).into_response()
}

fn too_long() -> Wrong {
    let text = format!("the body is too long; allowed are {BODY_BYTES} bytes");
    Wrong::new(StatusCode::PAYLOAD_TOO_LARGE, text)
}

fn late() -> Wrong {
    let within = humantime::format_duration(BODY_WITHIN);
    let text = format!("the body did not come within {within}; send it at once");
    Wrong::new(StatusCode::REQUEST_TIMEOUT, text)
}

fn broken(error: &hyper::Error) -> Wrong {
    let text = format!("the body cannot be read ({error}); send it again on a new connection");
    Wrong::input(text)
}

pub(super) fn busy(no_place: &NoPlace) -> Wrong {
    Wrong::new(StatusCode::SERVICE_UNAVAILABLE, no_place.to_string())
}
