//! The beginning of a connection: hello, seat, welcome.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use tidegate_abi::VERSION;
use tidegate_abi::message::{Frame, HELLO_MAP, Message, NO_SEAT, Welcome};
use tidegate_segment::board::Process;
use tidegate_segment::clock::monotonic_ns;

use super::fault::Fault;
use crate::door::peer::Peer;
use crate::tenant::seat_life::{self, Seated};
use crate::tenant::seats::Seat;
use crate::tenant::{HOST, Tenant};

/// A service's clock that differs by more is in another time namespace, ns. A hello may have waited in
/// the socket, so a little is no sign; the service itself compares with the time in the welcome.
const CLOCK_APART_NS: u64 = 60_000_000_000;

/// What a hello asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hello {
    /// Whether the service wants to map the pages.
    map: bool,
    now_ns: u64,
}

impl Hello {
    /// Checks the first frame of a connection.
    pub(super) fn of(message: Message<'_>) -> Result<Self, Fault> {
        let Message::Hello {
            version,
            flags,
            now_ns,
        } = message
        else {
            return Err(Fault::before_hello());
        };
        if version != VERSION {
            return Err(Fault::version(version));
        }
        if flags & !HELLO_MAP != 0 {
            return Err(Fault::flags(flags));
        }
        Ok(Self {
            map: flags & HELLO_MAP != 0,
            now_ns,
        })
    }

    /// Seats the peer, if it wants to map the pages and can be seated. Whoever gets no seat is served
    /// over the socket.
    pub(super) fn seat(
        self,
        tenant: &Arc<Tenant>,
        peer: Peer,
        pidfd: Option<OwnedFd>,
    ) -> Option<Seated> {
        if !self.map {
            return None;
        }
        if self.now_ns.abs_diff(monotonic_ns()) > CLOCK_APART_NS {
            tracing::info!(
                pid = peer.pid,
                "no seat: its clock is another time namespace's"
            );
            return None;
        }
        let process = Process {
            pid: peer.pid,
            start: seat_life::start_time(peer.pid).unwrap_or(0),
            uid: peer.uid,
            scope: HOST,
        };
        match seat_life::seat(tenant, process, pidfd) {
            Ok(seated) => Some(seated),
            Err(no_seat) => {
                tracing::debug!(pid = peer.pid, %no_seat, "no seat: served over the socket");
                None
            }
        }
    }
}

/// The welcome. With a seat the descriptors of the pages go with it.
pub(super) fn welcome(tenant: &Tenant, seat: Option<Seat>, scope: u32) -> Frame {
    let board = tenant.board();
    let geometry = board.geometry();
    let words = |words: usize| u64::try_from(words).unwrap_or(u64::MAX);
    Message::Welcome(Welcome {
        version: VERSION,
        seat: seat.map_or(NO_SEAT, |seat| seat.index),
        seat_generation: seat.map_or(0, |seat| seat.generation),
        scope,
        board_words: words(geometry.board().words),
        ledger_words: words(geometry.ledger().words),
        board_generation: board.generation(),
        now_ns: monotonic_ns(),
    })
    .encode()
}
