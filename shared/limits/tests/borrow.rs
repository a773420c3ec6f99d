//! Windows and borrowing together, against lists of passes with the time they count from.

use proptest::prelude::*;
use tidegate_limits::borrow::{BorrowRequest, BorrowedPasses, MAX_WAIT_NS};
use tidegate_limits::quirks::Quirks;
use tidegate_limits::window::{BucketLength, Window};

const MS: u64 = 1_000_000;
const BUCKET: BucketLength = BucketLength::HALF_SECOND;

/// Passes as (start of the bucket they count in, how many), and whether it lends as Sentinel does.
struct Model(Vec<(u64, u32)>, bool);

impl Model {
    fn sum(&self, starts: impl Fn(u64) -> bool) -> u32 {
        self.0
            .iter()
            .filter(|(start, _)| starts(*start))
            .map(|(_, n)| n)
            .sum()
    }

    /// The wait in ms, if admitted.
    fn ask(&mut self, now_ms: u64, n: u32, limit: u32, prioritized: bool) -> Option<u64> {
        let bucket = now_ms / 500 * 500;
        let in_window = self.sum(|start| start + 500 == bucket || start == bucket);
        if in_window + n <= limit {
            self.0.push((bucket, n));
            return Some(0);
        }
        let lent = self.sum(|start| start > bucket);
        let wait = 500 - now_ms % 500;
        let oldest = self.sum(|start| start + 500 == bucket);
        let lends = if self.1 {
            in_window + lent + n - oldest <= limit
        } else {
            lent + n <= oldest
        };
        let fits = lent < limit && wait < 500 && lends;
        if !prioritized || !fits {
            return None;
        }
        self.0.push((bucket + 500, n));
        Some(wait)
    }
}

/// A node's two words.
struct Node {
    pass: u64,
    borrow: u64,
    quirks: Quirks,
}

impl Node {
    fn ask(&mut self, now_ms: u64, n: u32, limit: u32, prioritized: bool) -> Option<u64> {
        let request = BorrowRequest {
            n,
            now_ns: now_ms * MS,
            bucket: BUCKET,
            max_wait_ns: MAX_WAIT_NS,
            quirks: self.quirks,
        };
        let epoch = BUCKET.epoch(request.now_ns);
        let (window, borrowed) = (
            Window::at(self.pass, epoch),
            BorrowedPasses::at(self.borrow, epoch),
        );
        self.borrow = borrowed.word();
        let room = limit.checked_sub(borrowed.arrived());
        if let Some(next) = room.and_then(|room| window.try_add(n, room)) {
            self.pass = next.word();
            return Some(0);
        }
        if !prioritized {
            return None;
        }
        let (wait_ns, next) = borrowed.try_borrow(request, window, limit)?;
        self.borrow = next.word();
        Some(wait_ns / MS)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn equals_the_lists(
        calls in prop::collection::vec((0_u64..600, 0_u32..5, any::<bool>()), 1..300),
        limit in 1_u32..16,
        sentinel: bool,
    ) {
        let quirks = if sentinel { Quirks::Sentinel } else { Quirks::None };
        let mut node = Node { pass: 0, borrow: 0, quirks };
        let (mut model, mut now_ms) = (Model(Vec::new(), sentinel), 50_000);
        for (step_ms, n, prioritized) in calls {
            now_ms += step_ms / 6;
            prop_assert_eq!(
                node.ask(now_ms, n, limit, prioritized),
                model.ask(now_ms, n, limit, prioritized),
                "at {}", now_ms
            );
            let bucket = now_ms / 500 * 500;
            let next_window = model.sum(|start| start >= bucket);
            prop_assert!(sentinel || next_window <= limit, "at {}", now_ms);
        }
    }
}
