//! Frames of one connection, in two buffers that are used over and over.

use std::io;
use std::os::fd::OwnedFd;

use tidegate_abi::message::{FRAME_MAX, Frame, Message};
use tokio_seqpacket::UnixSeqpacket;
use tokio_seqpacket::ancillary::{AncillaryMessageWriter, OwnedAncillaryMessage};

use super::fault::Fault;
use crate::tenant::PageFiles;

/// A socket and its buffers. They are on the heap, so that a waiting connection is small.
#[derive(Debug)]
pub(super) struct Wire {
    socket: UnixSeqpacket,
    input: Box<[u8; FRAME_MAX]>,
    length: usize,
    truncated: bool,
    output: Box<Frame>,
}

impl Wire {
    pub(super) fn new(socket: UnixSeqpacket) -> Self {
        Self {
            socket,
            input: Box::new([0; FRAME_MAX]),
            length: 0,
            truncated: false,
            output: Box::new(Message::Exited.encode()),
        }
    }

    pub(super) const fn socket(&self) -> &UnixSeqpacket {
        &self.socket
    }

    /// Waits for a frame; false at the end of the connection. An empty packet reads like the end,
    /// and no frame is empty.
    pub(super) async fn receive(&mut self) -> io::Result<bool> {
        let info = self.socket.recv(self.input.as_mut_slice()).await?;
        (self.length, self.truncated) = (info.bytes_read(), info.truncated());
        Ok(self.length > 0)
    }

    /// Waits for the first frame and for the two descriptors that may come with it; the kernel closes what there is
    /// no room for.
    pub(super) async fn receive_first(&mut self) -> io::Result<(bool, Option<[OwnedFd; 2]>)> {
        let mut space = [0; 64];
        let received = self
            .socket
            .recv_with_ancillary(self.input.as_mut_slice(), &mut space);
        let (info, ancillary) = received.await?;
        (self.length, self.truncated) = (info.bytes_read(), info.truncated());
        let files = ancillary
            .into_messages()
            .filter_map(|message| match message {
                OwnedAncillaryMessage::FileDescriptors(files) => Some(files),
                OwnedAncillaryMessage::Other(_) => None,
            });
        let files: Vec<OwnedFd> = files.flatten().collect();
        Ok((self.length > 0, <[OwnedFd; 2]>::try_from(files).ok()))
    }

    /// The frame that was received.
    pub(super) fn message(&self) -> Result<Message<'_>, Fault> {
        if self.truncated {
            return Err(Fault::oversized());
        }
        let bytes = self.input.get(..self.length).unwrap_or(&[]);
        Message::decode(bytes).map_err(|fault| Fault::unreadable(fault, self.length))
    }

    /// Puts a frame in place for [`Wire::send`].
    pub(super) fn put(&mut self, frame: Frame) {
        *self.output = frame;
    }

    /// Sends the frame that was put in place.
    pub(super) async fn send(&self) -> io::Result<()> {
        self.socket.send(self.output.bytes()).await.map(|_sent| ())
    }

    /// Sends the frame that was put in place, and the descriptors of the pages with it.
    pub(super) async fn send_with(&self, files: &PageFiles) -> io::Result<()> {
        let mut buffer = [0; 64];
        let mut descriptors = AncillaryMessageWriter::new(&mut buffer);
        descriptors
            .add_fds([&files.board, &files.ledger])
            .map_err(|_no_room| io::Error::other("no room for two descriptors"))?;
        let bytes = self.output.bytes();
        let sent = self.socket.send_with_ancillary(bytes, &mut descriptors);
        sent.await.map(|_sent| ())
    }
}
