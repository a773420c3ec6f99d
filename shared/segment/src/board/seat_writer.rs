//! The role that seats processes and takes their seats away.

use tidegate_abi::board::{SeatWord, header, seat};

use super::{Board, halves};
use crate::sync::Ordering;

/// The process that takes a seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Process id in the agent's namespace.
    pub pid: u32,
    /// Start time, clock ticks since boot.
    pub start: u64,
    /// Real user id.
    pub uid: u32,
    /// Scope of its own cgroup.
    pub scope: u32,
}

/// Seats processes. There is one of it for each board.
#[derive(Debug)]
pub struct SeatWriter {
    board: Board,
}

impl SeatWriter {
    pub(super) const fn new(board: Board) -> Self {
        Self { board }
    }

    /// The board that is written.
    pub const fn board(&self) -> Board {
        self.board
    }

    /// Puts a seat back as another board had it: live, and held by this process, or free.
    pub fn restore(&mut self, index: u32, word: SeatWord, process: Process) {
        self.write(index, word, process);
    }

    /// Gives a seat that is free to a process, under a new generation, and returns that; `None` if
    /// there is no such seat or it is taken.
    ///
    /// The rows of the seat must be clean, see [`crate::ledger::Ledger::clear_seat`].
    pub fn seat(&mut self, index: u32, process: Process) -> Option<u32> {
        let place = usize::try_from(index).ok()?;
        self.board.seat_lines().get(place)?;
        let before = self.board.seat(index);
        if before.live {
            return None;
        }
        // 0 is the generation of a seat never used.
        let generation = match before.generation.wrapping_add(1) & SeatWord::GENERATION_MASK {
            0 => 1,
            next => next,
        };
        let word = SeatWord {
            live: true,
            generation,
        };
        self.write(index, word, process);
        Some(generation)
    }

    fn write(&self, index: u32, word: SeatWord, process: Process) {
        let lines = self.board.seat_lines();
        let Some(line) = usize::try_from(index)
            .ok()
            .and_then(|index| lines.get(index))
        else {
            return;
        };
        line[seat::PROCESS].store(halves(process.pid, process.uid), Ordering::Relaxed);
        line[seat::START].store(process.start, Ordering::Relaxed);
        line[seat::CALM].store(0, Ordering::Relaxed);
        line[seat::SCOPE].store(u64::from(process.scope), Ordering::Relaxed);
        line[seat::SERVICE].store(0, Ordering::Relaxed);
        line[seat::SHARE_OF_HOST].store(0, Ordering::Relaxed);
        line[seat::SHARE_OF_SCOPE].store(0, Ordering::Relaxed);
        // Release: pairs with the Acquire in `Board::seat`; the words above belong to the new holder.
        line[seat::IDENTITY].store(word.pack(), Ordering::Release);
        let used = &self.board.header()[header::SEATS_USED];
        let count = u64::from(index).saturating_add(1);
        if used.load(Ordering::Relaxed) < count {
            // Release: pairs with the Acquire in `Board::seats_used`.
            used.store(count, Ordering::Release);
        }
    }

    /// Takes a seat away: from this store on none of its permits counts, and its process finds out
    /// at its next decision.
    pub fn revoke(&mut self, index: u32) {
        let lines = self.board.seat_lines();
        let Some(line) = usize::try_from(index)
            .ok()
            .and_then(|index| lines.get(index))
        else {
            return;
        };
        let word = SeatWord {
            live: false,
            ..self.board.seat(index)
        };
        // Release: pairs with the Acquire in `Board::seat`.
        line[seat::IDENTITY].store(word.pack(), Ordering::Release);
        line[seat::CALM].store(0, Ordering::Relaxed);
    }

    /// Says which service sits in a seat: the hash of its name.
    pub fn name_service(&mut self, index: u32, service: u64) {
        let lines = self.board.seat_lines();
        if let Some(line) = usize::try_from(index)
            .ok()
            .and_then(|index| lines.get(index))
        {
            line[seat::SERVICE].store(service, Ordering::Relaxed);
        }
    }

    /// Moves a seat to another scope (its process changed its cgroup).
    pub fn move_to_scope(&mut self, index: u32, scope: u32) {
        let lines = self.board.seat_lines();
        if let Some(line) = usize::try_from(index)
            .ok()
            .and_then(|index| lines.get(index))
        {
            line[seat::SCOPE].store(u64::from(scope), Ordering::Relaxed);
            // The next tick says how the new scope is.
            line[seat::CALM].store(0, Ordering::Relaxed);
        }
    }
}
