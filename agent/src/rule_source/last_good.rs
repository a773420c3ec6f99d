//! The last good rules of each tenant and the last good configuration, on disk: what an agent starts with when the source
//! of its rules, or its file, is at fault.
//!
//! One file for each tenant and kind of source, written anew as a whole (another name, then a rename). Only the agent's
//! user can read or write it; a file that another could have written, or that is damaged, is refused.

use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, renameat, unlinkat};
use serde::{Deserialize, Serialize};
use tidegate_abi::argument::{ArgumentKind, text_hash};

/// Folder below the agent's state directory.
const FOLDER: &str = "last-good";

/// Version of the files; another one is refused.
const VERSION: u32 = 1;

/// Largest file, bytes.
const SIZE_MAX: usize = 16 << 20;

/// Most characters of a tenant's name in the name of its file, for people.
const SHOWN_MAX: usize = 40;

/// Whose rules they are, and from what kind of source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The tenant.
    pub tenant: String,
    /// The kind of source, such as [`DIRECTORY`]; a short word of letters.
    pub kind: &'static str,
}

/// Kind of the rules of a directory.
pub const DIRECTORY: &str = "directory";

/// Kind of the files of the configuration, which are the default tenant's.
pub const CONFIGURATION: &str = "configuration";

/// A text of rules as its source gave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// What it is called: a path or an address, from which its form is known.
    pub name: String,
    /// What it says.
    pub text: String,
}

/// What a file holds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptRules {
    version: u32,
    tenant: String,
    kind: String,
    /// Of the documents as they are written here.
    hash: u64,
    documents: Vec<Document>,
}

/// Why rules are not kept, or those that were are not taken.
#[derive(Debug, thiserror::Error)]
pub enum LastGoodFault {
    /// The system refused.
    #[error("{}: {error}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// What it said.
        error: io::Error,
    },
    /// Too much.
    #[error("{}: rules of more than {} MiB are not kept", .0.display(), SIZE_MAX >> 20)]
    TooLarge(PathBuf),
    /// Not as the agent wrote it.
    #[error("{}: {what}", path.display())]
    Damaged {
        /// Where.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
}

/// The folder of the files.
#[derive(Debug, Clone)]
pub struct LastGood {
    folder: PathBuf,
}

impl LastGood {
    /// Keeps them below a state directory, which need not be there yet.
    pub fn below(state: &Path) -> Self {
        Self {
            folder: state.join(FOLDER),
        }
    }

    /// Keeps these documents in the place of those before. What is there already is not written again.
    ///
    /// # Errors
    /// They are too much, or the system refuses; those before are still there.
    pub fn keep(&self, key: &Key, documents: Vec<Document>) -> Result<(), LastGoodFault> {
        let path = self.folder.join(file_name(key));
        let text = text_of(key, documents).map_err(|error| at(&path)(error.into()))?;
        if text.len() > SIZE_MAX {
            return Err(LastGoodFault::TooLarge(path));
        }
        let mut make = DirBuilder::new();
        make.recursive(true).mode(0o700);
        make.create(&self.folder).map_err(at(&self.folder))?;
        let folder = self.open_folder()?;
        if read_at(&folder, &path, key).is_ok_and(|before| before.is_some_and(|old| old == text)) {
            return Ok(());
        }
        replace_at(&folder, &file_name(key), text.as_bytes()).map_err(at(&path))
    }

