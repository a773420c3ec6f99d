//! Words of map records.

/// A word.
#[inline(always)]
pub fn get<const WORDS: usize>(record: *mut [u64; WORDS], word: usize) -> u64 {
    // SAFETY: a lookup gave the record, and `word` is one of its constants.
    unsafe { *record.cast::<u64>().add(word) }
}

/// Writes a word that nothing else writes at the same time.
#[inline(always)]
pub fn set<const WORDS: usize>(record: *mut [u64; WORDS], word: usize, value: u64) {
    // SAFETY: as in `get`.
    unsafe { *record.cast::<u64>().add(word) = value }
}

/// Adds to a word that only this CPU writes.
#[inline(always)]
pub fn add<const WORDS: usize>(record: *mut [u64; WORDS], word: usize, amount: u64) {
    // SAFETY: a lookup gave the record, and `word` is one of its constants. Programs of one CPU do
    // not interrupt each other between load and store: the scheduler's run without interrupts, the
    // others write other words.
    unsafe {
        let word = record.cast::<u64>().add(word);
        *word = (*word).wrapping_add(amount);
    }
}
