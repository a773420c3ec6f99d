//! The directories on the way to a socket: who could put another one in its place.
//!
//! Whoever owns a directory, or may write there, decides what its names lead to. So agent and client walk the way one
//! name after the other, each from the descriptor of the directory before it, and ask for the owner and the mode of
//! what they hold, never of a path that may lead elsewhere by then.
//!
//! A directory on the way is root's or the user's own, and nobody else may write there, unless each may take away only
//! what is his (sticky, as `/tmp` is). The last one may be another user's, such as the agent's, for who connects: where
//! root or the user itself put it, since nobody else can write to the directory above. That is
//! `/run/tidegate` of a user `tidegate`, and never `/tmp/tidegate` of somebody who was there first.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, mkdirat, openat, readlinkat, statat,
};
use rustix::io::Errno;

/// Most symbolic links on a way, as many as the kernel follows.
const LINKS_MAX: u32 = 40;

/// Mode of a directory that is made: everybody may look into it; who may connect is said by the sockets.
const MODE: Mode = Mode::from_raw_mode(0o755);

const STICKY: u32 = 0o1000;
const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;

/// Why a way is not trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UntrustedPath {
    /// It belongs to somebody else.
    #[error(
        "{}: belongs to user {owner}, who can put another socket in its place; allowed are root and user {own}: \
         choose another runtime directory, such as one below /run", path.display()
    )]
    Owner {
        /// The directory or link.
        path: PathBuf,
        /// Who owns it.
        owner: u32,
        /// Who asks.
        own: u32,
    },
    /// Others may write there.
    #[error(
        "{path}: others may write there (mode {mode:o}) and put another socket in its place; take that from them \
         (chmod go-w {path}), or choose another runtime directory", path = path.display()
    )]
    Writable {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It is a file, or something else that nothing lies in.
    #[error("{}: is not a directory; choose another runtime directory", .0.display())]
    NotADirectory(PathBuf),
    /// The links lead round in a circle.
    #[error("{}: more than {LINKS_MAX} symbolic links lead there; name the directory itself", .0.display())]
    Links(PathBuf),
    /// The file system refused.
    #[error("{}: cannot be looked at: {errno}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// What the kernel said.
        errno: Errno,
    },
}

impl UntrustedPath {
    /// What the kernel said, where the file system refused and nobody else is to blame.
    pub const fn errno(&self) -> Option<Errno> {
        match self {
            Self::Io { errno, .. } => Some(*errno),
            Self::Owner { .. }
            | Self::Writable { .. }
            | Self::NotADirectory(_)
            | Self::Links(_) => None,
        }
    }
}

/// A directory that can be trusted, and who owns it.
#[derive(Debug)]
pub struct TrustedPath {
    directory: OwnedFd,
    path: PathBuf,
    owner: u32,
    own: u32,
}

impl TrustedPath {
    /// Walks to a directory that has sockets of an agent.
    ///
    /// # Errors
    /// It is not there, or somebody could put another socket in the place of the agent's.
    pub fn to(directory: &Path) -> Result<Self, UntrustedPath> {
        Walk::begin(directory, Purpose::Connect)?.finish()
    }

    /// The same for the agent itself: all belongs to root or to its own user, and what is missing is made.
    ///
    /// # Errors
    /// As [`TrustedPath::to`], or it cannot be made.
    pub fn make(directory: &Path) -> Result<Self, UntrustedPath> {
        Walk::begin(directory, Purpose::Serve)?.finish()
    }

    /// Its path without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether who listens at a socket there may be believed: root, the own user, or the owner of the directory.
    pub const fn trusts(&self, uid: u32) -> bool {
        uid == 0 || uid == self.own || uid == self.owner
    }
}

impl AsFd for TrustedPath {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

/// What a way is walked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Serve,
    Connect,
}

/// A way that is being walked.
struct Walk {
    purpose: Purpose,
    own: u32,
    here: OwnedFd,
    path: PathBuf,
    found: Found,
    /// Names that are to follow, the next one last.
    names: Vec<OsString>,
    links: u32,
}

/// A directory, as its descriptor tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    owner: u32,
    group: u32,
    mode: u32,
}

impl Found {
    fn of(stat: &Stat) -> Self {
        Self {
            owner: stat.st_uid,
            group: stat.st_gid,
            mode: stat.st_mode & 0o7777,
        }
    }

