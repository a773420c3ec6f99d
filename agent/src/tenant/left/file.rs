//! The record as a file: little-endian words.
//!
//! | words | hold |
//! |---|---|
//! | 0, 1 | what it is; version of the record, and of the pages in the high half |
//! | 2, 3 | id of the boot: a start time and a file mean nothing after the next one |
//! | 4, 5 | sizes of the pages, as in their headers |
//! | 6, 7 | the ledger: device, inode |
//! | 8 | number of boards |
//! | 9 to 104 | the boards, the newest first: device, inode, generation |
//! | from 128 | for each seat four words: its word, pid and user, start time of the process, zero |
//!
//! It is written whole under another name and put in its place; from then on each change of a seat is one write of its
//! words. A write is in the kernel when the call returns, so the agent's death takes nothing of it away.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use tidegate_abi::VERSION;
use tidegate_abi::board::SeatWord;
use tidegate_abi::geometry::Geometry;
use tidegate_segment::board::Process;
use tidegate_segment::os::memfd::FileId;

use super::{BOARDS_MAX, BoardName, LastLife, PageNames, RecordedSeat};

/// "TIDELEFT" read as a big-endian number.
const MAGIC: u64 = 0x5449_4445_4c45_4654;
const RECORD_VERSION: u32 = 1;
const WORD: usize = 8;
const BOARDS_AT: usize = 9;
const BOARD_WORDS: usize = 3;
const SEATS_AT: usize = 128;
const SEAT_WORDS: usize = 4;
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Why a record cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordFault {
    /// The file system refused.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// Others could have written it.
    #[error("is not this user's alone (owner {owner}, mode {mode:o})")]
    Open {
        /// Who owns it.
        owner: u32,
        /// Its permission bits.
        mode: u32,
    },
    /// It is no record, or a damaged one.
    #[error("is damaged, or no record of pages")]
    Damaged,
    /// Another version of the record or of the pages.
    #[error("is of another version: windows, breakers and places in flight begin anew")]
    Version,
}

/// The record of this life, open for the changes of its seats.
#[derive(Debug)]
pub struct LifeRecord {
    file: File,
}

impl LifeRecord {
    /// Puts a record in the place of the one before.
    ///
    /// # Errors
    /// The file system refused; the one before is still there then, and the next life finds the pages of the last.
    pub fn write(path: &Path, left: &LastLife) -> io::Result<Self> {
        let new = path.with_extension("new");
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(no_links())
            .open(&new)?;
        file.write_all(&bytes_of(&words_of(left, boot_id()?)))?;
        fs::rename(&new, path)?;
        Ok(Self { file })
    }

    /// Takes down who sits in a seat.
    ///
    /// # Errors
    /// The file system refused.
    pub fn set_seat(&self, seat: &RecordedSeat) -> io::Result<()> {
        let index = usize::try_from(seat.index).unwrap_or(usize::MAX);
        let place = index
            .saturating_mul(SEAT_WORDS)
            .saturating_add(SEATS_AT)
            .saturating_mul(WORD);
        let place = u64::try_from(place).unwrap_or(u64::MAX);
        self.file.write_all_at(&bytes_of(&seat_words(seat)), place)
    }
}

/// Reads a record; `None` where there is none, or one of another boot.
pub(super) fn read(path: &Path) -> Result<Option<LastLife>, RecordFault> {
    let mut options = OpenOptions::new();
    let opened = options.read(true).custom_flags(no_links()).open(path);
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let found = file.metadata()?;
    let (owner, mode) = (found.uid(), found.mode() & 0o777);
    if owner != rustix::process::geteuid().as_raw() || mode & 0o077 != 0 {
        return Err(RecordFault::Open { owner, mode });
    }
    let mut bytes = Vec::new();
    file.take(bytes_max()).read_to_end(&mut bytes)?;
    let (words, []) = bytes.as_chunks::<WORD>() else {
        return Err(RecordFault::Damaged);
    };
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    parse(&words, boot_id()?)
}

fn bytes_max() -> u64 {
    let seats = usize::try_from(tidegate_abi::geometry::SEATS_MAX).unwrap_or(0);
    let words = SEATS_AT.saturating_add(seats.saturating_mul(SEAT_WORDS));
    u64::try_from(words.saturating_mul(WORD)).unwrap_or(u64::MAX)
}

fn parse(words: &[u64], boot: [u64; 2]) -> Result<Option<LastLife>, RecordFault> {
    let word = |place: usize| words.get(place).copied().ok_or(RecordFault::Damaged);
    if word(0)? != MAGIC {
        return Err(RecordFault::Damaged);
    }
    if word(1)? != versions() {
        return Err(RecordFault::Version);
    }
    if [word(2)?, word(3)?] != boot {
        return Ok(None);
    }
    let ((resources, seats), (lanes, scopes)) = (halves(word(4)?), halves(word(5)?));
    let geometry = Geometry::new(resources, seats, lanes, scopes);
    let geometry = geometry.map_err(|_size| RecordFault::Damaged)?;
    let file = |device: u64, inode: u64| FileId { device, inode };
    let count = usize::try_from(word(8)?).unwrap_or(usize::MAX);
    if count == 0 || count > BOARDS_MAX {
        return Err(RecordFault::Damaged);
    }
    let boards = (0..count).map(|number| {
        let at = BOARDS_AT.saturating_add(number.saturating_mul(BOARD_WORDS));
        Ok(BoardName {
            file: file(word(at)?, word(at.saturating_add(1))?),
            generation: word(at.saturating_add(2))?,
        })
    });
    let names = PageNames {
        ledger: file(word(6)?, word(7)?),
        boards: boards.collect::<Result<_, RecordFault>>()?,
    };
    let rest = words.get(SEATS_AT..).ok_or(RecordFault::Damaged)?;
    let (each, _part) = rest.as_chunks::<SEAT_WORDS>();
    let seats = (0..seats)
        .zip(each)
        .map(|(index, words)| seat(index, words));
    Ok(Some(LastLife {
        names,
        geometry,
        seats: seats.filter(|seat| seat.word.generation != 0).collect(),
    }))
}

