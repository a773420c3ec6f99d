//! What a life of the agent leaves to the one after it, and the proof that pages which a service hands back are those.
//!
//! The services still map the ledger of an agent that was killed, so they can hand it back. What they hand over could
//! be anything. A record that the agent keeps in its own directory says which files its pages are, by device and inode,
//! and who sits where. A board that is proved so is believed, since it is sealed against everybody's writing. The ledger
//! stays what it always was: words that may be wrong for those who share it.

mod file;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use tidegate_abi::board::{SeatWord, name_hash};
use tidegate_abi::geometry::Geometry;
use tidegate_segment::board::{Board, HeaderFault, Process};
use tidegate_segment::os::map;
use tidegate_segment::os::memfd::{self, FileError, FileId, MemoryKind};
use tidegate_segment::page::Page;

pub use file::LifeRecord;

/// Most boards that a record names: those of the lives in which nobody has moved to a newer one yet.
pub const BOARDS_MAX: usize = 32;

/// A board as a record names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoardName {
    /// Its file.
    pub file: FileId,
    /// The random number in its header.
    pub generation: u64,
}

/// Which files the pages of a tenant are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageNames {
    /// The ledger.
    pub ledger: FileId,
    /// The board in force, then those before it on the same ledger. What a name's slot is has never changed
    /// between them.
    pub boards: Vec<BoardName>,
}

impl PageNames {
    /// The place of a pair of files among them, 0 for the board in force.
    pub fn place(&self, board: FileId, ledger: FileId) -> Option<usize> {
        let place = self.boards.iter().position(|known| known.file == board)?;
        (ledger == self.ledger).then_some(place)
    }

    /// Those of the next life, which makes a board of its own and goes on from one of these.
    #[must_use]
    pub fn followed_by(&self, board: BoardName, from: usize) -> Self {
        let before = self.boards.iter().skip(from).copied();
        Self {
            ledger: self.ledger,
            boards: std::iter::once(board)
                .chain(before)
                .take(BOARDS_MAX)
                .collect(),
        }
    }
}

/// A seat as a record names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedSeat {
    /// Number of the seat.
    pub index: u32,
    /// Its generation, and whether somebody sat there.
    pub word: SeatWord,
    /// Who sat there last.
    pub process: Process,
}

/// What the life before has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastLife {
    /// Which files its pages are.
    pub names: PageNames,
    /// Their sizes.
    pub geometry: Geometry,
    /// The seats that were ever given, in their order.
    pub seats: Vec<RecordedSeat>,
}

/// Pages that were handed back and proved to be those of the life before.
#[derive(Debug)]
pub struct ProvedPages {
    /// The board, mapped for reading.
    pub board: Board,
    /// Its memory.
    pub board_page: Page,
    /// The ledger, mapped for writing.
    pub ledger_page: Page,
    /// Its file.
    pub ledger_file: OwnedFd,
    /// Which of the boards it is; 0 is that of the last life.
    pub place: usize,
}

impl ProvedPages {
    /// Gives the memory of both pages back.
    pub fn retire(self) {
        for page in [self.board_page, self.ledger_page] {
            // Where the kernel has no room for the change, the page just stays mapped.
            let _kept: Result<(), Errno> = map::retire(page);
        }
    }
}

/// Why what was handed over is not taken.
#[derive(Debug, thiserror::Error)]
pub enum NotTaken {
    /// The kernel does not say what it is.
    #[error("what was handed back cannot be looked at: {0}")]
    Unknown(Errno),
    /// Other files than the record names.
    #[error("these are not the pages of the agent's last life")]
    Foreign,
    /// A file that is not sealed as a page is, or of another size.
    #[error(transparent)]
    File(#[from] FileError),
    /// A page of another kind or layout.
    #[error(transparent)]
    Header(#[from] HeaderFault),
    /// A board that says another thing than the record.
    #[error("the board is another one than the record names")]
    OtherBoard,
}

/// What there is of the life before.
#[derive(Debug)]
pub enum LastLifeFound {
    /// Its pages can be gone on with.
    Usable(LastLife),
    /// Its pages have other sizes.
    OtherSizes(LastLife),
    /// Nothing is known of it, if there was one.
    Unknown,
}

impl LastLife {
    /// What the life before of a tenant has left in a directory. What is wrong with a record that cannot be used is told.
    pub fn read(directory: &Path, tenant: &str, geometry: Geometry) -> LastLifeFound {
        let path = path(directory, tenant);
        let left = match file::read(&path) {
            Ok(Some(left)) => left,
            Ok(None) => return LastLifeFound::Unknown,
            Err(fault) => {
                tracing::warn!(event = "pages_begun_anew", tenant, file = %path.display(), %fault, "the pages of the last run cannot be taken up");
                return LastLifeFound::Unknown;
            }
        };
        if left.geometry == geometry {
            return LastLifeFound::Usable(left);
        }
        tracing::warn!(
            event = "pages_begun_anew",
            tenant,
            "the pages have other sizes than in the last run: windows and breakers begin at zero, at most one window more \
             is admitted"
        );
        LastLifeFound::OtherSizes(left)
    }

    /// Proves that a pair of files are pages of this record, and maps them.
    ///
    /// # Errors
    /// They are not, or are not sealed as pages are. Nothing stays mapped then.
    pub fn prove(&self, board: &OwnedFd, ledger: &OwnedFd) -> Result<ProvedPages, NotTaken> {
        let [board_id, ledger_id] =
            [board, ledger].map(|file| memfd::identify(file).map_err(NotTaken::Unknown));
        let place = self.names.place(board_id?, ledger_id?);
        let place = place.ok_or(NotTaken::Foreign)?;
        let own = ledger
            .try_clone()
            .map_err(|_no_descriptor| NotTaken::Unknown(Errno::MFILE))?;
        let board_page = memfd::open(MemoryKind::Board, board, self.geometry.board().words)?;
        let unmap = |page: Page| {
            let _kept: Result<(), Errno> = map::retire(page);
        };
        let board = self
            .check(board_page, place)
            .inspect_err(|_other| unmap(board_page))?;
        let ledger_page = memfd::open(MemoryKind::Ledger, ledger, self.geometry.ledger().words)
            .inspect_err(|_refused| unmap(board_page))?;
        Ok(ProvedPages {
            board,
            board_page,
            ledger_page,
            ledger_file: own,
            place,
        })
    }

    fn check(&self, page: Page, place: usize) -> Result<Board, NotTaken> {
        let board = Board::open(page)?;
        let named = self.names.boards.get(place);
        let same = named.is_some_and(|named| named.generation == board.generation());
        if same && board.geometry() == self.geometry {
            Ok(board)
        } else {
            Err(NotTaken::OtherBoard)
        }
    }
}

/// The record of a tenant.
pub fn path(directory: &Path, tenant: &str) -> PathBuf {
    // A tenant's name may hold anything.
    let hash = name_hash(tenant.as_bytes());
    directory.join(format!("pages-{hash:016x}"))
}

#[cfg(test)]
mod tests;
