//! Buckets of completed requests over a sliding time.

use std::collections::VecDeque;

use tidegate_limits::number::whole;

/// Completions in one bucket.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    number: u64,
    count: f64,
    rt_s: f64,
}

/// The last buckets; the newest is still filled and not looked at.
#[derive(Debug)]
pub(super) struct Window {
    bucket_s: f64,
    length: u64,
    buckets: VecDeque<Bucket>,
}

impl Window {
    /// So many buckets of so many seconds.
    pub(super) fn new(bucket_s: f64, length: u64) -> Self {
        Self {
            bucket_s,
            length,
            buckets: VecDeque::new(),
        }
    }

    /// Number of the bucket now; forgets those that are over.
    fn roll(&mut self, now_s: f64) -> u64 {
        let now = whole(now_s / self.bucket_s);
        while self
            .buckets
            .front()
            .is_some_and(|first| first.number + self.length <= now)
        {
            self.buckets.pop_front();
        }
        now
    }

    /// A request was answered.
    pub(super) fn add(&mut self, now_s: f64, rt_s: f64) {
        let number = self.roll(now_s);
        match self.buckets.back_mut() {
            Some(last) if last.number == number => {
                last.count += 1.0;
                last.rt_s += rt_s;
            }
            _ => self.buckets.push_back(Bucket {
                number,
                count: 1.0,
                rt_s,
            }),
        }
    }

    /// Most completions of a whole bucket.
    pub(super) fn most(&mut self, now_s: f64) -> Option<f64> {
        let now = self.roll(now_s);
        let whole = self.buckets.iter().filter(|bucket| bucket.number != now);
        whole.map(|bucket| bucket.count).reduce(f64::max)
    }

    /// Least mean response time of a whole bucket, seconds.
    pub(super) fn least_mean_s(&mut self, now_s: f64) -> Option<f64> {
        let now = self.roll(now_s);
        let whole = self.buckets.iter().filter(|bucket| bucket.number != now);
        whole
            .map(|bucket| bucket.rt_s / bucket.count)
            .reduce(f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_buckets_count_until_they_are_too_old() {
        let mut window = Window::new(0.1, 3);
        window.add(0.01, 0.004);
        window.add(0.02, 0.006);
        assert_eq!(window.most(0.05), None);
        window.add(0.11, 0.050);
        assert_eq!(window.most(0.21), Some(2.0));
        assert!((window.least_mean_s(0.21).unwrap() - 0.005).abs() < 1e-9);
        assert_eq!(window.most(0.31), Some(1.0));
        assert_eq!(window.most(0.45), None);
    }
}