    /// Whether somebody beside its owner and root may make names there.
    const fn takes_names(self) -> bool {
        self.mode & OTHERS_WRITE != 0 || (self.mode & GROUP_WRITES != 0 && self.group != 0)
    }

    /// Whether somebody beside its owner and root may put another thing in the place of one that is there.
    const fn can_be_changed(self) -> bool {
        self.takes_names() && self.mode & STICKY == 0
    }
}

impl Walk {
    fn begin(directory: &Path, purpose: Purpose) -> Result<Self, UntrustedPath> {
        let absolute = std::path::absolute(directory).map_err(|error| UntrustedPath::Io {
            path: directory.to_owned(),
            errno: Errno::from_io_error(&error).unwrap_or(Errno::INVAL),
        })?;
        let root = PathBuf::from("/");
        let (here, found) = open_root(&root)?;
        let mut walk = Self {
            purpose,
            own: rustix::process::geteuid().as_raw(),
            here,
            path: root,
            found,
            names: Vec::new(),
            links: 0,
        };
        walk.follow(&absolute);
        Ok(walk)
    }

    /// Puts the names of a path before those that are to follow.
    fn follow(&mut self, path: &Path) {
        let names = path.components().rev().filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            Component::ParentDir => Some(OsStr::new("..")),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
        });
        self.names.extend(names.map(OsStr::to_owned));
    }

    fn finish(mut self) -> Result<TrustedPath, UntrustedPath> {
        while let Some(name) = self.names.pop() {
            let before = self.found;
            self.step(&name)?;
            self.check(before)?;
        }
        if self.found.can_be_changed() {
            return Err(self.writable());
        }
        Ok(TrustedPath {
            directory: self.here,
            path: self.path,
            owner: self.found.owner,
            own: self.own,
        })
    }

    /// Goes to a name in the directory that is held; a link adds its own names to those that follow.
    fn step(&mut self, name: &OsStr) -> Result<(), UntrustedPath> {
        let path = self.path.join(name);
        let next = self.open(name, &path)?;
        let stat = fstat(&next).map_err(refused(&path))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                self.here = next;
                self.found = Found::of(&stat);
                if name == ".." {
                    self.path.pop();
                } else {
                    self.path = path;
                }
                Ok(())
            }
            FileType::Symlink => self.go_by_link(&next, Found::of(&stat), path),
            FileType::RegularFile
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Err(UntrustedPath::NotADirectory(path)),
        }
    }

    fn open(&self, name: &OsStr, path: &Path) -> Result<OwnedFd, UntrustedPath> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || openat(&self.here, name.as_bytes(), flags, Mode::empty());
        match open() {
            Err(Errno::NOENT) if self.purpose == Purpose::Serve => {
                match mkdirat(&self.here, name.as_bytes(), MODE) {
                    // What another has made meanwhile is checked as anything else.
                    Ok(()) | Err(Errno::EXIST) => open().map_err(refused(path)),
                    Err(errno) => Err(refused(path)(errno)),
                }
            }
            found => found.map_err(refused(path)),
        }
    }

    fn go_by_link(
        &mut self,
        link: &OwnedFd,
        found: Found,
        path: PathBuf,
    ) -> Result<(), UntrustedPath> {
        self.links = self.links.saturating_add(1);
        if self.links > LINKS_MAX {
            return Err(UntrustedPath::Links(path));
        }
        if !self.is_own(found.owner) {
            return Err(self.foreign(path, found.owner));
        }
        let target = readlinkat(link, "", Vec::new()).map_err(refused(&path))?;
        let target = Path::new(OsStr::from_bytes(target.as_bytes())).to_owned();
        if target.is_absolute() {
            self.path = PathBuf::from("/");
            (self.here, self.found) = open_root(&self.path)?;
        }
        self.follow(&target);
        Ok(())
    }

    /// Whether the directory that is held may be on the way; `before` is the one above.
    fn check(&self, before: Found) -> Result<(), UntrustedPath> {
        if self.is_own(self.found.owner) {
            let is_last = self.names.is_empty();
            return if self.found.can_be_changed() && !is_last {
                Err(self.writable())
            } else {
                Ok(())
            };
        }
        let was_given = self.purpose == Purpose::Connect
            && self.names.is_empty()
            && !before.takes_names()
            && self.is_own(before.owner);
        if was_given {
            return Ok(());
        }
        Err(self.foreign(self.path.clone(), self.found.owner))
    }

    const fn is_own(&self, owner: u32) -> bool {
        owner == 0 || owner == self.own
    }

    const fn foreign(&self, path: PathBuf, owner: u32) -> UntrustedPath {
        let own = self.own;
        UntrustedPath::Owner { path, owner, own }
    }

    fn writable(&self) -> UntrustedPath {
        UntrustedPath::Writable {
            path: self.path.clone(),
            mode: self.found.mode,
        }
    }
}

