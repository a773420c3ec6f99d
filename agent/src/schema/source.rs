//! The text of a file, and lines and columns in it.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::OFlags;

use super::fault::{Fault, InFile, Point};
use crate::plain::plain;

/// Largest file that is read, in bytes.
pub const SIZE_MAX: u64 = 1 << 20;

/// Longest piece of a file that a message repeats, in characters.
const SHOWN_MAX: usize = 60;

/// A file that was read, or several that are read as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    name: Arc<str>,
    text: String,
    /// Byte at which each line begins.
    lines: Vec<usize>,
    /// Byte at which each further file begins, and its name; none for a single file.
    further: Vec<(usize, Arc<str>)>,
}

impl Source {
    /// Takes a text under the name that faults give it. A byte order mark before it is no part of it.
    pub fn new(name: impl Into<Arc<str>>, text: impl Into<String>) -> Self {
        let mut text = text.into();
        if text.starts_with('\u{feff}') {
            text.remove(0);
        }
        let after_breaks = text.match_indices('\n').map(|(at, _)| at.saturating_add(1));
        let lines = std::iter::once(0).chain(after_breaks).collect();
        Self {
            name: name.into(),
            text,
            lines,
            further: Vec::new(),
        }
    }

    /// This file and those after it as one text. Places in it are those in the files.
    #[must_use]
    pub fn followed_by(self, others: &[Self]) -> Self {
        let Self { name, mut text, .. } = self;
        let mut further = Vec::with_capacity(others.len());
        for other in others {
            // Each begins a line of its own, whatever the one before ends with.
            text.push('\n');
            further.push((text.len(), Arc::clone(&other.name)));
            text.push_str(&other.text);
        }
        Self {
            further,
            ..Self::new(name, text)
        }
    }

    /// Byte at which each file begins.
    pub(super) fn starts(&self) -> impl Iterator<Item = usize> {
        let further = self.further.iter().map(|(start, _name)| *start);
        std::iter::once(0).chain(further)
    }

    /// The file that a byte is of: where it begins, and its name.
    fn file_of(&self, byte: usize) -> (usize, &Arc<str>) {
        let after = self
            .further
            .partition_point(|(start, _name)| *start <= byte);
        let last = after.checked_sub(1).and_then(|last| self.further.get(last));
        last.map_or((0, &self.name), |(start, name)| (*start, name))
    }

    /// How many lines begin at or before a byte.
    fn lines_to(&self, byte: usize) -> usize {
        self.lines.partition_point(|start| *start <= byte)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// One fault when it is no file, cannot be read, is larger than [`SIZE_MAX`] or is not UTF-8.
    pub fn read(path: &Path) -> Result<Self, Box<Fault>> {
        Ok(Self::read_or(path, hint)?.0)
    }

    /// The same for a file that was found in a directory and that nobody named, and whose it is.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_found(path: &Path) -> Result<(Self, Metadata), Box<Fault>> {
        let hint = |error: &io::Error| {
            if error.kind() == io::ErrorKind::PermissionDenied {
                hint(error)
            } else {
                "put a rule file in its place, or take it out of the directory"
            }
        };
        Self::read_or(path, hint)
    }

    fn read_or(
        path: &Path,
        hint: fn(&io::Error) -> &'static str,
    ) -> Result<(Self, Metadata), Box<Fault>> {
        let name = path.display().to_string();
        let refuse = |value: String, hint: &str| {
            let allowed = "a UTF-8 text file of at most 1 MiB";
            Box::new(Fault::of_file(&name, value, allowed, hint))
        };
        let (bytes, opened) = read_bounded(path).map_err(|error| {
            let hint = hint(&error);
            if error.kind() == io::ErrorKind::NotFound {
                return Box::new(Fault::of_file(&name, "no such file", "", hint));
            }
            refuse(error.to_string(), hint)
        })?;
        if u64::try_from(bytes.len()).is_ok_and(|length| length > SIZE_MAX) {
            return Err(refuse("larger than 1 MiB".to_owned(), "split the file"));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok((Self::new(name, text), opened)),
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let bytes = error.into_bytes();
                let before = String::from_utf8_lossy(bytes.get(..valid).unwrap_or_default());
                let place = Self::new(name.clone(), before.into_owned()).place(valid);
                let mut fault = refuse("not UTF-8".to_owned(), "save the file as UTF-8");
                fault.place = place;
                Err(fault)
            }
        }
    }

    /// The name that faults give it.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line and column of a byte. A byte past the end counts as the end.
    pub fn place(&self, byte: usize) -> InFile {
        let byte = self.text.floor_char_boundary(byte);
        let line = self.lines_to(byte);
        let start = line.checked_sub(1).and_then(|index| self.lines.get(index));
        let before = start.and_then(|start| self.text.get(*start..byte));
        let column = before.map_or(0, |text| text.chars().count());
        let (file_start, name) = self.file_of(byte);
        let lines_before = self.lines_to(file_start).saturating_sub(1);
        InFile {
            file: Arc::clone(name),
            point: Some(Point {
                line: line.saturating_sub(lines_before),
                column: column.saturating_add(1),
            }),
        }
    }

    /// Place of a byte column (from 1) of a line (from 1), as some parsers count.
    pub fn place_at(&self, line: usize, byte_column: usize) -> InFile {
        let start = line.checked_sub(1).and_then(|index| self.lines.get(index));
        let offset = byte_column.saturating_sub(1);
        self.place(start.map_or(0, |start| start.saturating_add(offset)))
    }

    /// The text of a span on one line, cut after 60 characters.
    pub fn excerpt(&self, span: &Range<usize>) -> String {
        shown(self.text.get(span.clone()).unwrap_or_default())
    }
}

/// Makes a text fit for one line of a message.
pub(crate) fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(SHOWN_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    plain(&short).into_owned()
}

fn read_bounded(path: &Path) -> io::Result<(Vec<u8>, Metadata)> {
    // Looked at before opening: opening a pipe without a writer would wait for ever.
    let meta = std::fs::metadata(path)?;
    if meta.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !meta.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    let bound = SIZE_MAX.saturating_add(1);
    // Some files of the kernel are regular ones by their kind, and still wait for a writer.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let opened = file.metadata()?;
    if !opened.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    file.take(bound).read_to_end(&mut bytes)?;
    Ok((bytes, opened))
}

fn hint(error: &io::Error) -> &'static str {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the standard library may add kinds of errors"
    )]
    match error.kind() {
        io::ErrorKind::NotFound => "create the file or give another path",
        io::ErrorKind::PermissionDenied => "let the agent's user read it",
        io::ErrorKind::IsADirectory => "name a file in it",
        io::ErrorKind::WouldBlock => {
            "give a file that holds the text, not one that waits for somebody to write it"
        }
        _ => "give another path",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By its kind a regular file, which ends only when the kernel has something to say.
    const WAITS: &str = "/proc/kmsg";

    #[test]
    fn field_b9_a_file_that_waits_for_a_writer_is_refused_and_holds_nobody_up() {
        // Without the right to open it there is an error as well.
        let error = read_bounded(Path::new(WAITS)).unwrap_err();
        assert!(!hint(&error).is_empty(), "{error}");
    }
}
