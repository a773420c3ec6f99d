//! One connection of the load: at most one request at a time.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

use super::Outcome;

/// Most header lines of an answer.
const HEADERS: usize = 16;

/// What a request asks for, written once.
#[derive(Debug)]
pub(super) struct Texts {
    work: Vec<u8>,
    slow: Vec<u8>,
}

impl Texts {
    pub(super) fn new(path: &str, slow: &str, keep_alive: bool) -> Self {
        Self {
            work: text(path, keep_alive),
            slow: text(slow, keep_alive),
        }
    }

    pub(super) fn of(&self, slow: bool) -> &[u8] {
        if slow { &self.slow } else { &self.work }
    }
}

/// A request as browsers and gateways send them: a few hundred bytes of head.
pub(super) fn text(path: &str, keep_alive: bool) -> Vec<u8> {
    let end = if keep_alive {
        ""
    } else {
        "Connection: close\r\n"
    };
    format!(
        "GET {path} HTTP/1.1\r\nHost: shop.example:8080\r\nUser-Agent: tidegate-lab\r\n\
         Accept: application/json, text/plain, */*\r\nAccept-Encoding: gzip, deflate\r\n\
         X-Request-Id: 5b0c6f4e-6a1d-4b7e-9a53-2f8d1c0e7b94\r\n{end}\r\n"
    )
    .into_bytes()
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub socket: TcpStream,
    unread: Vec<u8>,
    /// Whether it is there yet.
    pub connecting: bool,
    /// The request that it carries, by the number of its record.
    pub request: Option<usize>,
}

impl Connection {
    /// Begins to connect, without waiting.
    ///
    /// # Errors
    /// No descriptor left, or nobody listens.
    pub(super) fn begin(address: SocketAddr) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        let connecting = match connect(&socket, &address) {
            Ok(()) => false,
            Err(Errno::INPROGRESS) => true,
            Err(error) => return Err(error.into()),
        };
        Ok(Self {
            socket: socket.into(),
            unread: Vec::new(),
            connecting,
            request: None,
        })
    }

    /// Sends a whole request: it fits the buffer of a socket that carries one at a time.
    ///
    /// # Errors
    /// The peer has closed.
    pub(super) fn send(&mut self, text: &[u8]) -> io::Result<()> {
        self.unread.clear();
        self.socket.write_all(text)
    }

    /// Reads what is there; `None` while the answer is not whole.
    ///
    /// # Errors
    /// The peer has closed or speaks no HTTP.
    pub(super) fn receive(&mut self) -> io::Result<Option<Outcome>> {
        let mut chunk = [0; 2048];
        match self.socket.read(&mut chunk) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => self
                .unread
                .extend_from_slice(chunk.get(..count).unwrap_or(&[])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        }
        outcome(&self.unread)
    }
}

/// What an answer says, once it is whole.
fn outcome(bytes: &[u8]) -> io::Result<Option<Outcome>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let status = response
        .parse(bytes)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let httparse::Status::Complete(head) = status else {
        return Ok(None);
    };
    let length = response
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("content-length"))
        .and_then(|header| str::from_utf8(header.value).ok()?.parse().ok())
        .unwrap_or(0);
    if bytes.len() < head.saturating_add(length) {
        return Ok(None);
    }
    Ok(Some(match response.code {
        Some(200) => Outcome::Answered,
        Some(504) => Outcome::Failed,
        _ => Outcome::Refused,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_when_it_is_whole() {
        let ok = b"HTTP/1.1 200 -\r\nContent-Length: 5\r\n\r\ndone\n";
        assert_eq!(outcome(ok).unwrap(), Some(Outcome::Answered));
        assert_eq!(outcome(&ok[..ok.len() - 1]).unwrap(), None);
        assert_eq!(outcome(&ok[..9]).unwrap(), None);
        let failed = b"HTTP/1.1 504 -\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(outcome(failed).unwrap(), Some(Outcome::Failed));
        let refused = b"HTTP/1.1 503 Refused\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(outcome(refused).unwrap(), Some(Outcome::Refused));
        outcome(b"nonsense\r\n\r\n").unwrap_err();
    }
}
