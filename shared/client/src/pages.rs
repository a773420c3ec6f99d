//! The pages of a session: taken from a welcome, kept to be handed back, given back in the end.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use tidegate_abi::board::SeatWord;
use tidegate_abi::message::Welcome;
use tidegate_segment::board::Board;
use tidegate_segment::gate::Gate;
use tidegate_segment::ledger::Ledger;
use tidegate_segment::os::{map, memfd};
use tidegate_segment::page::Page;

use crate::error::ConnectFault;

/// The pages of a session.
#[derive(Debug)]
pub(crate) struct Pages {
    board: Page,
    ledger: Page,
    /// What they are mapped from, to hand it back to an agent that was started anew.
    pub(crate) board_file: OwnedFd,
    pub(crate) ledger_file: OwnedFd,
    pub(crate) seat: u32,
    pub(crate) seat_generation: u32,
    /// The ledger is that of the session before, whose seat was kept: it is theirs until this one is in force.
    kept: bool,
}

impl Pages {
    /// Whether seat and ledger are those of the session before.
    pub(crate) const fn are_kept(&self) -> bool {
        self.kept
    }

    /// Takes the ledger over from the session before; gives the board that is left of it.
    pub(crate) fn take_over(&mut self, before: &Self) -> Page {
        self.kept = false;
        before.board
    }

    /// Gives the memory back; whoever still reads the pages sees a seat that was taken away.
    pub(crate) fn retire(self) {
        retire(self.board);
        if !self.kept {
            retire(self.ledger);
        }
    }

    /// Whether their board says that the process sits there: it is taken away by an agent that lives, and stays for
    /// ever on the board of one that died.
    pub(crate) fn are_live(&self) -> bool {
        self.views()
            .is_some_and(|(board, _ledger)| board.seat(self.seat) == self.word())
    }

    /// Whether the process has anything in flight there.
    pub(crate) fn hold_any(&self) -> bool {
        self.views()
            .is_some_and(|(board, ledger)| ledger.seat_holds(&board, self.seat, self.word()) > 0)
    }

    /// Ends what the process has in flight there, so that nobody counts it any more, and gives the memory back. Rows of
    /// a seat that was taken away may be another's by now.
    pub(crate) fn end(self) {
        if self.are_live()
            && let Some((board, ledger)) = self.views()
        {
            ledger.end_held(self.seat, self.word(), board.resources_used());
        }
        self.retire();
    }

    fn views(&self) -> Option<(Board, Ledger)> {
        let board = Board::open(self.board).ok()?;
        let ledger = Ledger::open(self.ledger, board.geometry()).ok()?;
        Some((board, ledger))
    }

    const fn word(&self) -> SeatWord {
        SeatWord {
            live: true,
            generation: self.seat_generation,
        }
    }

    /// Whether a welcome goes on with the seat and the ledger of these pages.
    fn go_on_with(&self, welcome: &Welcome, ledger_file: &OwnedFd) -> bool {
        let same_file = || {
            let [own, given] = [&self.ledger_file, ledger_file].map(memfd::identify);
            matches!((own, given), (Ok(own), Ok(given)) if own == given)
        };
        (welcome.seat, welcome.seat_generation) == (self.seat, self.seat_generation) && same_file()
    }
}

/// Gives the memory of a page back.
pub(crate) fn retire(page: Page) {
    // Where the kernel has no room for the change, the page just stays mapped.
    let _kept: Result<(), Errno> = map::retire(page);
}

/// Checks and maps the pages that came with a welcome; `None` if another service of the tenant writes over all of
/// the ledger. The agent knows its way there, so it can be asked.
pub(crate) fn take(
    welcome: Welcome,
    descriptors: Vec<OwnedFd>,
    held: Option<&Pages>,
) -> Result<Option<(Gate, Pages)>, ConnectFault> {
    let Ok([board_file, ledger_file]) = <[OwnedFd; 2]>::try_from(descriptors) else {
        return Err(ConnectFault::Unexpected("a welcome without its two pages"));
    };
    let words = |said: u64| {
        usize::try_from(said).map_err(|_wide| ConnectFault::Unexpected("a page of no size"))
    };
    let (board_words, ledger_words) = (words(welcome.board_words)?, words(welcome.ledger_words)?);
    let board = memfd::open(memfd::MemoryKind::Board, &board_file, board_words)?;
    let kept = held.filter(|held| held.go_on_with(&welcome, &ledger_file));
    let ledger = match kept {
        Some(held) => Ok(held.ledger),
        None => memfd::open(memfd::MemoryKind::Ledger, &ledger_file, ledger_words),
    };
    let ledger = ledger.inspect_err(|_refused| retire(board))?;
    let pages = Pages {
        board,
        ledger,
        board_file,
        ledger_file,
        seat: welcome.seat,
        seat_generation: welcome.seat_generation,
        kept: kept.is_some(),
    };
    match gate_on(&pages, welcome) {
        Ok(Some(gate)) => Ok(Some((gate, pages))),
        other => {
            pages.retire();
            other.map(|_no_gate| None)
        }
    }
}

fn gate_on(pages: &Pages, welcome: Welcome) -> Result<Option<Gate>, ConnectFault> {
    let board = Board::open(pages.board)?;
    let (seat, generation) = (welcome.seat, welcome.seat_generation);
    let ledger = Ledger::open(pages.ledger, board.geometry()).ok();
    Ok(ledger.map(|ledger| Gate::new(board, ledger, seat, generation)))
}
