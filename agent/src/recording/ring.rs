//! Two files that are never larger than was set, nor than this process may make a file.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::{Resource, getrlimit};

/// The file that grows.
pub const NEWER: &str = "samples.jsonl";
/// The file that was full.
pub const OLDER: &str = "samples.1.jsonl";

/// The two files. One process writes them: the newer one is locked while it is open.
#[derive(Debug)]
pub(super) struct Ring {
    directory: PathBuf,
    /// Most bytes of one file.
    file_max: u64,
    file: File,
    written: u64,
}

impl Ring {
    /// Goes on in the files of this directory, which is made if it is missing.
    ///
    /// # Errors
    /// The directory or the file cannot be made, is no plain file, or another process has it.
    pub(super) fn open(directory: &Path, size_max: u64) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let (file, written) = open(directory)?;
        let mut ring = Self {
            directory: directory.to_owned(),
            file_max: (size_max / 2).min(largest_file()),
            file,
            written,
        };
        if ring.written > 0 {
            // Whoever wrote it last may have been killed within a line.
            ring.write(b"\n")?;
        }
        Ok(ring)
    }

    /// Whether so many bytes more belong into a new file.
    pub(super) fn is_full(&self, more: usize) -> bool {
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        self.written > 0 && self.written.saturating_add(more) > self.file_max
    }

    /// Begins a new file; the older half is given up.
    pub(super) fn turn(&mut self) -> io::Result<()> {
        fs::rename(self.directory.join(NEWER), self.directory.join(OLDER))?;
        (self.file, self.written) = open(&self.directory)?;
        Ok(())
    }

    /// Looks whether the newer file is still the one that is written, and as long as it was made; else begins anew
    /// in its place, and says so.
    pub(super) fn begin_anew(&mut self) -> io::Result<bool> {
        let own = self.file.metadata()?;
        let found = fs::symlink_metadata(self.directory.join(NEWER));
        let id = |meta: &Metadata| (meta.dev(), meta.ino());
        let is_there = found.is_ok_and(|found| id(&found) == id(&own));
        if is_there && own.len() >= self.written {
            return Ok(false);
        }
        if is_there {
            self.written = own.len();
        } else {
            fs::create_dir_all(&self.directory)?;
            (self.file, self.written) = open(&self.directory)?;
        }
        if self.written > 0 {
            self.write(b"\n")?;
        }
        Ok(true)
    }

    /// Appends whole lines.
    pub(super) fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(lines);
        let more = u64::try_from(lines.len()).unwrap_or(u64::MAX);
        self.written = match &written {
            Ok(()) => self.written.saturating_add(more),
            // Part of it may be there.
            Err(_error) => self.file.metadata().map_or(self.written, |meta| meta.len()),
        };
        written
    }
}

/// `RLIMIT_FSIZE`, bytes.
fn largest_file() -> u64 {
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

fn open(directory: &Path) -> io::Result<(File, u64)> {
    // Not through a link, and not waiting where somebody has put a pipe.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(directory.join(NEWER))?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("is no plain file"));
    }
    file.try_lock()
        .map_err(|_taken| io::Error::other("another agent records here"))?;
    Ok((file, meta.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(directory: &Path, name: &str) -> u64 {
        fs::metadata(directory.join(name)).map_or(0, |meta| meta.len())
    }

    #[test]
    fn both_files_together_stay_within_the_size() {
        let directory = tempfile::tempdir().unwrap();
        let mut ring = Ring::open(directory.path(), 200).unwrap();
        for _line in 0..100 {
            if ring.is_full(30) {
                ring.turn().unwrap();
            }
            ring.write(&[b'x'; 30]).unwrap();
        }
        let sizes = [NEWER, OLDER].map(|name| size(directory.path(), name));
        assert_eq!(sizes, [30, 90]);
    }

    #[test]
    fn a_line_that_was_cut_off_does_not_spoil_the_next() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(NEWER), "{\"tick\":{\"bu").unwrap();
        let mut ring = Ring::open(directory.path(), 1 << 20).unwrap();
        ring.write(b"{\"lost\":1}\n").unwrap();
        let text = fs::read_to_string(directory.path().join(NEWER)).unwrap();
        assert_eq!(text, "{\"tick\":{\"bu\n{\"lost\":1}\n");
    }

    #[test]
    fn field_b7_a_file_that_is_deleted_cut_or_replaced_is_begun_anew() {
        let above = tempfile::tempdir().unwrap();
        let directory = above.path().join("recordings");
        let path = directory.join(NEWER);
        let mut ring = Ring::open(&directory, 1 << 20).unwrap();
        let lost: [&dyn Fn(); 4] = [
            &|| fs::remove_file(&path).unwrap(),
            &|| fs::remove_dir_all(&directory).unwrap(),
            &|| {
                File::options()
                    .write(true)
                    .open(&path)
                    .unwrap()
                    .set_len(3)
                    .unwrap();
            },
            &|| fs::rename(&path, directory.join("moved")).unwrap(),
        ];
        for lose in lost {
            ring.write(b"line\n").unwrap();
            assert!(!ring.begin_anew().unwrap());
            lose();
            assert!(ring.begin_anew().unwrap());
            assert!(!ring.begin_anew().unwrap(), "told once");
            ring.write(b"new\n").unwrap();
            assert!(fs::read_to_string(&path).unwrap().ends_with("new\n"));
        }
    }

    #[test]
    fn one_agent_records_in_a_directory_and_links_are_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let _first = Ring::open(directory.path(), 1 << 20).unwrap();
        let second = Ring::open(directory.path(), 1 << 20).unwrap_err();
        assert!(second.to_string().contains("another agent"), "{second}");
        let other = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/null", other.path().join(NEWER)).unwrap();
        Ring::open(other.path(), 1 << 20).unwrap_err();
    }
}
