//! What decisions measure a surge of a scope from.

/// What a surge is measured from: `[growth per second 32 | held 32]`. 0 = nothing is a surge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SurgeWord {
    /// Requests in flight or waiting to be accepted in the last tick.
    pub held: u32,
    /// Growth of that, requests per second, from which on it is a surge.
    pub least_qps: u32,
}

impl SurgeWord {
    /// Nothing is a surge.
    pub const NONE: Self = Self {
        held: 0,
        least_qps: 0,
    };

    /// The word.
    pub const fn pack(self) -> u64 {
        self.held as u64 | (self.least_qps as u64) << 32
    }

    /// The parts of a word.
    #[inline]
    pub const fn unpack(word: u64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "the half that is wanted")]
        let held = word as u32;
        Self {
            held,
            least_qps: (word >> 32) as u32,
        }
    }
}
