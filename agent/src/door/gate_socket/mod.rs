//! The gate socket: frames of [`tidegate_abi::message`] over SEQPACKET.
//!
//! A service says hello and gets the descriptors of the pages, or asks here for each decision. A
//! decision is made in the connection's own task: no channel and no lock is between frame and gate.

mod connection;
mod fault;
mod hello;
mod stage;
mod turn;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use rustix::net::SocketType;
use tokio_seqpacket::{UnixSeqpacket, UnixSeqpacketListener};
use tracing::Instrument as _;

use super::accept::Failures;
use super::kind::{Door, DoorKind, Gathering, PagesLook, Working};
use super::settings::DoorSettings;
use super::socket_file::SocketFile;
use super::socket_path::PathError;
use crate::host::AgentState;
use crate::host::bounds::{Bounds, TOLD_WITHIN};
use crate::host::peer::Peer;
use crate::places::{HeldPlaces, Holder};
use fault::Fault;
use stage::{Curtain, Stage};
use wire::Wire;

/// Name of the socket in the directory of the sockets.
pub const FILE_NAME: &str = tidegate_abi::place::GATE_SOCKET;

/// Connections that may wait to be accepted; the kernel takes less where `net.core.somaxconn` is less.
const BACKLOG: i32 = 4096;

/// The gate socket, placed and listening.
#[derive(Debug)]
pub struct GateSocket {
    entrance: Entrance,
    curtain: Curtain,
}

/// Lets connections in.
#[derive(Debug)]
struct Entrance {
    listener: UnixSeqpacketListener,
    file: Box<SocketFile<UnixSeqpacketListener>>,
    bounds: Arc<Bounds>,
    failures: Failures,
    hello_deadline: Duration,
    stage: Stage,
}

/// This kind of door.
pub const DOOR: DoorKind = DoorKind {
    file_name: FILE_NAME,
    open: |settings, bounds| Ok(Box::new(GateSocket::open(settings, Arc::clone(bounds))?)),
};

impl GateSocket {
    /// Places the socket. Must run inside the runtime.
    ///
    /// # Errors
    /// Something lies at the path, or the file system refuses.
    pub fn open(settings: &DoorSettings, bounds: Arc<Bounds>) -> Result<Self, PathError> {
        let kind = (SocketType::SEQPACKET, BACKLOG);
        let take = UnixSeqpacketListener::try_from;
        let (file, listener) = SocketFile::place(settings, FILE_NAME, kind, take)?;
        let curtain = Curtain::closed();
        Ok(Self {
            entrance: Entrance {
                listener,
                file,
                bounds,
                failures: Failures::new(FILE_NAME),
                hello_deadline: settings.hello_deadline,
                stage: curtain.stage(),
            },
            curtain,
        })
    }

    async fn let_hand_back(&mut self, limit: Duration, look: PagesLook<'_>) {
        let Self { entrance, curtain } = self;
        let offers = async { while !look(curtain.offer().await) {} };
        tokio::select! {
            () = entrance.let_in() => {}
            () = offers => {}
            () = tokio::time::sleep(limit) => {}
        }
    }

    async fn answer(mut self, agent: Arc<AgentState>) {
        self.entrance.bounds = Arc::clone(&agent.bounds);
        self.curtain.open(agent);
        self.entrance.let_in().await;
    }
}

impl Door for GateSocket {
    fn gather<'d>(&'d mut self, limit: Duration, look: PagesLook<'d>) -> Gathering<'d> {
        Box::pin(self.let_hand_back(limit, look))
    }

    fn serve(self: Box<Self>, agent: Arc<AgentState>) -> Working<'static> {
        Box::pin(self.answer(agent))
    }
}

impl Entrance {
    /// Never ends.
    async fn let_in(&mut self) {
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok(socket) => self.begin(socket),
                    Err(error) => self.failures.wait_after(&error).await,
                },
                listener = self.file.made_again() => self.listener = listener,
            }
        }
    }

    fn begin(&self, socket: UnixSeqpacket) {
        let holder = holder(&socket);
        match self.bounds.gate_connections.take(holder) {
            Ok(place) => {
                let stage = self.stage.clone();
                let served = serve(stage, socket, self.hello_deadline, place);
                let Holder { uid, pid } = holder;
                let connection = tracing::info_span!("connection", pid, uid);
                drop(tokio::spawn(served.instrument(connection)));
            }
            Err(no_place) => {
                // Who finds no place here either hears nothing: telling takes memory and files, too.
                if let Ok(told) = self.bounds.told.take(holder) {
                    tokio::spawn(refuse(socket, Fault::busy(&no_place), told));
                }
            }
        }
    }
}

/// One whom the kernel does not name counts as nobody's.
fn holder(socket: &UnixSeqpacket) -> Holder {
    let unknown = Holder {
        uid: u32::MAX,
        pid: 0,
    };
    Peer::of(socket).map_or(unknown, Peer::holder)
}

async fn serve(stage: Stage, socket: UnixSeqpacket, hello_deadline: Duration, place: HeldPlaces) {
    if let Err(error) = connection::serve(stage, socket, hello_deadline).await {
        tracing::debug!(event = "connection_ended", %error, "a connection to the gate socket ended");
    }
    drop(place);
}

/// Tells a connection over the bound why it is not served. Its hello is read, since one that is left unread would
/// break the connection before the fault is heard.
async fn refuse(socket: UnixSeqpacket, fault: Fault, told: HeldPlaces) {
    let mut wire = Wire::new(socket);
    wire.put(fault.frame());
    let heard = async {
        wire.send().await?;
        wire.receive().await
    };
    match tokio::time::timeout(TOLD_WITHIN, heard).await {
        Ok(Ok(_hello_or_end)) => {}
        Ok(Err(error)) => {
            tracing::debug!(event = "turned_away_unheard", %error, "a connection over the bound did not take its answer");
        }
        Err(_silent) => {}
    }
    drop(told);
}

#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod rule_tests;
#[cfg(test)]
mod tests;