    /// What is kept; `None` where nothing is.
    ///
    /// # Errors
    /// What is there is damaged, could be another user's, or cannot be read.
    pub fn load(&self, key: &Key) -> Result<Option<Vec<Document>>, LastGoodFault> {
        let path = self.folder.join(file_name(key));
        let folder = match self.open_folder() {
            Err(LastGoodFault::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            folder => folder?,
        };
        let Some(text) = read_at(&folder, &path, key)? else {
            return Ok(None);
        };
        let damaged = |what| LastGoodFault::Damaged {
            path: path.clone(),
            what,
        };
        let kept: KeptRules = serde_json::from_str(&text)
            .map_err(|_error| damaged("is damaged: not as the agent writes it"))?;
        if kept.version != VERSION {
            return Err(damaged("is of another version of the agent"));
        }
        if kept.tenant != key.tenant || kept.kind != key.kind {
            return Err(damaged("has the rules of another tenant"));
        }
        if hash(&kept.documents).ok() != Some(kept.hash) {
            return Err(damaged("is damaged: its text is not what was written"));
        }
        Ok(Some(kept.documents))
    }

    /// Opens the folder, if it is the agent's own.
    fn open_folder(&self) -> Result<File, LastGoodFault> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&self.folder, flags, Mode::empty());
        let folder = File::from(opened.map_err(|errno| at(&self.folder)(errno.into()))?);
        check_owner(&folder, &self.folder, FileType::Directory)?;
        Ok(folder)
    }
}

fn at(path: &Path) -> impl Fn(io::Error) -> LastGoodFault {
    move |error| LastGoodFault::Io {
        path: path.to_owned(),
        error,
    }
}

/// A name without what a file name may not have; the hash tells names apart that look alike then.
fn file_name(key: &Key) -> String {
    let shown = key.tenant.chars().take(SHOWN_MAX);
    let shown: String = shown
        .map(|one| {
            if one.is_ascii_alphanumeric() {
                one
            } else {
                '_'
            }
        })
        .collect();
    let hash = text_hash(ArgumentKind::Text, &key.tenant);
    format!("{shown}-{hash:016x}.{}.json", key.kind)
}

fn hash(documents: &[Document]) -> serde_json::Result<u64> {
    let text = serde_json::to_string(documents)?;
    Ok(text_hash(ArgumentKind::Text, &text))
}

fn text_of(key: &Key, documents: Vec<Document>) -> serde_json::Result<String> {
    serde_json::to_string(&KeptRules {
        version: VERSION,
        tenant: key.tenant.clone(),
        kind: key.kind.to_owned(),
        hash: hash(&documents)?,
        documents,
    })
}

/// Refuses what somebody else could have written.
fn check_owner(file: impl AsFd, path: &Path, kind: FileType) -> Result<(), LastGoodFault> {
    let stat = fstat(file).map_err(|errno| at(path)(errno.into()))?;
    let own = rustix::process::geteuid().as_raw();
    let what = if FileType::from_raw_mode(stat.st_mode) != kind {
        "is not what the agent made there"
    } else if stat.st_uid != own {
        "belongs to another user"
    } else if stat.st_mode & 0o022 != 0 {
        "can be written by others"
    } else {
        return Ok(());
    };
    let path = path.to_owned();
    Err(LastGoodFault::Damaged { path, what })
}

/// The text of a file of the folder; `None` where it is not there.
fn read_at(folder: &File, path: &Path, key: &Key) -> Result<Option<String>, LastGoodFault> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(folder, file_name(key), flags, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        opened => File::from(opened.map_err(|errno| at(path)(errno.into()))?),
    };
    check_owner(&file, path, FileType::RegularFile)?;
    let (mut text, bound) = (String::new(), u64::try_from(SIZE_MAX).unwrap_or(u64::MAX));
    let read = file.take(bound.saturating_add(1)).read_to_string(&mut text);
    read.map_err(at(path))?;
    if text.len() > SIZE_MAX {
        return Err(LastGoodFault::TooLarge(path.to_owned()));
    }
    Ok(Some(text))
}

/// Writes a file of the folder as a whole: after a crash it is the old one or the new one.
fn replace_at(folder: &File, name: &str, text: &[u8]) -> io::Result<()> {
    let new = format!("{name}.new");
    // What a writer that was killed has left.
    match unlinkat(folder, &new, AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(folder, &new, flags, Mode::RUSR | Mode::WUSR)?);
    let written = file.write_all(text).and_then(|()| file.sync_all());
    let placed = written.and_then(|()| Ok(renameat(folder, &new, folder, name)?));
    if placed.is_err() {
        // Half a file takes room on a disk that may have none.
        unlinkat(folder, &new, AtFlags::empty()).unwrap_or_default();
    }
    placed?;
    folder.sync_all()
}

#[cfg(test)]
mod tests;
