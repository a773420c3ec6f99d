//! Places a Unix socket in the file system: who may own the way to it, what may lie there, and who may connect.
//!
//! A socket listens last, when its group and its mode are what they are to be: until then nobody can connect, whatever
//! the umask of the agent is.

use std::fs::{self, Permissions};
use std::io;
use std::num::NonZero;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, chownat, fchmod, fstat, openat, unlinkat};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use tidegate_segment::os::way::{TrustedPath, UntrustedPath, look};

use super::ending;
use crate::host::peer::Peer;

/// Longest path of a Unix socket, bytes: the kernel's 108 less the closing zero.
const PATH_MAX: usize = 107;

/// Who may use a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Group whose members may connect, by name; `None` leaves the agent's own.
    pub group: Option<String>,
    /// Permission bits, such as 0o660.
    pub mode: u32,
}

/// Why a socket could not be placed.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// Somebody could put another socket in its place.
    #[error(transparent)]
    Way(#[from] UntrustedPath),
    /// It was replaced while it was made.
    #[error("{}: is not the socket that was just made there; see who else writes in this directory", .0.display())]
    Replaced(PathBuf),
    /// The path is too long for a socket.
    #[error("{}: a socket's path has at most {PATH_MAX} bytes, this one has {}; use a shorter --runtime-dir", .0.display(), .0.as_os_str().len())]
    TooLong(PathBuf),
    /// A symbolic link lies there.
    #[error("{}: is a symbolic link; a socket is not made through links: remove it", .0.display())]
    Link(PathBuf),
    /// Something else lies there.
    #[error("{}: exists and is not a socket; remove it, or use another --runtime-dir", .0.display())]
    NotASocket(PathBuf),
    /// Another agent answers there.
    #[error("{}: {owner}; stop it, or use another --runtime-dir", .path.display())]
    Live {
        /// The socket.
        path: PathBuf,
        /// Who listens on it.
        owner: Owner,
    },
    /// There is no such group.
    #[error("socket.group: no group is called {0:?}; create it, or leave the option out")]
    NoGroup(String),
    /// The agent may not give the socket to the group.
    #[error("socket.group = {group:?}: {} cannot be given to it: {error}; run the agent as root or as a member of the group, or leave the option out", .path.display())]
    Group {
        /// The socket.
        path: PathBuf,
        /// The group's name.
        group: String,
        /// What the system said.
        error: io::Error,
    },
    /// The file system refused.
    #[error("{}: {what}: {error}; use another --runtime-dir, or let this user make and remove files there", .path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

/// Who listens on a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Owner {
    /// The process with this id.
    #[error("an agent runs already (pid {0})")]
    Process(NonZero<u32>),
    /// A process of another pid namespace.
    #[error(
        "an agent runs already, where its pid cannot be seen from here (another pid namespace)"
    )]
    Hidden,
    /// Somebody who takes no connection now, so that the kernel does not tell who it is.
    #[error("something listens there already and takes no more connections (its queue is full)")]
    Busy,
    /// Somebody who listens for another kind of connection than the agent.
    #[error("something that is not this agent listens there already (another type of socket)")]
    OtherKind,
}

/// The error of a call that failed at a path.
pub(super) fn refused<E: Into<io::Error>>(
    path: &Path,
    what: &'static str,
) -> impl Fn(E) -> PathError {
    move |error| PathError::Io {
        path: path.to_owned(),
        what,
        error: error.into(),
    }
}