/// The root of the file system. In a container it may belong to a user without a name here; who owns it owns all.
fn open_root(root: &Path) -> Result<(OwnedFd, Found), UntrustedPath> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(CWD, root, flags, Mode::empty()).map_err(refused(root))?;
    let stat = fstat(&opened).map_err(refused(root))?;
    let found = Found {
        owner: 0,
        ..Found::of(&stat)
    };
    Ok((opened, found))
}

fn refused(path: &Path) -> impl Fn(Errno) -> UntrustedPath {
    move |errno| UntrustedPath::Io {
        path: path.to_owned(),
        errno,
    }
}

/// Owner and type of what lies in a directory, without going through a link.
///
/// # Errors
/// The kernel's refusal; `ENOENT` where nothing lies there.
pub fn look(way: &TrustedPath, name: &str) -> Result<(FileType, u32), Errno> {
    let stat = statat(way, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok((FileType::from_raw_mode(stat.st_mode), stat.st_uid))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// A directory of its own below the one for temporary files.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("way-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Self(path.canonicalize().unwrap())
        }

        fn directory(&self, name: &str, mode: u32) -> PathBuf {
            let path = self.0.join(name);
            fs::create_dir(&path).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            path
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _left: std::io::Result<()> = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_way_is_walked_through_links_and_made_where_it_is_missing() {
        let place = Place::new("links");
        symlink(&place.0, place.0.join("self")).unwrap();
        symlink("self/deep/../deep", place.0.join("there")).unwrap();
        let missing = place.0.join("deep/er");
        assert!(matches!(
            TrustedPath::to(&missing),
            Err(UntrustedPath::Io {
                errno: Errno::NOENT,
                ..
            })
        ));
        let made = TrustedPath::make(&missing).unwrap();
        assert_eq!(made.path(), missing);
        let by_links = TrustedPath::to(&place.0.join("there/er")).unwrap();
        assert_eq!(by_links.path(), missing);
        assert!(by_links.trusts(0) && by_links.trusts(rustix::process::geteuid().as_raw()));
        symlink("round", place.0.join("round")).unwrap();
        assert!(matches!(
            TrustedPath::to(&place.0.join("round")),
            Err(UntrustedPath::Links(_))
        ));
        fs::write(place.0.join("file"), "").unwrap();
        assert!(matches!(
            TrustedPath::make(&place.0.join("file/x")),
            Err(UntrustedPath::NotADirectory(_))
        ));
    }

    #[test]
    fn field_b2_where_others_write_nothing_is_trusted_unless_it_is_sticky() {
        let place = Place::new("modes");
        for (mode, is_trusted) in [
            (0o755, true),
            (0o700, true),
            (0o1777, true),
            (0o777, false),
            (0o757, false),
        ] {
            let name = format!("{mode:o}");
            let last = place.directory(&name, mode);
            assert_eq!(
                TrustedPath::to(&last).is_ok(),
                is_trusted,
                "{mode:o} as the last one"
            );
            assert_eq!(
                TrustedPath::make(&last).is_ok(),
                is_trusted,
                "{mode:o} as the last one"
            );
            let below = last.join("below");
            fs::create_dir(&below).unwrap();
            assert_eq!(
                TrustedPath::to(&below).is_ok(),
                is_trusted,
                "{mode:o} on the way"
            );
            assert_eq!(
                TrustedPath::make(&below).is_ok(),
                is_trusted,
                "{mode:o} on the way"
            );
        }
        let error = TrustedPath::make(&place.0.join("777"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("others may write there (mode 777)"),
            "{error}"
        );
    }

    #[test]
    fn a_group_that_may_write_is_somebody_else_unless_it_is_roots() {
        for (group, mode, can_be_changed) in [
            (0, 0o775, false),
            (7, 0o775, true),
            (7, 0o1775, false),
            (7, 0o755, false),
            (0, 0o777, true),
        ] {
            let found = Found {
                owner: 0,
                group,
                mode,
            };
            assert_eq!(found.can_be_changed(), can_be_changed, "{group} {mode:o}");
        }
    }
}
