//! The words of a seat.

/// What a service may hold of a limit: `[borrowed included 32 | guaranteed 32]`. 0 = the whole limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareWord {
    /// Requests that it may hold whatever the others hold.
    pub guaranteed: u32,
    /// Requests that it may hold with what it borrows.
    pub limit: u32,
}

impl ShareWord {
    /// The word.
    pub const fn pack(self) -> u64 {
        self.guaranteed as u64 | (self.limit as u64) << 32
    }

    /// The parts of a word, `None` for the whole limit.
    #[inline]
    pub const fn unpack(word: u64) -> Option<Self> {
        if word == 0 {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "the half that is wanted")]
        let guaranteed = word as u32;
        Some(Self {
            guaranteed,
            limit: (word >> 32) as u32,
        })
    }
}

/// Who sits in a seat: `[zero 39 | live 1 | generation 24]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeatWord {
    /// Whether its permits count.
    pub live: bool,
    /// Generation of the seat, 24 bits; never 0 for a seat in use.
    pub generation: u32,
}

impl SeatWord {
    /// Mask of a generation.
    pub const GENERATION_MASK: u32 = (1 << 24) - 1;

    /// The word.
    pub const fn pack(self) -> u64 {
        (self.generation & Self::GENERATION_MASK) as u64 | (self.live as u64) << 24
    }

    /// The parts of a word.
    #[inline]
    pub const fn unpack(word: u64) -> Self {
        Self {
            live: word >> 24 & 1 != 0,
            generation: (word & 0x00ff_ffff) as u32,
        }
    }
}

/// Until when an inbound decision of a seat need not look at its scopes, its agent or its identity:
/// `[generation of the seat 24 | until 40, in 2^20 ns of the clock]`. 0 = it looks each time.
///
/// One word that the agent writes each tick says in one comparison that the seat is the caller's, that the agent
/// was there lately, and that the host and the seat's own scope are calm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CalmWord {
    /// Generation of the seat, 24 bits.
    pub generation: u32,
    /// The time, ns; kept to 2^20 ns, at most [`Self::LONGEST_NS`] ahead.
    pub until_ns: u64,
}

impl CalmWord {
    /// The longest time that is told from a past one, ns: nine years.
    pub const LONGEST_NS: u64 = 1 << 58;
    const UNIT_BITS: u32 = 20;
    const TIME_BITS: u32 = 40;

    /// The word.
    pub const fn pack(self) -> u64 {
        let until = self.until_ns >> Self::UNIT_BITS;
        let most = (1 << Self::TIME_BITS) - 1;
        Self::holder(self.generation) | if until < most { until } else { most }
    }

    /// What a caller keeps of its seat's generation for [`Self::holds`].
    pub const fn holder(generation: u32) -> u64 {
        ((generation & SeatWord::GENERATION_MASK) as u64) << Self::TIME_BITS
    }

    /// Whether a word holds for a holder at `now_ns`.
    #[inline]
    pub const fn holds(word: u64, holder: u64, now_ns: u64) -> bool {
        // With another generation the difference is 2^40 or more, give or take the time between the two, which
        // is far below half of that.
        let left = word.wrapping_sub(holder.wrapping_add(now_ns >> Self::UNIT_BITS));
        left >> (Self::TIME_BITS - 1) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_calm_word_holds_for_its_seat_until_its_time() {
        let word = CalmWord {
            generation: 7,
            until_ns: 900_000 * MS,
        }
        .pack();
        let holds =
            |generation, now_ns| CalmWord::holds(word, CalmWord::holder(generation), now_ns);
        assert!(holds(7, 0));
        assert!(holds(7, 900_000 * MS));
        assert!(!holds(7, 900_002 * MS));
        for other in [0, 1, 6, 8, SeatWord::GENERATION_MASK] {
            for now_ns in [0, 899_000 * MS, 901_000 * MS, 1 << 58] {
                assert!(!holds(other, now_ns), "{other} {now_ns}");
            }
        }
    }

    #[test]
    fn no_word_is_calm_for_nobody() {
        for generation in [1, SeatWord::GENERATION_MASK] {
            for now_ns in [0, MS, 1 << 58] {
                assert!(!CalmWord::holds(0, CalmWord::holder(generation), now_ns));
            }
        }
    }

    #[test]
    fn the_longest_time_holds() {
        let word = CalmWord {
            generation: SeatWord::GENERATION_MASK,
            until_ns: MS + CalmWord::LONGEST_NS,
        };
        let holder = CalmWord::holder(SeatWord::GENERATION_MASK);
        assert!(CalmWord::holds(word.pack(), holder, MS));
        assert!(CalmWord::holds(word.pack(), holder, CalmWord::LONGEST_NS));
    }
}
