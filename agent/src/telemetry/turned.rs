//! Why the TCP port of the metrics turns somebody away, and how often it did.

use tidegate_segment::sync::{Ordering, Word};

/// Why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Every connection was being answered.
    NoPlace,
    /// The oldest connection that asked nothing ended for a new one.
    MadeRoom,
    /// No whole head came in time.
    LateHead,
    /// The host that was asked for is another.
    ForeignHost,
}

impl Why {
    /// Each, in its order.
    pub const ALL: [Self; 4] = [
        Self::NoPlace,
        Self::MadeRoom,
        Self::LateHead,
        Self::ForeignHost,
    ];

    /// The word in the log and in the label `cause`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoPlace => "no_place",
            Self::MadeRoom => "made_room",
            Self::LateHead => "late_head",
            Self::ForeignHost => "foreign_host",
        }
    }

    /// What it means and what to do.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::NoPlace => "all connections are being answered; look who asks so often",
            Self::MadeRoom => {
                "all connections are taken, the oldest that asks nothing ends; look who keeps them open"
            }
            Self::LateHead => "the head of a request did not come within 5 s",
            Self::ForeignHost => {
                "another host was asked for; a name that may be used belongs into http.metrics_hosts"
            }
        }
    }
}

/// How often it was for each reason.
#[derive(Debug)]
pub struct TurnedAwayCounts([Word; Why::ALL.len()]);

impl TurnedAwayCounts {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_why| Word::new(0)))
    }

    /// Counts one.
    pub fn count(&self, why: Why) {
        for (word, _own) in self
            .0
            .iter()
            .zip(Why::ALL)
            .filter(|(_word, own)| *own == why)
        {
            word.count(1);
        }
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = (Why, u64)> {
        // Relaxed: figures for people.
        let counts = self.0.iter().map(|word| word.load(Ordering::Relaxed));
        Why::ALL.into_iter().zip(counts)
    }
}
