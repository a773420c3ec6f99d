//! The beginning of a connection: hello, seat, welcome.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tidegate_abi::VERSION;
use tidegate_abi::message::{Frame, HELLO_MAP, Message, NO_SEAT, Welcome};
use tidegate_segment::board::Process;
use tidegate_segment::clock::monotonic_ns;
use tidegate_segment::os::memfd;

use super::fault::Fault;
use crate::host::peer::Peer;
use crate::tenant::past_life::HandedBack;
use crate::tenant::seat_life::{self, SeatGuard};
use crate::tenant::seats::Seat;
use crate::tenant::{HOST, Tenant};

/// A service's clock that differs by more is in another time namespace, ns. A hello may have waited in
/// the socket, so a little is no sign; the service itself compares with the time in the welcome.
const CLOCK_APART_NS: u64 = 60_000_000_000;

/// How long a service that is new waits for those of the last life, less than it waits for its welcome.
const NEW_WAIT_FOR: Duration = Duration::from_millis(700);

/// What a hello asks for.
#[derive(Debug)]
pub(super) struct Hello {
    /// Whether the service wants to map the pages.
    map: bool,
    now_ns: u64,
    /// What one that was seated before hands back.
    back: Option<Back>,
}

/// The pages that a service still maps, and its seat on them.
#[derive(Debug)]
pub(super) struct Back {
    seat: Seat,
    /// Board and ledger.
    pub(super) files: Arc<[OwnedFd; 2]>,
}

impl Hello {
    /// Checks the first frame of a connection, and the descriptors that came with it.
    pub(super) fn of(message: Message<'_>, files: Option<[OwnedFd; 2]>) -> Result<Self, Fault> {
        match message {
            Message::Hello {
                version,
                flags,
                now_ns,
            } => {
                check_version(version)?;
                if flags & !HELLO_MAP != 0 {
                    return Err(Fault::flags(flags));
                }
                Ok(Self {
                    map: flags & HELLO_MAP != 0,
                    now_ns,
                    back: None,
                })
            }
            Message::Again(again) => {
                check_version(again.version)?;
                let files = files.ok_or_else(Fault::no_pages)?;
                let seat = Seat {
                    index: again.seat,
                    generation: again.seat_generation,
                };
                Ok(Self {
                    map: true,
                    now_ns: again.now_ns,
                    back: Some(Back {
                        seat,
                        files: Arc::new(files),
                    }),
                })
            }
            Message::Welcome(_)
            | Message::Resolve { .. }
            | Message::Resolved { .. }
            | Message::Enter(_)
            | Message::Verdict(_)
            | Message::Exit { .. }
            | Message::Exited
            | Message::Fault { .. }
            | Message::ResolvePart { .. }
            | Message::Rule { .. }
            | Message::Ruled { .. }
            | Message::Watch { .. }
            | Message::Watched
            | Message::Held { .. }
            | Message::Resume { .. } => Err(Fault::before_hello()),
        }
    }

    /// Board and ledger, where they were handed back.
    pub(super) fn files(&self) -> Option<&Arc<[OwnedFd; 2]>> {
        self.back.as_ref().map(|back| &back.files)
    }

    /// Seats the peer, if it wants to map the pages and can be seated. Whoever gets no seat is served
    /// over the socket, and why is told in the status.
    pub(super) async fn seat(
        self,
        tenant: &Arc<Tenant>,
        peer: Peer,
        pidfd: Option<OwnedFd>,
    ) -> (Option<SeatGuard>, Option<String>) {
        if !self.map {
            return (None, None);
        }
        if self.now_ns.abs_diff(monotonic_ns()) > CLOCK_APART_NS {
            let why = "its clock is another time namespace's";
            tracing::info!(
                event = "client_without_seat",
                pid = peer.pid,
                "no seat: {why}"
            );
            return (None, Some(why.to_owned()));
        }
        let process = Process {
            pid: peer.pid,
            start: seat_life::start_time(peer.pid).unwrap_or(0),
            uid: peer.uid,
            scope: HOST,
        };
        if let Some(back) = &self.back
            && let Some(seated) = back.claim(tenant, &process)
        {
            return (Some(seated), None);
        }
        if let Some(back) = self.back {
            back.count(tenant, process).await;
        }
        tenant.kept().give_up_one_of(&process);
        if !tenant.kept().settled(NEW_WAIT_FOR).await {
            let why = "services of the agent's last life have not come back yet";
            tracing::info!(
                event = "client_without_seat",
                pid = peer.pid,
                "no seat: {why}; served over the socket"
            );
            return (None, Some(why.to_owned()));
        }
        match seat_life::seat(tenant, process, pidfd) {
            Ok(seated) => (Some(seated), None),
            Err(no_seat) => {
                tracing::debug!(event = "client_without_seat", pid = peer.pid, %no_seat, "no seat: served over the socket");
                (None, Some(no_seat.to_string()))
            }
        }
    }
}

impl Back {
    /// The seat that it had, if it was kept and what came with it are its pages.
    fn claim(&self, tenant: &Tenant, process: &Process) -> Option<SeatGuard> {
        let [board, ledger] = self.files.each_ref().map(memfd::identify);
        let place = tenant.names().place(board.ok()?, ledger.ok()?);
        // Who has the board in force already has come and lost its seat since.
        place.filter(|place| *place > 0)?;
        tenant.kept().claim(self.seat, process)
    }
}

impl Back {
    /// Lets what is in flight on its pages count here, if they are of an earlier life.
    async fn count(self, tenant: &Arc<Tenant>, process: Process) {
        let tenant = Arc::clone(tenant);
        let runtime = tokio::runtime::Handle::current();
        let counted = tokio::task::spawn_blocking(move || {
            let _within = runtime.enter();
            let back = HandedBack {
                files: &self.files,
                process,
                seat: Some(self.seat),
            };
            // What is refused is told there.
            tenant.count_earlier(&back).is_ok()
        });
        if counted.await.is_err() {
            tracing::warn!(
                event = "pages_refused",
                pid = process.pid,
                "pages that were handed back are not looked at"
            );
        }
    }
}

fn check_version(version: u32) -> Result<(), Fault> {
    if version == VERSION {
        Ok(())
    } else {
        Err(Fault::version(version))
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
