//! Which sockets have something to say: a thin cover over epoll.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

/// Sockets told about in one go.
const AT_ONCE: usize = 256;

/// A set of sockets, each under a number.
pub(crate) struct Readiness {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Readiness").field(&self.epoll).finish()
    }
}

impl Readiness {
    /// # Errors
    /// No descriptor left.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(AT_ONCE),
        })
    }

    /// Watches for something to read.
    ///
    /// # Errors
    /// It is watched already, or no memory.
    pub(crate) fn add(&self, socket: impl AsFd, number: u64) -> io::Result<()> {
        let data = EventData::new_u64(number);
        Ok(epoll::add(&self.epoll, socket, data, EventFlags::IN)?)
    }

    /// Watches for room to write, which a connection under way has when it is there.
    ///
    /// # Errors
    /// It is watched already, or no memory.
    pub(crate) fn add_connecting(&self, socket: impl AsFd, number: u64) -> io::Result<()> {
        let data = EventData::new_u64(number);
        Ok(epoll::add(&self.epoll, socket, data, EventFlags::OUT)?)
    }

    /// From now on something to read is watched for.
    ///
    /// # Errors
    /// It is not watched.
    pub(crate) fn connected(&self, socket: impl AsFd, number: u64) -> io::Result<()> {
        let data = EventData::new_u64(number);
        Ok(epoll::modify(&self.epoll, socket, data, EventFlags::IN)?)
    }

    /// Waits until a socket is ready, at most for `limit`; the numbers of those that are.
    ///
    /// # Errors
    /// The kernel has none to give.
    pub(crate) fn wait(&mut self, limit: Duration) -> io::Result<impl Iterator<Item = u64>> {
        let limit = Timespec::try_from(limit).ok();
        self.events.clear();
        let buffer = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.epoll, buffer, limit.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.events.iter().map(|event| event.data.u64()))
    }
}
