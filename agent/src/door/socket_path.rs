//! Places a Unix socket in the file system: who may own the path, and what may lie there.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::num::NonZero;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::ending;
use super::peer::Peer;

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

/// Makes the directory of the sockets, if it is not there. Everybody may look into it; who may connect
/// is said by the sockets.
///
/// # Errors
/// It cannot be made, or something else lies there.
pub fn make_directory(directory: &Path) -> Result<(), PathError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o755);
    builder
        .create(directory)
        .map_err(refused(directory, "cannot make the directory"))
}

/// Makes sure that a socket can be bound at a path: removes one that nobody listens on. An agent that was killed and
/// is not gone yet is waited for, a few seconds at most.
///
/// # Errors
/// Something lies there that is not ours to remove.
pub fn clear(path: &Path, kind: SocketType) -> Result<(), PathError> {
    if path.as_os_str().len() > PATH_MAX {
        return Err(PathError::TooLong(path.to_owned()));
    }
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(refused(path, "cannot look at it")(error)),
    };
    if found.is_symlink() {
        return Err(PathError::Link(path.to_owned()));
    }
    if !found.is_socket() {
        return Err(PathError::NotASocket(path.to_owned()));
    }
    let mut found = owner(path, kind)?;
    if let Some(Owner::Process(pid)) = found
        && ending::wait_for(pid)
    {
        found = owner(path, kind)?;
    }
    if let Some(owner) = found {
        let path = path.to_owned();
        return Err(PathError::Live { path, owner });
    }
    fs::remove_file(path).map_err(refused(path, "cannot remove the stale socket"))
}

/// Who listens on a socket, if anybody does.
fn owner(path: &Path, kind: SocketType) -> Result<Option<Owner>, PathError> {
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

/// Gives a socket that was just bound its group and mode.
///
/// # Errors
/// There is no such group, or the agent may not give the socket to it.
pub fn open_to(path: &Path, access: &Access) -> Result<(), PathError> {
    if let Some(name) = &access.group {
        let found = nix::unistd::Group::from_name(name)
            .map_err(refused(path, "cannot look the group up"))?;
        let group = found.ok_or_else(|| PathError::NoGroup(name.clone()))?;
        std::os::unix::fs::chown(path, None, Some(group.gid.as_raw())).map_err(|error| {
            PathError::Group {
                path: path.to_owned(),
                group: name.clone(),
                error,
            }
        })?;
    }
    fs::set_permissions(path, Permissions::from_mode(access.mode))
        .map_err(refused(path, "cannot set its mode"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn message(path: &Path) -> String {
        clear(path, SocketType::STREAM).unwrap_err().to_string()
    }

    #[test]
    fn what_lies_at_the_path_decides() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        clear(&at("absent"), SocketType::STREAM).unwrap();

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
        let error = clear(&at("live"), SocketType::SEQPACKET).unwrap_err();
        assert!(
            error.to_string().contains("another type of socket"),
            "{error}"
        );
        drop(listener);
        clear(&at("live"), SocketType::STREAM).unwrap(); // Now it is stale.
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
        rustix::net::bind(&listener, &address).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
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
        let path = directory.path().join("socket");
        let _listener = UnixListener::bind(&path).unwrap();
        let own = nix::unistd::Group::from_gid(nix::unistd::getgid()).unwrap();
        let group = own.map(|group| group.name);
        open_to(&path, &Access { group, mode: 0o620 }).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o620);
        let access = Access {
            group: Some("no-such-group".to_owned()),
            mode: 0o660,
        };
        assert_eq!(
            open_to(&path, &access).unwrap_err().to_string(),
            "socket.group: no group is called \"no-such-group\"; create it, or leave the option out"
        );
    }
}
