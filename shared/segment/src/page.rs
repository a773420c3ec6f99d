//! A page: a run of atomic words that several processes share.

use tidegate_abi::geometry::Region;

use crate::sync::Word;

/// A run of atomic words that lives as long as the process.
///
/// A mapping is never taken away while the process runs, because a reader may hold it without a
/// lock; [`crate::os::map::retire`] gives its memory back and leaves the addresses valid.
#[derive(Clone, Copy)]
pub struct Page {
    words: &'static [Word],
    #[cfg(not(loom))]
    is_mapped: bool,
}

impl core::fmt::Debug for Page {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Page")
            .field("words", &self.words.len())
            .finish_non_exhaustive()
    }
}

impl Page {
    /// A page of zeros in private memory, for tests and benches; never freed.
    pub fn private(words: usize) -> Self {
        let words: Vec<Word> = (0..words).map(|_index| Word::new(0)).collect();
        Self {
            words: words.leak(),
            #[cfg(not(loom))]
            is_mapped: false,
        }
    }

    /// A page over a mapping of its own, which lives as long as the process.
    #[cfg(not(loom))]
    pub(crate) fn over(words: &'static [Word]) -> Self {
        Self {
            words,
            is_mapped: true,
        }
    }

    /// Whether the page is a mapping of its own, and no part of what the process allocates.
    #[cfg(not(loom))]
    pub(crate) fn is_mapped(self) -> bool {
        self.is_mapped
    }

    /// All words.
    pub fn words(self) -> &'static [Word] {
        self.words
    }

    /// The records of a region, `N` words each; empty if the region does not fit the page or its
    /// records are of another size.
    pub fn records<const N: usize>(self, region: Region) -> &'static [[Word; N]] {
        let length = region.stride().saturating_mul(region.count());
        let end = region.start().saturating_add(length);
        let words = self.words.get(region.start()..end).unwrap_or(&[]);
        if region.stride() == N {
            words.as_chunks::<N>().0
        } else {
            &[]
        }
    }
}
