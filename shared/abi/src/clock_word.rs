//! The word that says which clock to read.

/// Which clock to read: `[monotonic ns at the counter's zero, without its low 3 bits 61 | place of the rate 3]`.
///
/// ns = word + (counter × rate) >> 32, wrapping, with a product of 128 bits; the rate is the word at
/// `RATES` + place − 1 of the header. Place 0: read `CLOCK_MONOTONIC`. As the rates stay as they are, the time is
/// whole in this one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockWord {
    /// Monotonic ns at the counter's zero, wrapping; kept to 4 ns.
    pub base_ns: u64,
    /// Which rate, 1 to 7; 0 = the kernel's clock.
    pub place: u8,
}

impl ClockWord {
    /// Most rates of a board.
    pub const RATES: usize = 7;
    const PLACE_MASK: u64 = 7;

    /// The word.
    pub const fn pack(self) -> u64 {
        let place = self.place as u64 & Self::PLACE_MASK;
        // Readers add the place too, which saves them a mask.
        let base_ns = self.base_ns.wrapping_sub(place).wrapping_add(4);
        base_ns & !Self::PLACE_MASK | place
    }

    /// The place of the rate in a word.
    #[inline]
    pub const fn place(word: u64) -> usize {
        (word & Self::PLACE_MASK) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_word_is_its_base_within_four_ns_and_names_its_rate() {
        for base_ns in [0, 1, 7, 8, 12_345, u64::MAX - 3, u64::MAX] {
            for place in 0..=7_u8 {
                let word = ClockWord { base_ns, place }.pack();
                assert_eq!(ClockWord::place(word), usize::from(place));
                let off = word.wrapping_sub(base_ns).cast_signed();
                assert!(off.abs() <= 4, "{base_ns} {place}: {off}");
            }
        }
    }
}
