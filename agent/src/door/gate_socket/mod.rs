//! The gate socket: frames of [`tidegate_abi::message`] over SEQPACKET.
//!
//! A service says hello and gets the descriptors of the pages, or asks here for each decision. A
//! decision is made in the connection's own task: no channel and no lock is between frame and gate.

mod connection;
mod fault;
mod hello;
mod turn;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use rustix::net::SocketType;
use tokio_seqpacket::{UnixSeqpacket, UnixSeqpacketListener};

use super::accept::Failures;
use super::peer::Peer;
use super::places::{NoPlace, Place, Places};
use super::socket_path::{self, PathError};
use super::{Context, Settings};
use fault::Fault;
use wire::Wire;

/// Name of the socket in the directory of the sockets.
pub const FILE_NAME: &str = "gate.sock";

/// Connections that may wait to be accepted; the kernel takes less where `net.core.somaxconn` is less.
const BACKLOG: i32 = 4096;

/// The gate socket, placed and listening.
#[derive(Debug)]
pub struct GateSocket {
    listener: UnixSeqpacketListener,
    connections_max: usize,
    hello_deadline: Duration,
}

impl GateSocket {
    /// Places the socket. Must run inside the runtime.
    ///
    /// # Errors
    /// Something lies at the path, or the file system refuses.
    pub fn open(settings: &Settings) -> Result<Self, PathError> {
        let path = settings.directory.join(FILE_NAME);
        socket_path::clear(&path, SocketType::SEQPACKET)?;
        let listener = UnixSeqpacketListener::bind_with_backlog(&path, BACKLOG)
            .map_err(socket_path::refused(&path, "cannot listen"))?;
        socket_path::open_to(&path, &settings.access)?;
        Ok(Self {
            listener,
            connections_max: settings.connections_max,
            hello_deadline: settings.hello_deadline,
        })
    }

    /// Answers until it is dropped.
    pub async fn serve(mut self, context: Arc<Context>) {
        let places = Places::new(self.connections_max);
        let mut failures = Failures::new(FILE_NAME);
        loop {
            match self.listener.accept().await {
                Ok(socket) => match take_place(&places, &socket) {
                    Ok(place) => self.begin(&context, socket, place),
                    Err(no_place) => refuse(socket, no_place),
                },
                Err(error) => failures.wait_after(&error).await,
            }
        }
    }

    fn begin(&self, context: &Arc<Context>, socket: UnixSeqpacket, place: Place) {
        let context = Arc::clone(context);
        let deadline = self.hello_deadline;
        tokio::spawn(async move {
            if let Err(error) = connection::serve(&context, socket, deadline).await {
                tracing::debug!(%error, "a connection to the gate socket ended");
            }
            drop(place);
        });
    }
}

/// A place for the user at the other end; one whom the kernel does not name counts as nobody's.
fn take_place(places: &Arc<Places>, socket: &UnixSeqpacket) -> Result<Place, NoPlace> {
    let uid = Peer::of(socket).map_or(u32::MAX, |peer| peer.uid);
    places.take(uid)
}

/// Tells a connection over the bound why it is not served.
fn refuse(socket: UnixSeqpacket, no_place: NoPlace) {
    let mut wire = Wire::new(socket);
    wire.put(Fault::busy(&no_place).frame());
    tokio::spawn(async move {
        // A fresh socket has room for a frame, so this does not wait for the peer.
        if let Err(error) = wire.send().await {
            tracing::debug!(%error, "a connection over the bound was not told so");
        }
    });
}

#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod rule_tests;
#[cfg(test)]
mod tests;