/// A socket of this kind that listens under a name in a directory, for those whom `access` lets in. One that nobody
/// listens on is taken away first.
///
/// # Errors
/// Something lies there that is not ours to remove, the group is not there or not ours to give, or the system refuses.
pub fn place(
    way: &TrustedPath,
    name: &str,
    (kind, backlog): (SocketType, i32),
    access: &Access,
) -> Result<OwnedFd, PathError> {
    clear(way, name, kind)?;
    let path = way.path().join(name);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, kind, flags, None)
        .map_err(refused(&path, "cannot make a socket"))?;
    // The mode of the file that the binding makes, whatever the umask is.
    fchmod(&socket, Mode::RUSR | Mode::WUSR).map_err(refused(&path, "cannot set its mode"))?;
    let address = SocketAddrUnix::new(&path).map_err(refused(&path, "not an address"))?;
    // By its path, which tools show; nobody else can change where that leads, as the way was checked.
    bind(&socket, &address).map_err(refused(&path, "cannot be made"))?;
    let bound = bound(way, name, &path)?;
    open_to(&bound, &path, access)?;
    listen(&socket, backlog).map_err(refused(&path, "cannot listen"))?;
    Ok(socket)
}

/// Lets those in whom `access` names at a socket of this user that listens already.
///
/// # Errors
/// It is another user's, the group is not there or not ours to give, or the system refuses.
pub(super) fn open_again(way: &TrustedPath, name: &str, access: &Access) -> Result<(), PathError> {
    let path = way.path().join(name);
    open_to(&bound(way, name, &path)?, &path, access)
}

/// The file of a socket that was just bound.
fn bound(way: &TrustedPath, name: &str, path: &Path) -> Result<OwnedFd, PathError> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(way, name, flags, Mode::empty());
    let file = file.map_err(refused(path, "cannot look at it"))?;
    let stat = fstat(&file).map_err(refused(path, "cannot look at it"))?;
    let is_own = FileType::from_raw_mode(stat.st_mode) == FileType::Socket
        && stat.st_uid == rustix::process::geteuid().as_raw();
    if !is_own {
        return Err(PathError::Replaced(path.to_owned()));
    }
    Ok(file)
}

/// Makes sure that a socket can be bound under a name: removes one that nobody listens on. An agent that was killed and
/// is not gone yet is waited for, a few seconds at most.
fn clear(way: &TrustedPath, name: &str, kind: SocketType) -> Result<(), PathError> {
    let path = &way.path().join(name);
    if path.as_os_str().len() > PATH_MAX {
        return Err(PathError::TooLong(path.clone()));
    }
    match look(way, name) {
        Ok((FileType::Socket, _owner)) => {}
        Ok((FileType::Symlink, _owner)) => return Err(PathError::Link(path.clone())),
        Ok(_other) => return Err(PathError::NotASocket(path.clone())),
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(refused(path, "cannot look at it")(errno)),
    }
    let mut found = owner(path, kind)?;
    if let Some(Owner::Process(pid)) = found
        && ending::wait_for(pid)
    {
        found = owner(path, kind)?;
    }
    if let Some(owner) = found {
        let path = path.clone();
        return Err(PathError::Live { path, owner });
    }
    unlinkat(way, name, AtFlags::empty()).map_err(refused(path, "cannot remove the stale socket"))
}

/// Who listens on a socket, if anybody does.
pub(super) fn owner(path: &Path, kind: SocketType) -> Result<Option<Owner>, PathError> {
    let address = SocketAddrUnix::new(path).map_err(refused(path, "not an address"))?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, kind, flags, None)
        .map_err(refused(path, "cannot make a socket"))?;
    match connect(&socket, &address) {
        Ok(()) => {
            let peer = Peer::of(&socket).map_err(refused(path, "cannot ask for its owner"))?;
            let pid = NonZero::new(peer.pid);
            Ok(Some(pid.map_or(Owner::Hidden, Owner::Process)))
        }
        Err(rustix::io::Errno::CONNREFUSED) => Ok(None),
        Err(rustix::io::Errno::AGAIN) => Ok(Some(Owner::Busy)),
        Err(rustix::io::Errno::PROTOTYPE) => Ok(Some(Owner::OtherKind)),
        Err(errno) => Err(refused(path, "cannot tell whether an agent listens")(errno)),
    }
}

