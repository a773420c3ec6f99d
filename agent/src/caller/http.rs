//! The HTTP socket, seen from the caller.

use std::io;
use std::path::Path;
use std::time::Duration;

use http_body_util::{BodyExt as _, Empty};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::NoAnswer;
use crate::door::http;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to the HTTP socket; it is kept open between requests.
#[derive(Debug)]
pub struct HttpConnection {
    runtime: Runtime,
    sender: SendRequest<Empty<Bytes>>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// Status code.
    pub status: u16,
    /// Body.
    pub body: Bytes,
}

impl HttpConnection {
    /// Connects to the agent in a runtime directory.
    ///
    /// # Errors
    /// Nobody listens there.
    pub fn connect(directory: &Path) -> Result<Self, NoAnswer> {
        let path = directory.join(http::FILE_NAME);
        let way = super::way(directory, &path)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let connected = runtime.block_on(UnixStream::connect(&path));
        let stream = connected.map_err(|error| NoAnswer::Connect {
            path: path.clone(),
            error,
        })?;
        super::trusted(&way, &stream, &path)?;
        let (sender, connection) = runtime
            .block_on(handshake(TokioIo::new(stream)))
            .map_err(io::Error::other)?;
        // It ends with the runtime; whoever sends hears of its errors.
        drop(runtime.spawn(connection));
        Ok(Self { runtime, sender })
    }

    /// Sends one GET request, and waits ten seconds for the answer.
    ///
    /// # Errors
    /// The connection broke, or no answer came.
    pub fn get(&mut self, path: &str) -> Result<HttpAnswer, NoAnswer> {
        let request = Request::get(path)
            .header("host", "tidegate")
            .body(Empty::new())
            .map_err(io::Error::other)?;
        let Self { runtime, sender } = self;
        runtime.block_on(in_time(async {
            sender.ready().await.map_err(io::Error::other)?;
            let response = sender
                .send_request(request)
                .await
                .map_err(io::Error::other)?;
            let status = response.status().as_u16();
            let body = response
                .into_body()
                .collect()
                .await
                .map_err(io::Error::other)?;
            Ok(HttpAnswer {
                status,
                body: body.to_bytes(),
            })
        }))
    }
}

/// An answer, or that it took too long: an agent that is stopped takes connections and answers none.
async fn in_time(
    answer: impl Future<Output = Result<HttpAnswer, NoAnswer>>,
) -> Result<HttpAnswer, NoAnswer> {
    timeout(PATIENCE, answer).await.unwrap_or_else(|_elapsed| {
        let why = format!("no answer within {} s", PATIENCE.as_secs());
        Err(io::Error::new(io::ErrorKind::TimedOut, why).into())
    })
}
