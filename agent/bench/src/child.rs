//! A second process of the bench: this program again, in a hidden role, on the other end of a socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, Command, Stdio};

use clap::ValueEnum;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use crate::figure::NoFigure;
use crate::pages::{Pages, View};

/// Hidden subcommand that [`serve`](crate::serve) answers.
pub const SUBCOMMAND: &str = "part";

/// Longest message between the processes, bytes.
const MESSAGE_MAX: usize = 64 * 1024;

/// Descriptors of a pair of pages.
const FILES: usize = 2;

/// What the second process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Sends every message back.
    Echo,
    /// Decides on the same resource.
    Decide,
    /// Watches the board for publishes.
    Watch,
}

/// The end of the socket that is this process's standard input.
pub(crate) fn line_of_parent() -> Result<Line, NoFigure> {
    let socket = io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map_err(NoFigure::kernel("dup"))?;
    Ok(Line { socket })
}

/// One end of the socket between the processes.
#[derive(Debug)]
pub(crate) struct Line {
    socket: OwnedFd,
}

/// The second process, seen from the first. Dropped, it ends.
#[derive(Debug)]
pub(crate) struct Part {
    process: Child,
    pub(crate) line: Line,
}

impl Part {
    /// Starts this program in a role.
    pub(crate) fn start(role: Role) -> Result<Self, NoFigure> {
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(|errno| NoFigure::kernel("socketpair")(errno.into()))?;
        let program = std::env::current_exe().map_err(NoFigure::kernel("current_exe"))?;
        let role = role.to_possible_value();
        let role = role.as_ref().map_or("", |value| value.get_name());
        let process = Command::new(program)
            .args([SUBCOMMAND, role])
            .stdin(Stdio::from(theirs))
            .spawn()
            .map_err(NoFigure::kernel("starting a second process"))?;
        Ok(Self {
            process,
            line: Line { socket: ours },
        })
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing is left of it after the wait.
        let _ended: io::Result<()> = self.process.kill();
        let _status: io::Result<std::process::ExitStatus> = self.process.wait();
    }
}

impl Line {
    /// Sends one message.
    pub(crate) fn send(&self, message: &[u8]) -> Result<(), NoFigure> {
        rustix::net::send(&self.socket, message, SendFlags::NOSIGNAL)
            .map_err(|errno| NoFigure::kernel("send")(errno.into()))?;
        Ok(())
    }

    /// Waits for a message; the empty one means that the other side has ended.
    pub(crate) fn receive<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b [u8], NoFigure> {
        let (length, _whole) = rustix::net::recv(&self.socket, &mut *buffer, RecvFlags::empty())
            .map_err(|errno| NoFigure::kernel("recv")(errno.into()))?;
        Ok(buffer.get(..length).unwrap_or_default())
    }

    /// Sends some numbers as one message.
    pub(crate) fn send_numbers(&self, numbers: &[u64]) -> Result<(), NoFigure> {
        let bytes: Vec<u8> = numbers
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        self.send(&bytes)
    }

    /// Waits for a message of numbers; `None` when the other side has ended.
    pub(crate) fn receive_numbers(&self) -> Result<Option<Vec<u64>>, NoFigure> {
        let mut buffer = vec![0; MESSAGE_MAX];
        let bytes = self.receive(&mut buffer)?;
        let (numbers, _rest) = bytes.as_chunks::<8>();
        let numbers = numbers.iter().copied().map(u64::from_le_bytes).collect();
        Ok((!bytes.is_empty()).then_some(numbers))
    }

    /// As [`Line::receive_numbers`], for exactly `N` of them; the other side must not have ended.
    pub(crate) fn receive_exactly<const N: usize>(&self) -> Result<[u64; N], NoFigure> {
        let numbers = self.receive_numbers()?.unwrap_or_default();
        numbers.try_into().map_err(|numbers: Vec<u64>| {
            NoFigure::Wrong(format!(
                "the second process sent {} numbers, {N} were due; see its message above",
                numbers.len()
            ))
        })
    }

    /// Sends the descriptors of a pair of pages, as the agent does in its welcome.
    pub(crate) fn send_pages(&self, pages: &Pages) -> Result<(), NoFigure> {
        let files = [pages.board_file.as_fd(), pages.ledger_file.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&files));
        let bytes = [IoSlice::new(b"pages")];
        sendmsg(&self.socket, &bytes, &mut control, SendFlags::NOSIGNAL)
            .map_err(|errno| NoFigure::kernel("sendmsg")(errno.into()))?;
        Ok(())
    }

    /// Receives and maps a pair of pages.
    pub(crate) fn receive_pages(&self) -> Result<View, NoFigure> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut bytes = [0; 8];
        let mut parts = [IoSliceMut::new(&mut bytes)];
        recvmsg(
            &self.socket,
            &mut parts,
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )
        .map_err(|errno| NoFigure::kernel("recvmsg")(errno.into()))?;
        let mut files = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                files.extend(rights);
            }
        }
        let [board, ledger] = files.as_slice() else {
            return Err(NoFigure::Wrong(format!(
                "{} descriptors came, {FILES} were due",
                files.len()
            )));
        };
        View::open(board, ledger)
    }
}
