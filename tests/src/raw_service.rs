//! A service that speaks the protocol itself, frame by frame: what no client of ours would say.

use std::error::Error;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recvmsg,
    sendmsg, socket_with,
};
use tidegate_abi::message::{Again, FRAME_MAX, Frame, HELLO_MAP, Message, Welcome};
use tidegate_segment::clock::monotonic_ns;

/// A connection, what it was welcomed with, and the files of the pages.
#[derive(Debug)]
pub struct RawService {
    _connection: OwnedFd,
    /// What the agent answered.
    pub welcome: Welcome,
    /// Board and ledger; nothing without a seat.
    pub files: Vec<OwnedFd>,
}

impl RawService {
    /// Says hello, and wants a seat.
    ///
    /// # Errors
    /// There is no agent, or it does not answer with a welcome.
    pub fn hello(runtime_dir: &Path) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let hello = Message::Hello {
            version: tidegate_abi::VERSION,
            flags: HELLO_MAP,
            now_ns: monotonic_ns(),
        };
        Self::say(runtime_dir, &hello.encode(), None)
    }

    /// Says that it had a seat on these pages.
    ///
    /// # Errors
    /// There is no agent, or it does not answer with a welcome.
    pub fn again(
        runtime_dir: &Path,
        (seat, seat_generation): (u32, u32),
        files: [&OwnedFd; 2],
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let again = Message::Again(Again {
            version: tidegate_abi::VERSION,
            seat,
            seat_generation,
            now_ns: monotonic_ns(),
        });
        Self::say(runtime_dir, &again.encode(), Some(files))
    }

    fn say(
        runtime_dir: &Path,
        frame: &Frame,
        files: Option<[&OwnedFd; 2]>,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        connect(
            &socket,
            &SocketAddrUnix::new(runtime_dir.join("gate.sock"))?,
        )?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let files = files.map(|files| files.map(|file| file.as_fd()));
        if let Some(files) = &files {
            ancillary.push(SendAncillaryMessage::ScmRights(files));
        }
        let bytes = [IoSlice::new(frame.bytes())];
        sendmsg(&socket, &bytes, &mut ancillary, SendFlags::NOSIGNAL)?;
        let mut bytes = [0; FRAME_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut bytes)];
        let received = recvmsg(&socket, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
        let files: Vec<OwnedFd> = ancillary.drain().flat_map(rights).collect();
        let answer = Message::decode(bytes.get(..received.bytes).unwrap_or_default());
        let Ok(Message::Welcome(welcome)) = answer else {
            return Err(format!("no welcome: {answer:?}").into());
        };
        Ok(Self {
            _connection: socket,
            welcome,
            files,
        })
    }
}

fn rights(message: RecvAncillaryMessage<'_>) -> Vec<OwnedFd> {
    let RecvAncillaryMessage::ScmRights(descriptors) = message else {
        return Vec::new();
    };
    descriptors.collect()
}
