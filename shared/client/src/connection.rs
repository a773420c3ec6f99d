//! The socket to the agent: connect, say hello, take the pages, exchange frames.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    recvmsg, send, sendmsg, socket_with,
};
use tidegate_abi::message::{
    Again, FRAME_MAX, FaultCode, Frame, HELLO_MAP, Message, NO_SEAT, Welcome,
};
use tidegate_segment::clock;
use tidegate_segment::os::way::TrustedPath;

use crate::error::ConnectFault;
use crate::pages::{self, Pages};
use crate::seat::SeatedGate;

/// How long the agent may take to answer a hello.
const WELCOME_WITHIN: Duration = Duration::from_secs(1);

/// The same for an agent that was started anew: it waits for those who hold pages, and reads its rules, before it
/// answers any of them.
const WELCOME_AGAIN_WITHIN: Duration = Duration::from_secs(5);

/// The agent tells its time between a hello and the welcome. Where that is further than this outside of the two, its
/// clock is another time namespace's.
const SAME_CLOCK_NS: u64 = 1_000_000;

/// A connection to the agent. Its end gives the seat up.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: OwnedFd,
}

/// A seat with its pages; on the heap, since it is large and most of what passes it on is not.
type OwnSeat = Box<(SeatedGate, Pages)>;

/// A welcome and the descriptors that came with it.
type Greeting = (Welcome, Vec<OwnedFd>);

/// A packet that came from the agent.
struct Packet {
    bytes: Box<[u8; FRAME_MAX]>,
    length: usize,
    descriptors: Vec<OwnedFd>,
}

impl Packet {
    fn message(&self) -> Result<Message<'_>, ConnectFault> {
        let bytes = self.bytes.get(..self.length).unwrap_or(&[]);
        Message::decode(bytes).map_err(ConnectFault::Frame)
    }
}

impl Connection {
    /// Connects to the agent's socket and takes a seat, if the agent gives one. `held` are the pages of the session
    /// before, which are handed back to an agent that was started anew.
    ///
    /// # Errors
    /// See [`ConnectFault`]; nothing stays mapped or open then.
    pub(crate) fn open(
        path: &Path,
        held: Option<&Pages>,
    ) -> Result<(Self, Option<OwnSeat>), ConnectFault> {
        let (connection, asked_ns, (welcome, descriptors)) = Self::greeted(path, held)?;
        if welcome.seat == NO_SEAT {
            return Ok((connection, None));
        }
        let offset_ns = clock_offset_ns(welcome.now_ns, asked_ns..=clock::monotonic_ns());
        match pages::take(welcome, descriptors, held)? {
            Some((gate, pages)) => {
                let seat = Box::new((SeatedGate { gate, offset_ns }, pages));
                Ok((connection, Some(seat)))
            }
            None => Ok((Self::open_to_ask(path)?, None)),
        }
    }

    /// Connects and says hello, or hello again; when that was, and what came back.
    fn greeted(path: &Path, held: Option<&Pages>) -> Result<(Self, u64, Greeting), ConnectFault> {
        if let Some(pages) = held {
            let connection = Self::dial(path)?;
            let asked_ns = clock::monotonic_ns();
            match connection.greet_again(pages) {
                // It does not know the frame.
                Err(ConnectFault::Fault { code, .. }) if code != FaultCode::Busy => {}
                greeting => return Ok((connection, asked_ns, greeting?)),
            }
        }
        let connection = Self::dial(path)?;
        let asked_ns = clock::monotonic_ns();
        let greeting = connection.greet(HELLO_MAP)?;
        Ok((connection, asked_ns, greeting))
    }

    /// Connects to the agent's socket to ask there for each decision.
    ///
    /// # Errors
    /// See [`ConnectFault`]; nothing stays open then.
    pub(crate) fn open_to_ask(path: &Path) -> Result<Self, ConnectFault> {
        let connection = Self::dial(path)?;
        connection.greet(0)?;
        Ok(connection)
    }

    /// Says hello and waits for the welcome and its descriptors.
    fn greet(&self, flags: u32) -> Result<Greeting, ConnectFault> {
        if let Err(error) = self.send(&hello(flags)) {
            return self.last_word(error);
        }
        self.welcome(WELCOME_WITHIN)
    }

    /// What the agent said before it ended the connection; `error` if it said nothing.
    fn last_word(&self, error: ConnectFault) -> Result<Greeting, ConnectFault> {
        greeting(self.packet().map_err(|_silent| error)?)
    }

