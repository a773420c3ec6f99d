//! The slot of a name as one word: where it is on the pages of which session.

use tidegate_segment::board::Slot;

/// Number of a session of this client. The next one has the other parity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionNumber(u16);

impl SessionNumber {
    pub(crate) const FIRST: Self = Self(1);

    /// Never 0, which stands for no session; after the last one comes the first even one.
    pub(crate) const fn next(self) -> Self {
        match self.0.checked_add(1) {
            Some(next) => Self(next),
            None => Self(2),
        }
    }

    /// Which of two places is its.
    #[inline]
    pub(crate) const fn is_odd(self) -> bool {
        self.0 & 1 == 1
    }
}

/// A slot as one word, for a session.
pub(crate) fn pack(number: SessionNumber, slot: Slot) -> u64 {
    u64::from(slot.index) | u64::from(slot.generation) << 32 | u64::from(number.0) << 48
}

/// The slot of a word that was written for a session.
#[inline]
pub(crate) fn unpack(number: SessionNumber, word: u64) -> Option<Slot> {
    is_of(word, number).then_some(Slot {
        index: (word & 0xffff_ffff) as u32,
        generation: (word >> 32 & 0xffff) as u16,
    })
}

/// Whether a slot word was written for a session.
#[inline]
pub(crate) const fn is_of(word: u64, number: SessionNumber) -> bool {
    (word >> 48) as u16 == number.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parity_changes_with_each_session_for_ever() {
        let mut number = SessionNumber(u16::MAX - 2);
        for _session in 0..6 {
            let next = number.next();
            assert_ne!(next.0 & 1, number.0 & 1);
            assert_ne!(next.0, 0);
            number = next;
        }
    }
}
