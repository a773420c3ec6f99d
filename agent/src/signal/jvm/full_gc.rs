//! How many full collections there were in the last ten seconds.

use std::collections::VecDeque;

use crate::procfs::NoValue;

/// The span that is looked back on.
const SPAN_NS: u64 = 10_000_000_000;
/// Samples that are kept; one each second is more than enough.
const SAMPLES_MAX: usize = 32;

/// The last samples of the count of full collections.
#[derive(Debug)]
pub(super) struct FullGcWindow {
    samples: VecDeque<(u64, u64)>,
}

impl FullGcWindow {
    pub(super) fn new() -> Self {
        Self {
            samples: VecDeque::with_capacity(SAMPLES_MAX),
        }
    }

    /// Takes the count since the JVM began and tells the growth over the span, or since the first
    /// sample if that is not as long ago.
    ///
    /// # Errors
    /// [`NoValue::FirstSample`], or [`NoValue::WentBack`] for another JVM under the same pid.
    pub(super) fn take(&mut self, now_ns: u64, count: u64) -> Result<u64, NoValue> {
        if self
            .samples
            .back()
            .is_some_and(|(_taken_ns, last)| count < *last)
        {
            self.samples.clear();
            self.samples.push_back((now_ns, count));
            return Err(NoValue::WentBack);
        }
        let is_old = |(taken_ns, _count): &(u64, u64)| now_ns.saturating_sub(*taken_ns) >= SPAN_NS;
        // The newest of the samples that are old enough is where the span begins.
        while self.samples.get(1).is_some_and(is_old) || self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back((now_ns, count));
        match (self.samples.len(), self.samples.front()) {
            (2.., Some((_taken_ns, first))) => Ok(count.saturating_sub(*first)),
            _ => Err(NoValue::FirstSample),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn collections_are_counted_for_ten_seconds() {
        let mut window = FullGcWindow::new();
        assert_eq!(window.take(0, 5), Err(NoValue::FirstSample));
        assert_eq!(window.take(SECOND_NS, 8), Ok(3));
        for second in 2..=10 {
            assert_eq!(window.take(second * SECOND_NS, 8), Ok(3), "second {second}");
        }
        assert_eq!(window.take(11 * SECOND_NS, 8), Ok(0));
    }

    #[test]
    fn another_jvm_under_the_same_pid_begins_anew() {
        let mut window = FullGcWindow::new();
        assert_eq!(window.take(0, 5), Err(NoValue::FirstSample));
        assert_eq!(window.take(SECOND_NS, 1), Err(NoValue::WentBack));
        assert_eq!(window.take(2 * SECOND_NS, 3), Ok(2));
    }
}