    /// The same for one that was seated before.
    fn greet_again(&self, pages: &Pages) -> Result<Greeting, ConnectFault> {
        let again = Message::Again(Again {
            version: tidegate_abi::VERSION,
            seat: pages.seat,
            seat_generation: pages.seat_generation,
            now_ns: clock::monotonic_ns(),
        });
        let files = [&pages.board_file, &pages.ledger_file];
        if let Err(error) = self.send_with(&again.encode(), files) {
            return self.last_word(error);
        }
        self.welcome(WELCOME_AGAIN_WITHIN)
    }

    fn welcome(&self, limit: Duration) -> Result<Greeting, ConnectFault> {
        greeting(self.answer(limit)?)
    }

    fn send_with(&self, frame: &Frame, files: [&OwnedFd; 2]) -> Result<(), ConnectFault> {
        let files = files.map(OwnedFd::as_fd);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !ancillary.push(SendAncillaryMessage::ScmRights(&files)) {
            return Err(broken("send")(Errno::NOBUFS));
        }
        let bytes = [IoSlice::new(frame.bytes())];
        rustix::io::retry_on_intr(|| {
            sendmsg(&self.socket, &bytes, &mut ancillary, SendFlags::NOSIGNAL)
        })
        .map(drop)
        .map_err(broken("send"))
    }

