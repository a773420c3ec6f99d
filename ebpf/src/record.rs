//! Words of map records.

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
