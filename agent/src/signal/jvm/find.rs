//! Finds the file of a JVM in the JVM's own view of the file system.
//!
//! A container has its own `/tmp` and its own pids. Its owner may put anything there, so every path is
//! resolved inside the root of the process, links and pipes are not followed.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::super::processes::Scan;
use crate::procfs::NoValue;
use crate::procfs::directory::{self, OpenDirectory};
use crate::procfs::kept_file::ReadBuffer;
use crate::procfs::parse::innermost_pid::innermost_pid;

/// Where a `HotSpot` puts the files of a user, whatever `java.io.tmpdir` says.
const TMP: &str = "tmp";
pub(super) const USER_DIRECTORY: &[u8] = b"hsperfdata_";
/// Most names in it that are looked at: whoever owns it may make as many as it likes.
const NAMES_MAX: usize = 4096;

/// The root directory of a process.
///
/// # Errors
/// The process is gone, or is not ours to look into.
pub(super) fn root(pid: u32, scan: &mut Scan) -> Result<OpenDirectory, NoValue> {
    directory::open(scan.path(format_args!("/{pid}/root")))
}

/// Visits each file below the root of a JVM that has the name of its file, with its path, until one is taken.
///
/// # Errors
/// [`NoValue::NoPerfData`] if there is none: the JVM was started with `-XX:-UsePerfData`, or is not a
/// `HotSpot`. Why none was taken, or [`NoValue::Crowded`] where it may be among too many names.
pub(super) fn each_file<T>(
    pid: u32,
    root: &OpenDirectory,
    scan: &mut Scan,
    buffer: &mut ReadBuffer,
    take: &mut dyn FnMut(&File, &mut Scan, &mut ReadBuffer) -> Result<T, NoValue>,
) -> Result<(PathBuf, T), NoValue> {
    let status = buffer.read_once(scan.path(format_args!("/{pid}/status")));
    let inner = status
        .ok()
        .and_then(innermost_pid)
        .unwrap_or(u64::from(pid))
        .to_string();
    let tmp = root
        .open_directory(Path::new(TMP))
        .map_err(none_if_absent)?;
    let mut found = Err(NoValue::NoPerfData);
    let seen = directory::each_directory_of(NAMES_MAX, &tmp, &mut |name| {
        if found.is_ok() || !name.starts_with(USER_DIRECTORY) {
            return;
        }
        let below = Path::new(TMP).join(OsStr::from_bytes(name)).join(&inner);
        let file = root.open_file(&below).map_err(none_if_absent);
        match file.and_then(|file| take(&file, scan, buffer)) {
            Ok(taken) => found = Ok((below, taken)),
            Err(NoValue::NoPerfData) => {}
            Err(fault) => found = Err(fault),
        }
    });
    match found {
        Err(NoValue::NoPerfData) => seen.and(found),
        told => told,
    }
}

fn none_if_absent(fault: NoValue) -> NoValue {
    if fault.is_absent() {
        NoValue::NoPerfData
    } else {
        fault
    }
}
