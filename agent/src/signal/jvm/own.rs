//! Proves that a file with counters is the one that this JVM maps.
//!
//! Its name is a pid in the JVM's own pid namespace, and two containers with a common `/tmp` each have a process 1. A
//! JVM that has died leaves its file behind. So the name proves nothing: the owner must be the process's, and the
//! process must map that very file. It is looked at again when file or process are others, and once a minute.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::{fstatfs, major, minor};

use super::super::parse::task_stat;
use super::super::processes::Scan;
use crate::procfs::NoValue;
use crate::procfs::kept_file::ReadBuffer;
use crate::procfs::parse::{lines, number, words};

/// Time from one proof to the next.
const AGAIN_NS: u64 = 60_000_000_000;
/// System calls that the list of mappings is worth. A JVM has some hundred of them.
const MAPS_CALLS: u32 = 32;
/// File systems that call one file by two device numbers: of the layer that it lies in, and their own.
const LAYERED: [libc::__fsword_t; 3] = [0x794c_7630, 0x9123_683e, 0xca45_1a4e];

/// A file that was proved to be a process's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owned {
    device: u64,
    inode: u64,
    /// When the process began, clock ticks since boot.
    began: u64,
    proved_ns: u64,
}

/// Proves it, unless `known` is a proof of the same file and process that is new enough.
///
/// # Errors
/// [`NoValue::NotItsOwn`]; [`NoValue::NoPerfData`] where the process maps no such file at all; why it cannot be proved.
pub(super) fn prove(
    pid: u32,
    file: &File,
    known: Option<Owned>,
    scan: &mut Scan,
    buffer: &mut ReadBuffer,
) -> Result<Owned, NoValue> {
    let found = file.metadata().map_err(|error| NoValue::of(&error))?;
    let began = buffer
        .read_once(scan.path(format_args!("/{pid}/stat")))
        .and_then(task_stat::began)?;
    let now = Owned {
        device: found.dev(),
        inode: found.ino(),
        began,
        proved_ns: scan.now_ns(),
    };
    let is_same = |known: &Owned| {
        let is_new = now.proved_ns.saturating_sub(known.proved_ns) < AGAIN_NS;
        is_new
            && Owned {
                proved_ns: now.proved_ns,
                ..*known
            } == now
    };
    if let Some(known) = known.filter(is_same) {
        return Ok(known);
    }
    let status = buffer.read_once(scan.path(format_args!("/{pid}/status")))?;
    if effective_user(status) != Some(u64::from(found.uid())) {
        return Err(NoValue::NotItsOwn);
    }
    scan.spend(MAPS_CALLS);
    let is_layered = fstatfs(file).is_ok_and(|system| LAYERED.contains(&system.f_type));
    let maps = buffer.read_once(scan.path(format_args!("/{pid}/maps")))?;
    let mut maps_any = false;
    for mapping in lines(maps).filter_map(mapping) {
        maps_any |= mapping.is_of_jvm;
        let is_device = mapping.device == (major(now.device), minor(now.device));
        if mapping.is_of_jvm && mapping.inode == now.inode && (is_device || is_layered) {
            return Ok(now);
        }
    }
    Err(if maps_any {
        NoValue::NotItsOwn
    } else {
        NoValue::NoPerfData
    })
}

/// A file that is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mapping {
    device: (u32, u32),
    inode: u64,
    /// Whether its path is that of a JVM's counters.
    is_of_jvm: bool,
}

/// `from-to rights offset major:minor inode path`, the device in hexadecimal.
fn mapping(line: &[u8]) -> Option<Mapping> {
    let mut words = words(line).skip(3);
    let mut device = words
        .next()?
        .splitn(2, |&byte| byte == b':')
        .map(hexadecimal);
    let device = (device.next()??, device.next()??);
    let inode = words.next().and_then(number)?;
    let path = words.next()?;
    let folder = super::find::USER_DIRECTORY;
    Some(Mapping {
        device,
        inode,
        is_of_jvm: path.windows(folder.len()).any(|part| part == folder),
    })
}

fn hexadecimal(word: &[u8]) -> Option<u32> {
    let word = str::from_utf8(word).ok()?;
    u32::from_str_radix(word, 16).ok()
}

/// Second of the line `Uid`: real, effective, saved, of the file system.
fn effective_user(status: &[u8]) -> Option<u64> {
    let line = lines(status).find_map(|line| line.strip_prefix(b"Uid:"))?;
    words(line).nth(1).and_then(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn mappings_tell_device_and_inode() {
        let told = mapping(
            b"7f0e-7f0f rw-s 00000000 fd:1a 1234                    /tmp/hsperfdata_app/1 (deleted)\n",
        );
        let wanted = Mapping {
            device: (0xfd, 0x1a),
            inode: 1234,
            is_of_jvm: true,
        };
        assert_eq!(told, Some(wanted));
        let heap = mapping(b"7f0e-7f0f rw-p 00000000 00:00 0 [heap]\n").unwrap();
        assert!(!heap.is_of_jvm);
        for odd in [
            "",
            "a b c",
            "a r 0 1 2 /x",
            "a r 0 x:1 2 /x",
            "a r 0 1:1 -2 /x",
        ] {
            assert_eq!(mapping(odd.as_bytes()), None, "{odd}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_decided(bytes: Vec<u8>) {
            let _read = (mapping(&bytes), effective_user(&bytes));
        }
    }
}
