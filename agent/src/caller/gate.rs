//! The gate socket, seen from the caller.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with,
};
use tidegate_abi::decision::Outcome;
use tidegate_abi::message::{EnterAnswer, EnterRequest, FRAME_MAX, Message, TOKEN};
use tidegate_segment::clock::monotonic_ns;

use super::NoAnswer;
use crate::door::gate_socket;

/// Longest wait for an answer: more than the longest wait of a pacing rule.
const DEADLINE: Duration = Duration::from_mins(1);

/// A connection to the gate socket that asks for each decision.
#[derive(Debug)]
pub struct GateConnection {
    socket: OwnedFd,
    buffer: Box<[u8; FRAME_MAX]>,
}

impl GateConnection {
    /// Connects to the agent in a runtime directory and says hello.
    ///
    /// # Errors
    /// Nobody listens there, or the agent does not want this caller.
    pub fn connect(directory: &Path) -> Result<Self, NoAnswer> {
        let path = directory.join(gate_socket::FILE_NAME);
        let way = super::way(directory, &path)?;
        let socket = open(&path);
        let socket = socket.map_err(|error| NoAnswer::Connect {
            path: path.clone(),
            error,
        })?;
        super::trusted(&way, &socket, &path)?;
        let mut caller = Self {
            socket,
            buffer: Box::new([0; FRAME_MAX]),
        };
        let hello = Message::Hello {
            version: tidegate_abi::VERSION,
            flags: 0,
            now_ns: monotonic_ns(),
        };
        let answer = caller.ask(&hello)?;
        let Message::Welcome(_) = answer else {
            return Err(unexpected(&answer));
        };
        Ok(caller)
    }

    /// Asks for a permit.
    ///
    /// # Errors
    /// The agent gave no answer, or found the question faulty.
    pub fn enter(&mut self, ask: EnterRequest<'_>) -> Result<EnterAnswer<'_>, NoAnswer> {
        let answer = self.ask(&Message::Enter(ask))?;
        let Message::Verdict(verdict) = answer else {
            return Err(unexpected(&answer));
        };
        Ok(verdict)
    }

    /// Gives a permit back.
    ///
    /// # Errors
    /// The agent gave no answer, or has no such permit.
    pub fn exit(&mut self, token: [u8; TOKEN], outcome: Outcome) -> Result<(), NoAnswer> {
        let answer = self.ask(&Message::Exit { token, outcome })?;
        let Message::Exited = answer else {
            return Err(unexpected(&answer));
        };
        Ok(())
    }

    /// Waits for a time in which nothing comes.
    ///
    /// # Errors
    /// The agent ended the connection meanwhile.
    pub fn wait(&mut self, time: Duration) -> Result<(), NoAnswer> {
        if time.is_zero() {
            return Ok(());
        }
        set_socket_timeout(&self.socket, Timeout::Recv, Some(time)).map_err(io::Error::from)?;
        let silent = match self.receive() {
            Err(NoAnswer::Broken(error)) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
            Ok(message) => Err(unexpected(&message)),
        };
        set_socket_timeout(&self.socket, Timeout::Recv, Some(DEADLINE)).map_err(io::Error::from)?;
        silent
    }

    fn ask(&mut self, question: &Message<'_>) -> Result<Message<'_>, NoAnswer> {
        send(&self.socket, question.encode().bytes(), SendFlags::NOSIGNAL)
            .map_err(io::Error::from)?;
        self.receive()
    }

    fn receive(&mut self) -> Result<Message<'_>, NoAnswer> {
        let (length, _whole) = recv(&self.socket, self.buffer.as_mut_slice(), RecvFlags::empty())
            .map_err(io::Error::from)?;
        let frame = self.buffer.get(..length).unwrap_or_default();
        if frame.is_empty() {
            return Err(NoAnswer::Closed);
        }
        match Message::decode(frame) {
            Ok(Message::Fault { text, .. }) => Err(NoAnswer::Fault(text.to_owned())),
            Ok(message) => Ok(message),
            Err(fault) => Err(NoAnswer::Unexpected(format!("{fault:?}"))),
        }
    }
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    connect(&socket, &address)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(DEADLINE))?;
    Ok(socket)
}

fn unexpected(message: &Message<'_>) -> NoAnswer {
    NoAnswer::Unexpected(format!("{message:?}"))
}
