//! The words that rules refer to.

use std::collections::HashMap;

use tidegate_segment::board::PoolSpan;

/// Words of a pool under construction; equal runs are kept once.
#[derive(Debug, Default)]
pub struct Pool {
    /// Where this pool's first word will be.
    base: u32,
    words: Vec<u64>,
    runs: HashMap<Vec<u64>, PoolSpan>,
}

impl Pool {
    /// A pool that will be put behind words that are there already.
    pub fn behind(base: u32) -> Self {
        Self {
            base,
            ..Self::default()
        }
    }

    /// Puts a run of words in.
    pub fn put(&mut self, run: Vec<u64>) -> PoolSpan {
        if let Some(span) = self.runs.get(&run) {
            return *span;
        }
        let narrow = |wide: usize| u32::try_from(wide).unwrap_or(u32::MAX);
        let span = PoolSpan {
            start: self.base.saturating_add(narrow(self.words.len())),
            length: narrow(run.len()),
        };
        self.words.extend(&run);
        self.runs.insert(run, span);
        span
    }

    /// The words of a run that was put in.
    pub fn words_of(&self, span: PoolSpan) -> Vec<u64> {
        let start = span.start.saturating_sub(self.base);
        let wide = |narrow: u32| usize::try_from(narrow).unwrap_or(usize::MAX);
        let words = self.words.iter().skip(wide(start));
        words.take(wide(span.length)).copied().collect()
    }

    /// The words.
    pub fn words(&self) -> &[u64] {
        &self.words
    }
}
