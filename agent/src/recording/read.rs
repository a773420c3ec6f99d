//! Reads recordings. They are anybody's files: lines are bounded. A line that was cut off or spoiled is passed
//! over and counted; a whole one that says something else is somebody's mistake, and ends the reading.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::de::IgnoredAny;

use super::line::Line;
use super::ring::{NEWER, OLDER};

/// Longest line that is read, bytes. A configuration is at most 1 MiB and may double when quoted.
const LINE_MAX: u64 = 4 << 20;

/// Most bytes that are passed over. Those who are killed in the middle of a line leave far less.
const ODD_MAX: u64 = 64 << 20;

/// A recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be opened or read.
    #[error("{}: {error}; give a recording or a directory of recordings", .path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// It is a pipe, a device or the like, which may have no end.
    #[error("{}: is no plain file; give a file of recorded ticks, or the directory it is in", .0.display())]
    NotPlain(PathBuf),
    /// A whole line of JSON is none of a recording.
    #[error("{place}: {error}; correct the line or take it out")]
    Line {
        /// File and line.
        place: String,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// There is too much that is no line of a recording.
    #[error("{}: more than 64 MiB of it are no lines of a recording (first {first})", .path.display())]
    Spoiled {
        /// Its path.
        path: PathBuf,
        /// Where the first of it stands, and what is wrong.
        first: String,
    },
}

/// The lines of a file, or of both files of a directory, the older first.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    file: BufReader<File>,
    /// Files that follow.
    then: Vec<PathBuf>,
    /// Number of the last line, from 1.
    at: u64,
    odd: u64,
    odd_bytes: u64,
    first_odd: Option<String>,
    bytes: Vec<u8>,
}

impl Reader {
    /// Opens a file, or the recording of a state directory.
    ///
    /// # Errors
    /// It is not there, is no plain file or cannot be read.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let mut files = if path.is_dir() {
            let files = [OLDER, NEWER].map(|name| path.join(name));
            files.into_iter().filter(|file| file.exists()).collect()
        } else {
            vec![path.to_owned()]
        };
        if files.is_empty() {
            files.push(path.join(NEWER));
        }
        let first = files.remove(0);
        Ok(Self {
            file: open(&first)?,
            path: first,
            then: files,
            at: 0,
            odd: 0,
            odd_bytes: 0,
            first_odd: None,
            bytes: Vec::new(),
        })
    }

    /// The next line, `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read any more, a whole line says what no recording says, or too much is spoiled.
    pub fn next_line(&mut self) -> Result<Option<Line>, ReadError> {
        loop {
            self.bytes.clear();
            let mut bounded = (&mut self.file).take(LINE_MAX);
            let read = bounded.read_until(b'\n', &mut self.bytes);
            let read = read.map_err(|error| self.error(error))?;
            if read == 0 {
                if self.then.is_empty() {
                    return Ok(None);
                }
                self.path = self.then.remove(0);
                self.file = open(&self.path)?;
                self.at = 0;
                continue;
            }
            self.at = self.at.saturating_add(1);
            if self.bytes.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice(&self.bytes) {
                Ok(line) => return Ok(Some(line)),
                Err(error) if is_whole(&self.bytes) => {
                    let place = self.place();
                    return Err(ReadError::Line { place, error });
                }
                Err(error) => self.pass_over(&error)?,
            }
        }
    }

    fn pass_over(&mut self, error: &serde_json::Error) -> Result<(), ReadError> {
        self.odd = self.odd.saturating_add(1);
        let bytes = u64::try_from(self.bytes.len()).unwrap_or(u64::MAX);
        self.odd_bytes = self.odd_bytes.saturating_add(bytes);
        let place = self.place();
        let first = self
            .first_odd
            .get_or_insert_with(|| format!("{place}: {error}"));
        if self.odd_bytes <= ODD_MAX {
            return Ok(());
        }
        Err(ReadError::Spoiled {
            path: self.path.clone(),
            first: first.clone(),
        })
    }

    /// Where the last line stands: file and number.
    pub fn place(&self) -> String {
        format!("{}:{}", self.path.display(), self.at)
    }

    /// Lines that were passed over, and what was wrong with the first.
    pub fn odd(&self) -> (u64, Option<&str>) {
        (self.odd, self.first_odd.as_deref())
    }

    fn error(&self, error: io::Error) -> ReadError {
        ReadError::File {
            path: self.path.clone(),
            error,
        }
    }
}