/// Gives the file of a socket its group and mode, by its descriptor.
fn open_to(file: &OwnedFd, path: &Path, access: &Access) -> Result<(), PathError> {
    if let Some(name) = &access.group {
        let found = nix::unistd::Group::from_name(name)
            .map_err(refused(path, "cannot look the group up"))?;
        let group = found.ok_or_else(|| PathError::NoGroup(name.clone()))?;
        let gid = Gid::from_raw(group.gid.as_raw());
        chownat(file, "", None, Some(gid), AtFlags::EMPTY_PATH).map_err(|errno| {
            PathError::Group {
                path: path.to_owned(),
                group: name.clone(),
                error: errno.into(),
            }
        })?;
    }
    // The call for a descriptor that only names a file is there since Linux 6.6; this way leads to the same file.
    let same = Path::new("/proc/self/fd").join(file.as_raw_fd().to_string());
    fs::set_permissions(same, Permissions::from_mode(access.mode))
        .map_err(refused(path, "cannot set its mode"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn clear_at(path: &Path, kind: SocketType) -> Result<(), PathError> {
        let way = TrustedPath::make(path.parent().unwrap())?;
        clear(&way, path.file_name().unwrap().to_str().unwrap(), kind)
    }

    fn message(path: &Path) -> String {
        clear_at(path, SocketType::STREAM).unwrap_err().to_string()
    }

    #[test]
    fn what_lies_at_the_path_decides() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        clear_at(&at("absent"), SocketType::STREAM).unwrap();

        symlink(at("absent"), at("link")).unwrap();
        assert!(
            message(&at("link")).ends_with(
                "link: is a symbolic link; a socket is not made through links: remove it"
            )
        );

        fs::write(at("file"), "").unwrap();
        assert!(message(&at("file")).ends_with(
            "file: exists and is not a socket; remove it, or use another --runtime-dir"
        ));

        let listener = UnixListener::bind(at("live")).unwrap();
        let own = std::process::id();
        assert!(message(&at("live")).ends_with(&format!(
            "live: an agent runs already (pid {own}); stop it, or use another --runtime-dir"
        )));
        let error = clear_at(&at("live"), SocketType::SEQPACKET).unwrap_err();
        assert!(
            error.to_string().contains("another type of socket"),
            "{error}"
        );
        drop(listener);
        clear_at(&at("live"), SocketType::STREAM).unwrap(); // Now it is stale.
        assert!(!at("live").exists());

        let long = at(&"x".repeat(108));
        assert!(message(&long).contains("a socket's path has at most 107 bytes"));
    }

    #[test]
    fn one_who_listens_and_takes_no_more_is_not_called_by_a_pid() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("busy");
        let flags = SocketFlags::CLOEXEC;
        let stream = || socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        let address = SocketAddrUnix::new(&path).unwrap();
        let listener = stream();
        bind(&listener, &address).unwrap();
        listen(&listener, 0).unwrap();
        let waiting = stream();
        connect(&waiting, &address).unwrap();
        assert!(
            message(&path).contains("its queue is full"),
            "{}",
            message(&path)
        );
    }

    #[test]
    fn a_socket_gets_its_mode_and_group() {
        let directory = tempfile::tempdir().unwrap();
        let way = TrustedPath::make(directory.path()).unwrap();
        let path = way.path().join("socket");
        let kind = (SocketType::STREAM, 8);
        let own = nix::unistd::Group::from_gid(nix::unistd::getgid()).unwrap();
        let group = own.map(|group| group.name);
        let access = Access { group, mode: 0o620 };
        let listener = place(&way, "socket", kind, &access).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o620);
        drop(listener);
        let access = Access {
            group: Some("no-such-group".to_owned()),
            mode: 0o660,
        };
        assert_eq!(
            place(&way, "socket", kind, &access)
                .unwrap_err()
                .to_string(),
            "socket.group: no group is called \"no-such-group\"; create it, or leave the option out"
        );
    }
}
