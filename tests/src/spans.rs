//! Admissions by the half second in which they were made.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Length of a bucket of the pass window, ns.
pub const BUCKET_NS: u64 = 500_000_000;

/// How many requests were admitted in each half second of the monotonic clock.
///
/// The gate reads its clock some time between a caller's two readings. Where they fall into
/// different buckets, the admission is counted as unsure, in the later one and the one before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spans {
    /// Sure and unsure admissions of a bucket; an unsure one stands in the bucket of the later reading.
    buckets: BTreeMap<u64, (u64, u64)>,
}

impl Spans {
    /// An admission between two readings of the monotonic clock, ns.
    pub fn admitted(&mut self, before_ns: u64, after_ns: u64) {
        let (first, last) = (before_ns / BUCKET_NS, after_ns / BUCKET_NS);
        let (sure, unsure) = self.buckets.entry(last).or_default();
        if first == last {
            *sure += 1;
        } else {
            *unsure += 1;
        }
    }

    /// Adds what another thread or process counted.
    pub fn add(&mut self, other: &Self) {
        for (&bucket, &(more_sure, more_unsure)) in &other.buckets {
            let (sure, unsure) = self.buckets.entry(bucket).or_default();
            *sure += more_sure;
            *unsure += more_unsure;
        }
    }

    /// All admissions.
    pub fn total(&self) -> u64 {
        self.buckets
            .values()
            .map(|(sure, unsure)| sure + unsure)
            .sum()
    }

    /// For each window of two buckets that lies within the offer: the least and the most that can
    /// have been admitted in it. The offer lasts from the first to the last bucket given.
    pub fn windows(&self, first: u64, last: u64) -> Vec<(u64, u64)> {
        let of = |bucket| self.buckets.get(&bucket).copied().unwrap_or_default();
        (first..last)
            .map(|bucket| {
                let (one, two, next) = (of(bucket), of(bucket + 1), of(bucket + 2));
                let sure = one.0 + two.0 + two.1;
                (sure, sure + one.1 + next.1)
            })
            .collect()
    }
}

impl fmt::Display for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (bucket, (sure, unsure)) in &self.buckets {
            write!(f, "{bucket}:{sure}:{unsure} ")?;
        }
        Ok(())
    }
}

impl FromStr for Spans {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut spans = Self::default();
        for part in text.split_whitespace() {
            let numbers: Result<Vec<u64>, _> = part.split(':').map(str::parse).collect();
            let Ok([bucket, sure, unsure]) = numbers.as_deref() else {
                return Err(format!("{part:?} is not BUCKET:SURE:UNSURE"));
            };
            spans.buckets.insert(*bucket, (*sure, *unsure));
        }
        Ok(spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_admission_on_the_border_counts_for_both_of_its_windows_as_possible() {
        let mut spans = Spans::default();
        spans.admitted(1, 2);
        spans.admitted(BUCKET_NS - 1, BUCKET_NS);
        spans.admitted(2 * BUCKET_NS - 1, 2 * BUCKET_NS);
        assert_eq!(spans.total(), 3);
        // Buckets 0 and 1 have the first for sure, and the second, whose two buckets are both in.
        assert_eq!(spans.windows(0, 2), [(2, 3), (1, 2)]);
        assert_eq!(spans.to_string().parse(), Ok(spans));
    }
}
