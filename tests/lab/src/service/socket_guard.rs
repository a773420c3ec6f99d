//! Asks the agent over one of its sockets, as a service does that does not map the pages.

use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with,
};
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tidegate_abi::decision::{Class, Outcome};
use tidegate_abi::message::{EnterAnswer, EnterRequest, FRAME_MAX, Message, TOKEN};

use super::http;
use crate::lab::Door;

/// A connection that the threads of the service use in turn.
#[derive(Debug)]
pub(super) struct SocketGuard(Mutex<Line>);

#[derive(Debug)]
enum Line {
    Gate(OwnedFd),
    Http(UnixStream),
}

/// Names a permit.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token {
    Gate([u8; TOKEN]),
    Http(String),
}

impl SocketGuard {
    /// Connects to the agent in a runtime directory.
    pub(super) fn connect(door: Door, dir: &Path) -> io::Result<Self> {
        let line = if door == Door::Http {
            Line::Http(UnixStream::connect(dir.join("http.sock"))?)
        } else {
            Line::Gate(connect_gate(&dir.join("gate.sock"))?)
        };
        Ok(Self(Mutex::new(line)))
    }

    /// Asks for a permit; a refusal is the answer to send.
    pub(super) fn enter(&self, resource: &str, class: Class) -> Result<Token, Vec<u8>> {
        let mut line = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = match &mut *line {
            Line::Gate(socket) => enter_gate(socket, resource, class),
            Line::Http(stream) => enter_http(stream, resource, class),
        };
        // An agent that is gone is no reason to serve nobody, but the lab's is never gone.
        asked.unwrap_or_else(|_no_answer| Err(http::refusal(503, 1)))
    }

    /// Gives a permit back.
    pub(super) fn exit(&self, token: Token, outcome: Outcome) {
        let mut line = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let told = match (&mut *line, token) {
            (Line::Gate(socket), Token::Gate(token)) => {
                ask_gate(socket, &Message::Exit { token, outcome }, |_exited| ())
            }
            (Line::Http(stream), Token::Http(permit)) => {
                let outcome = outcome.name();
                let body = format!("{{\"permit\":\"{permit}\",\"outcome\":\"{outcome}\"}}");
                post::<IgnoredAny>(stream, "/v1/exit", &body).map(drop)
            }
            (Line::Gate(_), Token::Http(_)) | (Line::Http(_), Token::Gate(_)) => Ok(()),
        };
        // Where the agent is gone, it has given it back.
        told.unwrap_or_default();
    }
}

fn connect_gate(path: &Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    let now = clock_gettime(ClockId::Monotonic);
    let now_ns = now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs();
    let hello = Message::Hello {
        version: tidegate_abi::VERSION,
        flags: 0,
        now_ns,
    };
    ask_gate(&socket, &hello, |_welcome| ())?;
    Ok(socket)
}

fn ask_gate<T>(
    socket: &OwnedFd,
    question: &Message<'_>,
    take: impl FnOnce(&Message<'_>) -> T,
) -> io::Result<T> {
    send(socket, question.encode().bytes(), SendFlags::NOSIGNAL)?;
    let mut frame = [0; FRAME_MAX];
    let (length, _whole) = recv(socket, frame.as_mut_slice(), RecvFlags::empty())?;
    let answer = Message::decode(frame.get(..length).unwrap_or_default());
    let answer = answer.map_err(|fault| io::Error::other(format!("{fault:?}")))?;
    Ok(take(&answer))
}

fn enter_gate(
    socket: &OwnedFd,
    resource: &str,
    class: Class,
) -> io::Result<Result<Token, Vec<u8>>> {
    let ask = EnterRequest {
        class,
        ..EnterRequest::of(resource)
    };
    ask_gate(socket, &Message::Enter(ask), |answer| {
        if let Message::Verdict(EnterAnswer::Admitted { token, .. }) = answer {
            return Ok(Token::Gate(*token));
        }
        let mut retry_s = 1;
        if let Message::Verdict(EnterAnswer::Refused { retry_after_ms, .. }) = answer {
            retry_s = u64::from(retry_after_ms.div_ceil(1000));
        }
        Err(http::refusal(503, retry_s))
    })
}

#[derive(Debug, Deserialize)]
struct Entered {
    permit: Option<String>,
}

fn enter_http(
    stream: &mut UnixStream,
    resource: &str,
    class: Class,
) -> io::Result<Result<Token, Vec<u8>>> {
    let class = class.name();
    let body = format!("{{\"resource\":\"{resource}\",\"class\":\"{class}\"}}");
    let entered: Entered = post(stream, "/v1/enter", &body)?;
    let token = entered.permit.map(Token::Http);
    Ok(token.ok_or_else(|| http::refusal(503, 1)))
}

/// What comes back in JSON, on a connection that goes on.
fn post<T: for<'a> Deserialize<'a>>(
    stream: &mut UnixStream,
    path: &str,
    body: &str,
) -> io::Result<T> {
    let length = body.len();
    let request =
        format!("POST {path} HTTP/1.1\r\nHost: tidegate\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    let mut chunk = [0; 2048];
    loop {
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        answer.extend_from_slice(chunk.get(..count).unwrap_or(&[]));
        let head = answer.windows(4).position(|four| four == b"\r\n\r\n");
        let body = head.and_then(|head| answer.get(head + 4..));
        if let Some(Ok(value)) = body.map(serde_json::from_slice) {
            return Ok(value);
        }
    }
}
