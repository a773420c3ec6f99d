//! Accept queues, by the kernel's socket diagnosis.
//!
//! One question for each family gives every listening TCP socket of the agent's network namespace with
//! the length of its queue. Everybody may ask it. The socket and the buffer are kept, so that a tick
//! allocates nothing.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

use super::parse::sock_diag::{self, Message};
use crate::procfs::NoValue;

/// The kernel fills at most so much of a packet.
const BUFFER: usize = 32 * 1024;
/// Bytes of a question: `nlmsghdr` and `inet_diag_req_v2`.
const QUESTION: usize = 72;
/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const ALL: u16 = 0x301;
/// The state of listening sockets (`TCP_LISTEN`), as a bit.
const LISTENING: u32 = 1 << 10;

/// Asks for the accept queues of this network namespace.
#[derive(Debug)]
pub struct AcceptQueues {
    socket: OwnedFd,
    buffer: Box<[u8]>,
    sequence: u32,
}

impl AcceptQueues {
    /// Opens the way to the kernel.
    ///
    /// # Errors
    /// The kernel, or a sandbox, has no such sockets.
    pub fn open() -> Result<Self, NoValue> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let family = AddressFamily::NETLINK;
        let socket = socket_with(family, SocketType::RAW, flags, Some(netlink::SOCK_DIAG));
        Ok(Self {
            socket: socket.map_err(refused)?,
            buffer: vec![0; BUFFER].into(),
            sequence: 0,
        })
    }

    /// Tells of each listening socket its cookie and how many connections wait there.
    ///
    /// # Errors
    /// The kernel does not answer; some sockets may have been told by then.
    pub fn each(&mut self, mut told: impl FnMut(u64, u32)) -> Result<(), NoValue> {
        for family in [libc::AF_INET, libc::AF_INET6] {
            self.sequence = self.sequence.wrapping_add(1);
            let question = question(u8::try_from(family).unwrap_or(0), self.sequence);
            send(&self.socket, &question, SendFlags::empty()).map_err(refused)?;
            while !self.hear(&mut told)? {}
        }
        Ok(())
    }

    /// Takes one packet; true when it was the last one.
    fn hear(&mut self, told: &mut impl FnMut(u64, u32)) -> Result<bool, NoValue> {
        let received = recv(&self.socket, &mut *self.buffer, RecvFlags::empty());
        let (length, _whole) = received.map_err(refused)?;
        let packet = self.buffer.get(..length).unwrap_or_default();
        for message in sock_diag::messages(packet, self.sequence) {
            match message {
                Message::Listener { cookie, waiting } => told(cookie, waiting),
                Message::Done => return Ok(true),
                Message::Refused(errno) => return Err(NoValue::Os(errno)),
                Message::Other => {}
            }
        }
        // A packet without anything for us ends it as well: there would be no end otherwise.
        Ok(length == 0)
    }
}

fn refused(errno: Errno) -> NoValue {
    NoValue::Os(errno.raw_os_error())
}

/// The question for all listening TCP sockets of a family.
fn question(family: u8, sequence: u32) -> [u8; QUESTION] {
    let mut question = [0; QUESTION];
    let length = u32::try_from(QUESTION).unwrap_or(0).to_ne_bytes();
    let protocol = u8::try_from(libc::IPPROTO_TCP).unwrap_or(0);
    let mut put = |place: usize, bytes: &[u8]| {
        let end = place.saturating_add(bytes.len());
        if let Some(room) = question.get_mut(place..end) {
            room.copy_from_slice(bytes);
        }
    };
    put(0, &length);
    put(4, &BY_FAMILY.to_ne_bytes());
    put(6, &ALL.to_ne_bytes());
    put(8, &sequence.to_ne_bytes());
    put(16, &[family, protocol]);
    put(20, &LISTENING.to_ne_bytes());
    question
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};

    use tidegate_segment::os::listener::Listener;

    use super::*;

    #[test]
    fn the_queue_of_a_listener_of_this_process_is_told_each_time() {
        let mut queues = AcceptQueues::open().unwrap();
        let hosts = [
            SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            SocketAddr::from((Ipv6Addr::LOCALHOST, 0)),
        ];
        for host in hosts {
            let Ok(socket) = TcpListener::bind(host) else {
                continue; // No IPv6 here.
            };
            let listener = Listener::of(&socket).unwrap();
            let mut waiting = || {
                let mut found = None;
                queues
                    .each(|cookie, waiting| {
                        if cookie == listener.cookie() {
                            found = Some(waiting);
                        }
                    })
                    .unwrap();
                found
            };
            assert_eq!(waiting(), Some(0));
            let address = socket.local_addr().unwrap();
            let _callers = [0, 1].map(|_caller| TcpStream::connect(address).unwrap());
            assert_eq!(waiting(), Some(2));
            drop(socket);
            assert_eq!(waiting(), None);
        }
    }
}