/// Whether a line is JSON, whatever it says. One that was cut off is not.
fn is_whole(line: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(line).is_ok()
}

fn open(path: &Path) -> Result<BufReader<File>, ReadError> {
    let failed = |error| ReadError::File {
        path: path.to_owned(),
        error,
    };
    // A pipe that nobody writes to would keep the caller waiting.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = file.map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(ReadError::NotPlain(path.to_owned()));
    }
    Ok(BufReader::new(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(text: &[u8]) -> (usize, u64) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.jsonl");
        std::fs::write(&path, text).unwrap();
        let mut reader = Reader::open(&path).unwrap();
        let mut lines = 0;
        while reader.next_line().unwrap().is_some() {
            lines += 1;
        }
        (lines, reader.odd().0)
    }

    #[test]
    fn a_file_cut_at_any_byte_is_read_up_to_the_cut() {
        let text =
            b"{\"start\":{\"version\":1,\"part\":0}}\n{\"tick\":{\"busy\":0.5}}\n{\"lost\":3}\n";
        for length in 0..=text.len() {
            let cut = &text[..length];
            let whole = cut.split(|byte| *byte == b'\n').count() - 1;
            let (lines, odd) = lines_of(cut);
            assert!(lines >= whole, "{length}");
            assert!(odd <= 1, "{length}");
        }
    }

    #[test]
    fn what_was_spoiled_is_passed_over_and_counted() {
        assert_eq!(lines_of(b"\xff\xfe\n\n[1\n{\"lost\":1}\n"), (1, 2));
        let deep = [b"[".repeat(1 << 20), b"\n{\"lost\":1}\n".to_vec()].concat();
        assert_eq!(lines_of(&deep), (1, 1));
        let long = [b"x".repeat(9 << 20), b"\n{\"lost\":1}\n".to_vec()].concat();
        assert_eq!(lines_of(&long), (1, 3));
    }

    fn refused(text: &[u8]) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.jsonl");
        std::fs::write(&path, text).unwrap();
        let mut reader = Reader::open(&path).unwrap();
        loop {
            match reader.next_line() {
                Ok(line) => assert!(line.is_some(), "the whole file was read"),
                Err(error) => return error.to_string(),
            }
        }
    }

    #[test]
    fn a_whole_line_that_says_something_else_is_refused_with_its_place() {
        for (line, told) in [
            (r#"{"tick":{"bussy":0.5}}"#, "unknown field `bussy`"),
            (
                r#"{"expekt":{"state":"healthy"}}"#,
                "unknown variant `expekt`",
            ),
            (r#"{"tick":{"times":-1}}"#, "-1"),
            ("[1]", "expected value"),
        ] {
            let error = refused(format!("{{\"lost\":1}}\n{line}\n").as_bytes());
            assert!(
                error.contains("x.jsonl:2: ") && error.contains(told),
                "{error}"
            );
        }
    }

    #[test]
    fn a_file_of_nothing_but_holes_is_given_up() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.jsonl");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let error = Reader::open(&path).unwrap().next_line().unwrap_err();
        assert!(error.to_string().contains("x.jsonl:1: "), "{error}");
    }

    #[test]
    fn pipes_and_devices_are_refused_without_waiting_for_them() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join(NEWER);
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
        for path in [&pipe, directory.path(), Path::new("/dev/zero")] {
            let error = Reader::open(path).unwrap_err().to_string();
            assert!(error.contains("is no plain file"), "{error}");
        }
    }

    #[test]
    fn a_directory_is_read_older_file_first() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(OLDER), "{\"lost\":1}").unwrap();
        std::fs::write(directory.path().join(NEWER), "{\"lost\":2}\n").unwrap();
        let mut reader = Reader::open(directory.path()).unwrap();
        assert_eq!(reader.next_line().unwrap(), Some(Line::Lost(1)));
        assert_eq!(reader.next_line().unwrap(), Some(Line::Lost(2)));
        assert_eq!(reader.next_line().unwrap(), None);
    }
}
