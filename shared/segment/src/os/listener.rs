//! How many connections wait at a listening socket of this process.
#![expect(
    unsafe_code,
    reason = "the kernel's answer to TCP_INFO has no safe wrapper"
)]

use std::os::fd::{AsFd, AsRawFd as _, RawFd};

use rustix::io::Errno;

/// State of a listening socket in the kernel's numbers (`TCP_LISTEN`).
const LISTEN: u8 = 10;

/// Bytes of `struct tcp_info` up to the length of the queue.
const INFO: usize = 28;

/// A listening TCP socket, by its number in this process and the kernel's name for it.
///
/// It does not hold the socket open: a service that closes it to take no more connections must not be
/// kept from that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listener {
    number: RawFd,
    cookie: u64,
}

impl Listener {
    /// Takes down which socket it is.
    ///
    /// # Errors
    /// `EINVAL` if it is no listening TCP socket, else the kernel's refusal.
    pub fn of(socket: &impl AsFd) -> Result<Self, Errno> {
        let number = socket.as_fd().as_raw_fd();
        let listener = Self {
            number,
            cookie: cookie(number)?,
        };
        listener.waiting().ok_or(Errno::INVAL)?;
        Ok(listener)
    }

    /// The kernel's name for the socket (`SO_COOKIE`), never used for another one.
    pub const fn cookie(self) -> u64 {
        self.cookie
    }

    /// Connections that wait to be accepted; `None` once the socket is closed or listens no more.
    pub fn waiting(self) -> Option<u32> {
        let info = option::<INFO>(self.number, libc::IPPROTO_TCP, libc::TCP_INFO).ok()?;
        let (state, queue) = (info.first()?, info.last_chunk::<4>()?);
        // The number may be another socket's by now.
        let same = *state == LISTEN && cookie(self.number) == Ok(self.cookie);
        // `tcpi_unacked`, which for a listening socket is the length of its queue.
        same.then(|| u32::from_ne_bytes(*queue))
    }
}

fn cookie(number: RawFd) -> Result<u64, Errno> {
    option(number, libc::SOL_SOCKET, libc::SO_COOKIE).map(u64::from_ne_bytes)
}

/// The first bytes of an option of a socket.
fn option<const N: usize>(number: RawFd, level: i32, name: i32) -> Result<[u8; N], Errno> {
    let mut value = [0_u8; N];
    let mut length = libc::socklen_t::try_from(N).map_err(|_too_large| Errno::INVAL)?;
    let place = (&raw mut value).cast();
    // SAFETY: `place` has room for `length` bytes, both outlive the call, and the kernel writes no more
    // than that. A number that is no socket is an error and nothing else; nothing is changed by asking.
    let status = unsafe { libc::getsockopt(number, level, name, place, &raw mut length) };
    if status != 0 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL));
    }
    let whole = usize::try_from(length).is_ok_and(|length| length == N);
    if whole { Ok(value) } else { Err(Errno::INVAL) }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn what_waits_is_counted_until_it_is_accepted_or_the_socket_is_closed() {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = socket.local_addr().unwrap();
        let listener = Listener::of(&socket).unwrap();
        assert_eq!(listener.waiting(), Some(0));
        let _callers = [0, 1, 2].map(|_caller| TcpStream::connect(address).unwrap());
        assert_eq!(listener.waiting(), Some(3));
        let _accepted = socket.accept().unwrap();
        assert_eq!(listener.waiting(), Some(2));
        drop(socket);
        let _other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert_eq!(listener.waiting(), None);
    }

    #[test]
    fn other_descriptors_are_no_listeners() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(Listener::of(&stream), Err(Errno::INVAL));
        let directory = free_path();
        let unix = UnixListener::bind(&directory).unwrap();
        assert_eq!(Listener::of(&unix), Err(Errno::INVAL));
        std::fs::remove_file(directory).unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(Listener::of(&file), Err(Errno::NOTSOCK));
    }

    fn free_path() -> std::path::PathBuf {
        let name = format!("tidegate-listener-{}", std::process::id());
        std::env::temp_dir().join(name)
    }
}