    fn dial(path: &Path) -> Result<Self, ConnectFault> {
        let fault = |call| {
            move |errno: Errno| ConnectFault::Socket {
                path: path.to_owned(),
                call,
                source: errno.into(),
            }
        };
        let way =
            TrustedPath::to(path.parent().unwrap_or(path)).map_err(|untrusted| match untrusted
                .errno()
            {
                Some(errno) => fault("directory")(errno),
                None => ConnectFault::Way(Box::new(untrusted)),
            })?;
        // Non-blocking: neither a full backlog nor a stopped agent may hold the caller.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
            .map_err(fault("socket"))?;
        let address = SocketAddrUnix::new(path).map_err(fault("address"))?;
        rustix::net::connect(&socket, &address).map_err(fault("connect"))?;
        // Who listens, as the kernel knows it; nobody else is believed, whatever lies there.
        let peer = socket_peercred(&socket).map_err(fault("peer"))?;
        let uid = peer.uid.as_raw();
        if !way.trusts(uid) {
            let path = path.to_owned();
            return Err(ConnectFault::Peer { path, uid });
        }
        Ok(Self { socket })
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// The agent is gone, or takes nothing any more.
    pub(crate) fn send(&self, frame: &Frame) -> Result<(), ConnectFault> {
        rustix::io::retry_on_intr(|| send(&self.socket, frame.bytes(), SendFlags::NOSIGNAL))
            .map(drop)
            .map_err(broken("send"))
    }

    /// Takes the next message, which must have come already, and hands it to `handle`.
    ///
    /// # Errors
    /// The end of the connection, or a packet that is not a message.
    pub(crate) fn receive<T>(
        &self,
        handle: impl FnOnce(Message<'_>) -> Result<T, ConnectFault>,
    ) -> Result<T, ConnectFault> {
        handle(self.packet()?.message()?)
    }

    /// Sends a question, waits for its answer at most `limit`, and hands it to `handle`.
    ///
    /// # Errors
    /// No answer in time, the end of the connection, or a packet that is not a message. The next
    /// packet may be this answer then, so the connection is of no use any more.
    pub(crate) fn ask<T>(
        &self,
        question: &Frame,
        limit: Duration,
        handle: impl FnOnce(Message<'_>) -> Result<T, ConnectFault>,
    ) -> Result<T, ConnectFault> {
        handle(self.exchange(question, limit)?.message()?)
    }

    fn exchange(&self, question: &Frame, limit: Duration) -> Result<Packet, ConnectFault> {
        self.send(question)?;
        self.answer(limit)
    }

    fn answer(&self, limit: Duration) -> Result<Packet, ConnectFault> {
        if !readable(self.as_fd(), limit)? {
            return Err(ConnectFault::Silent(limit.as_millis()));
        }
        self.packet()
    }

    fn packet(&self) -> Result<Packet, ConnectFault> {
        match self.take_packet() {
            // That the connection is gone is told once, before what lies there to be read.
            Err(ConnectFault::Ended) => self.take_packet(),
            taken => taken,
        }
    }

    fn take_packet(&self) -> Result<Packet, ConnectFault> {
        let mut bytes = Box::new([0; FRAME_MAX]);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = rustix::io::retry_on_intr(|| {
            recvmsg(
                &self.socket,
                &mut [IoSliceMut::new(bytes.as_mut_slice())],
                &mut ancillary,
                RecvFlags::CMSG_CLOEXEC,
            )
        })
        .map_err(broken("receive"))?;
        let descriptors = take_descriptors(&mut ancillary);
        if received.bytes == 0 {
            return Err(ConnectFault::Ended);
        }
        if received
            .flags
            .intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC)
        {
            return Err(ConnectFault::Unexpected("more than a frame has room for"));
        }
        Ok(Packet {
            bytes,
            length: received.bytes,
            descriptors,
        })
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Owned at once, so that no way out leaks a descriptor.
fn take_descriptors(ancillary: &mut RecvAncillaryBuffer<'_>) -> Vec<OwnedFd> {
    let messages = ancillary.drain();
    let descriptors = messages.filter_map(|message| {
        let RecvAncillaryMessage::ScmRights(descriptors) = message else {
            return None;
        };
        Some(descriptors)
    });
    descriptors.flatten().collect()
}

fn hello(flags: u32) -> Frame {
    let hello = Message::Hello {
        version: tidegate_abi::VERSION,
        flags,
        now_ns: clock::monotonic_ns(),
    };
    hello.encode()
}

fn greeting(packet: Packet) -> Result<Greeting, ConnectFault> {
    let welcome = welcome(packet.message()?)?;
    Ok((welcome, packet.descriptors))
}

fn welcome(message: Message<'_>) -> Result<Welcome, ConnectFault> {
    if let Message::Fault { code, text } = message {
        let text = text.into();
        return Err(ConnectFault::Fault { code, text });
    }
    let Message::Welcome(welcome) = message else {
        return Err(ConnectFault::Unexpected("no welcome after the hello"));
    };
    if welcome.version != tidegate_abi::VERSION {
        return Err(ConnectFault::Version {
            found: welcome.version,
        });
    }
    Ok(welcome)
}

/// What the agent's clock is ahead of this process's, ns, wrapping; 0 where both have the same. `between` are the
/// times here before the hello and after the welcome, so that no wait in between can look like another clock.
fn clock_offset_ns(agents_ns: u64, between: RangeInclusive<u64>) -> u64 {
    let (asked_ns, heard_ns) = between.into_inner();
    let nearest_ns = agents_ns.clamp(asked_ns, heard_ns.max(asked_ns));
    if agents_ns.abs_diff(nearest_ns) <= SAME_CLOCK_NS {
        return 0;
    }
    let middle_ns = asked_ns.midpoint(heard_ns);
    agents_ns.wrapping_sub(middle_ns)
}

fn broken(call: &'static str) -> impl Fn(Errno) -> ConnectFault {
    move |errno| match errno {
        Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN => ConnectFault::Ended,
        other => ConnectFault::Process {
            call,
            source: other.into(),
        },
    }
}

/// Waits until a descriptor can be read; `false` if it cannot within `limit`.
///
/// # Errors
/// The kernel's refusal to wait.
pub(crate) fn readable(fd: BorrowedFd<'_>, limit: Duration) -> Result<bool, ConnectFault> {
    let [ready] = wait([fd], Some(limit))?;
    Ok(ready)
}

/// Waits until one of some descriptors can be read, or until `limit` is over, and says which can.
///
/// # Errors
/// The kernel's refusal to wait.
pub(crate) fn wait<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    limit: Option<Duration>,
) -> Result<[bool; N], ConnectFault> {
    let deadline = limit.map(|limit| Instant::now() + limit);
    let mut polled = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut polled, left.as_ref()) {
            Ok(_count) => return Ok(polled.map(|fd| !fd.revents().is_empty())),
            Err(Errno::INTR) => {}
            Err(errno) => {
                return Err(ConnectFault::Process {
                    call: "poll",
                    source: io::Error::from(errno),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn an_answer_however_late_is_no_sign_of_another_clock() {
        let (asked_ns, heard_ns) = (100 * SECOND_NS, 170 * SECOND_NS);
        for agents_ns in [asked_ns, 130 * SECOND_NS, heard_ns, asked_ns - 900_000] {
            assert_eq!(clock_offset_ns(agents_ns, asked_ns..=heard_ns), 0);
        }
    }

    #[test]
    fn a_clock_that_is_apart_by_less_than_a_window_is_seen() {
        let asked_ns = 100 * SECOND_NS;
        let between = asked_ns..=asked_ns + 100_000;
        let ahead_ns = clock_offset_ns(asked_ns + SECOND_NS / 4, between.clone());
        assert_eq!(ahead_ns, SECOND_NS / 4 - 50_000);
        let behind_ns = clock_offset_ns(asked_ns - SECOND_NS / 4, between);
        assert_eq!(behind_ns, (SECOND_NS / 4 + 50_000).wrapping_neg());
    }
}
