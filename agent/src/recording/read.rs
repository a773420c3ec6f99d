//! Reads recordings. They are anybody's files: lines are bounded, and what is no line is counted.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use super::line::Line;
use super::ring::{NEWER, OLDER};

/// Longest line that is read, bytes. A configuration is at most 1 MiB and may double when quoted.
const LINE_MAX: u64 = 4 << 20;

/// A file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", .path.display())]
pub struct ReadError {
    path: PathBuf,
    error: io::Error,
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
    first_odd: Option<String>,
    bytes: Vec<u8>,
}

impl Reader {
    /// Opens a file, or the recording of a state directory.
    ///
    /// # Errors
    /// It is not there or cannot be read.
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
            first_odd: None,
            bytes: Vec::new(),
        })
    }

    /// The next line, `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read any more.
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
                Err(error) => self.pass_over(&error),
            }
        }
    }

    fn pass_over(&mut self, error: &serde_json::Error) {
        self.odd = self.odd.saturating_add(1);
        let place = self.place();
        self.first_odd
            .get_or_insert_with(|| format!("{place}: {error}"));
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
        ReadError {
            path: self.path.clone(),
            error,
        }
    }
}

fn open(path: &Path) -> Result<BufReader<File>, ReadError> {
    let failed = |error| ReadError {
        path: path.to_owned(),
        error,
    };
    let file = File::open(path).map_err(failed)?;
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
    fn what_is_no_line_is_passed_over_and_counted() {
        assert_eq!(lines_of(b"\xff\xfe\n\n[1]\n{\"lost\":1}\n"), (1, 2));
        let deep = [b"[".repeat(1 << 20), b"\n{\"lost\":1}\n".to_vec()].concat();
        assert_eq!(lines_of(&deep), (1, 1));
        let long = [b"x".repeat(9 << 20), b"\n{\"lost\":1}\n".to_vec()].concat();
        assert_eq!(lines_of(&long), (1, 3));
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
