//! A service that has taken a seat and writes whatever it likes into its tenant's ledger.

use std::error::Error;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

use tidegate_segment::clock::monotonic_ns;
use tidegate_segment::os::memfd::{self, MemoryKind};
use tidegate_segment::page::Page;
use tidegate_segment::sync::Ordering;

use crate::raw_service::RawService;

/// Its connection, which keeps its seat, and the ledger.
#[derive(Debug)]
pub struct Vandal {
    _service: RawService,
    ledger: Page,
}

/// What it makes of each word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scrawl {
    /// All bits.
    Ones,
    /// No bit.
    Zeros,
    /// Any bits.
    Random,
    /// The word with one bit turned over.
    Flip,
    /// The word of another place: all of it is such as stands in a ledger somewhere.
    Swap,
    /// The word with all counts at their most, in each of the layouts: generations stay, so they are believed.
    Counts,
    /// The word with a time in the far future, where it has one.
    Future,
}

impl Scrawl {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Ones,
        Self::Zeros,
        Self::Random,
        Self::Flip,
        Self::Swap,
        Self::Counts,
        Self::Future,
    ];

    /// Its word in a command.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ones => "ones",
            Self::Zeros => "zeros",
            Self::Random => "random",
            Self::Flip => "flip",
            Self::Swap => "swap",
            Self::Counts => "counts",
            Self::Future => "future",
        }
    }

    const fn of(self, word: u64, other: u64, random: u64) -> u64 {
        match self {
            Self::Ones => u64::MAX,
            Self::Zeros => 0,
            Self::Random => random,
            Self::Flip => word ^ 1 << (random % 64),
            Self::Swap => other,
            // Counts are at the high end of cells, and at the low end of windows and values.
            Self::Counts if random.is_multiple_of(2) => word | 0xffff_ff00_0000_0000,
            Self::Counts => word | 0xff_ffff,
            Self::Future => word | 0x7fff_ffff_0000_0000,
        }
    }
}

impl FromStr for Scrawl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|scrawl| scrawl.name() == text);
        found.ok_or_else(|| format!("no such scrawl: {text}"))
    }
}

impl Vandal {
    /// Takes a seat of the agent with this runtime directory, as any service does, and maps the ledger.
    ///
    /// # Errors
    /// The agent gives none.
    pub fn take_seat(runtime_dir: &Path) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let mut service = RawService::hello(runtime_dir)?;
        let files = std::mem::take(&mut service.files);
        let [_board, ledger] = <[OwnedFd; 2]>::try_from(files)
            .map_err(|files| format!("{} descriptors", files.len()))?;
        let words = usize::try_from(service.welcome.ledger_words)?;
        Ok(Self {
            _service: service,
            ledger: memfd::open(MemoryKind::Ledger, &ledger, words)?,
        })
    }

    /// Words of the ledger.
    pub fn words(&self) -> usize {
        self.ledger.words().len()
    }

    /// Goes over all words of the ledger, its header too, again and again for so long; how often.
    pub fn scrawl(&self, scrawl: Scrawl, during: Duration) -> u32 {
        let words = self.ledger.words();
        let (end, mut rounds, mut random) = (Instant::now() + during, 0, monotonic_ns() | 1);
        while Instant::now() < end {
            let others = words.iter().rev();
            for (word, other) in words.iter().zip(others) {
                // A xorshift generator: any bits will do.
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let seen = word.load(Ordering::Relaxed);
                let other = other.load(Ordering::Relaxed);
                word.store(scrawl.of(seen, other, random), Ordering::Relaxed);
            }
            rounds += 1;
        }
        rounds
    }
}
