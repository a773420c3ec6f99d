//! Callers who come again when they are refused or wait too long.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

/// How callers come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Retry {
    /// So many times at most.
    pub times: u32,
    /// So long after a refusal; after waiting too long at once.
    pub after: Duration,
    /// Longer than this is too long.
    pub patience: Duration,
}

/// A request that a caller makes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Again {
    /// From the beginning of the load.
    pub due: Duration,
    pub stream: usize,
    pub slow: bool,
    /// How many times it was made before.
    pub attempt: u32,
}

/// What callers will make again, and the requests that they still wait for.
#[derive(Debug, Default)]
pub(super) struct Retries {
    again: BinaryHeap<Reverse<Again>>,
    /// Request and when its caller gives up; all streams have the same patience.
    waiting: VecDeque<(Duration, usize)>,
}

impl Retries {
    /// When something is to be done next.
    pub(super) fn next(&self) -> Option<Duration> {
        let again = self.again.peek().map(|Reverse(again)| again.due);
        let gives_up = self.waiting.front().map(|(at, _request)| *at);
        again.into_iter().chain(gives_up).min()
    }

    /// A caller will make a request again.
    pub(super) fn push(&mut self, again: Again) {
        self.again.push(Reverse(again));
    }

    /// A caller waits for a request until then.
    pub(super) fn wait_for(&mut self, request: usize, until: Duration) {
        self.waiting.push_back((until, request));
    }

    /// The next request that is due again.
    pub(super) fn due(&mut self, now: Duration) -> Option<Again> {
        let due = self
            .again
            .peek()
            .is_some_and(|Reverse(again)| again.due <= now);
        due.then(|| self.again.pop())
            .flatten()
            .map(|Reverse(again)| again)
    }

    /// The next request whose caller's patience is over, answered or not.
    pub(super) fn over(&mut self, now: Duration) -> Option<usize> {
        let over = self
            .waiting
            .front()
            .is_some_and(|(until, _request)| *until <= now);
        over.then(|| self.waiting.pop_front())
            .flatten()
            .map(|(_until, request)| request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_comes_in_order_and_nothing_comes_early() {
        let ms = Duration::from_millis;
        let again = |due| Again {
            due,
            stream: 0,
            slow: false,
            attempt: 1,
        };
        let mut retries = Retries::default();
        assert_eq!(retries.next(), None);
        retries.push(again(ms(30)));
        retries.push(again(ms(10)));
        retries.wait_for(7, ms(20));
        assert_eq!(retries.next(), Some(ms(10)));
        assert_eq!(retries.due(ms(9)), None);
        assert_eq!(retries.due(ms(20)), Some(again(ms(10))));
        assert_eq!(retries.due(ms(20)), None);
        assert_eq!(
            (retries.over(ms(20)), retries.over(ms(99))),
            (Some(7), None)
        );
        assert_eq!(retries.next(), Some(ms(30)));
    }
}