fn words_of(left: &LastLife, [boot, boot_low]: [u64; 2]) -> Vec<u64> {
    let geometry = left.geometry;
    let mut words = vec![
        MAGIC,
        versions(),
        boot,
        boot_low,
        joined(geometry.resources(), geometry.seats()),
        joined(geometry.lanes(), geometry.scopes()),
        left.names.ledger.device,
        left.names.ledger.inode,
        u64::try_from(left.names.boards.len().min(BOARDS_MAX)).unwrap_or(0),
    ];
    for board in left.names.boards.iter().take(BOARDS_MAX) {
        words.extend([board.file.device, board.file.inode, board.generation]);
    }
    words.resize(SEATS_AT, 0);
    let mut seats = vec![[0; SEAT_WORDS]; usize::try_from(geometry.seats()).unwrap_or(0)];
    for seat in &left.seats {
        let place = usize::try_from(seat.index).ok();
        if let Some(words) = place.and_then(|place| seats.get_mut(place)) {
            *words = seat_words(seat);
        }
    }
    words.extend(seats.into_iter().flatten());
    words
}

fn seat_words(seat: &RecordedSeat) -> [u64; SEAT_WORDS] {
    let Process {
        pid, start, uid, ..
    } = seat.process;
    [seat.word.pack(), joined(pid, uid), start, 0]
}

fn seat(index: u32, words: &[u64; SEAT_WORDS]) -> RecordedSeat {
    let [word, who, start, _zero] = *words;
    let (pid, uid) = halves(who);
    RecordedSeat {
        index,
        word: SeatWord::unpack(word),
        process: Process {
            pid,
            start,
            uid,
            scope: 0,
        },
    }
}

fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn versions() -> u64 {
    joined(RECORD_VERSION, VERSION)
}

const fn joined(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

const fn halves(word: u64) -> (u32, u32) {
    ((word & 0xffff_ffff) as u32, (word >> 32) as u32)
}

fn no_links() -> i32 {
    OFlags::NOFOLLOW.union(OFlags::CLOEXEC).bits().cast_signed()
}

fn boot_id() -> io::Result<[u64; 2]> {
    let text = fs::read_to_string(BOOT_ID)?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let id = u128::from_str_radix(&digits, 16).map_err(io::Error::other)?;
    let low = u64::try_from(id & u128::from(u64::MAX)).unwrap_or(0);
    let high = u64::try_from(id >> 64).unwrap_or(0);
    Ok([high, low])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn left() -> LastLife {
        let file = |inode| FileId { device: 1, inode };
        let process = Process {
            pid: 77,
            start: 9,
            uid: 1000,
            scope: 0,
        };
        let seat = |index, live, generation| RecordedSeat {
            index,
            word: SeatWord { live, generation },
            process,
        };
        LastLife {
            names: PageNames {
                ledger: file(5),
                boards: (0..3)
                    .map(|number| BoardName {
                        file: file(100 - number),
                        generation: number << 40,
                    })
                    .collect(),
            },
            geometry: Geometry::new(8, 4, 2, 2).unwrap(),
            seats: vec![seat(0, true, 1), seat(2, false, 7)],
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_changed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record");
        assert!(read(&path).unwrap().is_none());
        let mut left = left();
        let record = LifeRecord::write(&path, &left).unwrap();
        assert_eq!(read(&path).unwrap().unwrap(), left);
        left.seats[1].word.live = true;
        record.set_seat(&left.seats[1]).unwrap();
        assert_eq!(read(&path).unwrap().unwrap(), left);
        let open = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o644);
        fs::set_permissions(&path, open).unwrap();
        assert!(matches!(read(&path), Err(RecordFault::Open { .. })));
    }

    #[test]
    fn a_record_of_another_boot_or_version_says_nothing() {
        let words = words_of(&left(), [1, 2]);
        assert!(parse(&words, [1, 2]).unwrap().is_some());
        assert!(parse(&words, [1, 3]).unwrap().is_none());
        let mut other = words;
        other[1] += 1 << 32;
        assert!(matches!(parse(&other, [1, 2]), Err(RecordFault::Version)));
    }

    proptest! {
        #[test]
        fn no_words_are_too_odd_for_a_record(
            mut words in proptest::collection::vec(any::<u64>(), 0..200),
            seats in 1_u32..2000,
        ) {
            let good = words_of(&left(), [1, 2]);
            let known = [0, 1, 2, 3].map(|place| (place, good[place]));
            for (place, word) in known.into_iter().chain([(4, joined(8, seats)), (5, joined(2, 2))]) {
                if let Some(found) = words.get_mut(place) {
                    *found = word;
                }
            }
            let _left = parse(&words, [1, 2]);
        }
    }
}
