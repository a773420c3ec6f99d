//! The file of a socket, which is made again when somebody deletes it: nobody new could connect otherwise.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FileType, lstat};
use rustix::io::Errno;
use rustix::net::SocketType;
use tidegate_segment::os::way::TrustedPath;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::settings::DoorSettings;
use super::socket_path::{self, Access, PathError};

/// How often a socket's file is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Device and number of a file.
type Identity = (u64, u64);

/// Makes a socket that listens one of the runtime.
type Take<L> = fn(OwnedFd) -> io::Result<L>;

/// Where a socket is, and how it is made.
#[derive(Debug)]
pub(super) struct SocketFile<L> {
    directory: PathBuf,
    name: &'static str,
    /// Its type, and how many connections may wait.
    kind: (SocketType, i32),
    access: Access,
    take: Take<L>,
    /// The file that was made.
    made: Option<Identity>,
    look: Interval,
    /// Whether it was told that it cannot be made again.
    is_told: bool,
}

impl<L> SocketFile<L> {
    /// Places a socket and listens on it. Must run inside the runtime.
    ///
    /// # Errors
    /// As [`socket_path::place`].
    pub(super) fn place(
        settings: &DoorSettings,
        name: &'static str,
        kind: (SocketType, i32),
        take: Take<L>,
    ) -> Result<(Box<Self>, L), PathError> {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut file = Box::new(Self {
            directory: settings.directory.clone(),
            name,
            kind,
            access: settings.access.clone(),
            take,
            made: None,
            look,
            is_told: false,
        });
        let listener = match file.take_handed(settings)? {
            Some(listener) => listener,
            None => file.make()?,
        };
        Ok((file, listener))
    }

    /// Waits until the file is gone and was made again; what listens there now. It may be dropped while it waits.
    pub(super) async fn made_again(&mut self) -> L {
        loop {
            self.look.tick().await;
            if !self.is_there()
                && let Some(listener) = self.make_again()
            {
                return listener;
            }
        }
    }

    fn make(&mut self) -> Result<L, PathError> {
        let way = TrustedPath::make(&self.directory)?;
        let socket = socket_path::place(&way, self.name, self.kind, &self.access)?;
        self.listen(socket)
    }

    /// Listens on a socket that the service manager has made, if it has made one.
    fn take_handed(&mut self, settings: &DoorSettings) -> Result<Option<L>, PathError> {
        let way = TrustedPath::make(&self.directory)?;
        let socket = settings
            .handed
            .take((&way, self.name), self.kind.0, &self.access);
        socket.map(|socket| self.listen(socket)).transpose()
    }

    fn listen(&mut self, socket: OwnedFd) -> Result<L, PathError> {
        let path = self.path();
        let listener = (self.take)(socket);
        let listener = listener.map_err(socket_path::refused(&path, "cannot listen"))?;
        let made = identity(&path).map_err(socket_path::refused(&path, "cannot look at it"))?;
        self.made = Some(made);
        Ok(listener)
    }

    fn make_again(&mut self) -> Option<L> {
        let made = self.make();
        let socket = self.path();
        let socket = socket.display();
        match made {
            Ok(listener) => {
                tracing::error!(event = "socket_replaced", %socket, "the socket was deleted or replaced, so no new client could connect; created it again");
                self.is_told = false;
                Some(listener)
            }
            Err(error) => {
                if !self.is_told {
                    tracing::error!(
                        event = "socket_lost",
                        %error,
                        %socket,
                        "the socket was deleted or replaced, so no new client can connect, and it cannot be created again; \
                         retrying each second: fix what the error names, or restart the agent"
                    );
                }
                self.is_told = true;
                None
            }
        }
    }

    /// Whether the file that was made is still there, as far as can be seen.
    fn is_there(&self) -> bool {
        match identity(&self.path()) {
            Ok(found) => self.made == Some(found),
            Err(errno) => !matches!(errno, Errno::NOENT | Errno::NOTDIR),
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.join(self.name)
    }
}

fn identity(path: &Path) -> Result<Identity, Errno> {
    lstat(path).map(|stat| (stat.st_dev, stat.st_ino))
}

/// Whether a socket of that name is in a directory.
pub(super) fn is_socket(directory: &Path, name: &str) -> bool {
    let stat = lstat(directory.join(name));
    stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket)
}
