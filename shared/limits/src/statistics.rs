//! What system rules look at besides passes: response times and successes of the last second.
//!
//! A sum of large numbers does not fit beside another in one word, so each of the window's two
//! buckets has a word of its own, at place `epoch mod 2` ([`place`]):
//!
//! ```text
//! [epoch 16 | value 48]
//! ```
//!
//! A value is a sum ([`add`]) or a minimum ([`add_least`]) and never wraps. These words only inform;
//! no admission is reserved in them. Successes are a [`Window`].

use crate::number::double;
use crate::window::Window;

/// Response times above this do not count for the least one, ms (Sentinel's `statisticMaxRt`).
pub const LEAST_RT_MAX_MS: u64 = 5_000;

const VALUE_MAX: u64 = (1 << 48) - 1;

/// Which of the two words an epoch uses.
#[inline]
pub const fn place(epoch: u16) -> usize {
    (epoch & 1) as usize
}

const fn epoch_of(word: u64) -> u16 {
    (word >> 48 & 0xffff) as u16
}

const fn pack(epoch: u16, value: u64) -> u64 {
    (epoch as u64) << 48 | if value > VALUE_MAX { VALUE_MAX } else { value }
}

/// The value of a word that a writer of `epoch` finds, and the epoch to store: a writer that is late
/// by one round adds to the newer bucket.
const fn to_write(word: u64, epoch: u16) -> (u16, Option<u64>) {
    let held = epoch_of(word);
    match epoch.wrapping_sub(held) {
        0 | 0xfffe => (held, Some(word & VALUE_MAX)),
        _ => (epoch, None),
    }
}

/// The word with `value` added to the sum of the bucket.
#[inline]
pub const fn add(word: u64, epoch: u16, value: u64) -> u64 {
    match to_write(word, epoch) {
        (epoch, Some(sum)) => pack(epoch, sum.saturating_add(value)),
        (epoch, None) => pack(epoch, value),
    }
}

/// The word with `value` taken into the minimum of the bucket. Stored plus one: 0 means none yet.
#[inline]
pub const fn add_least(word: u64, epoch: u16, value: u64) -> u64 {
    let value = value.saturating_add(1);
    match to_write(word, epoch) {
        (epoch, Some(least)) if least > 0 && least < value => pack(epoch, least),
        (epoch, _) => pack(epoch, value),
    }
}

/// The value of a word whose bucket is in the window of `epoch`.
#[inline]
const fn in_window(word: u64, epoch: u16) -> Option<u64> {
    match epoch.wrapping_sub(epoch_of(word)) {
        0 | 1 | 0xffff | 0xfffe => Some(word & VALUE_MAX),
        _ => None,
    }
}

/// The sum of both buckets.
pub fn sum(words: [u64; 2], epoch: u16) -> u64 {
    let values = words.iter().filter_map(|word| in_window(*word, epoch));
    values.fold(0, u64::saturating_add)
}

/// The least of both buckets, if there is one.
pub fn least(words: [u64; 2], epoch: u16) -> Option<u64> {
    let values = words.iter().filter_map(|word| in_window(*word, epoch));
    values.filter_map(|value| value.checked_sub(1)).min()
}

/// Average response time in ms: the sum of response times in µs over the successes, 0 without any.
/// A call adds its time once whatever its count is, as in Sentinel.
pub fn average_rt_ms(rt_sum_us: u64, successes: u32) -> f64 {
    if successes == 0 {
        return 0.0;
    }
    double(rt_sum_us) / 1_000.0 / f64::from(successes)
}

/// The least response time of both buckets in ms: 1 to [`LEAST_RT_MAX_MS`], and that if there is
/// none.
pub fn least_rt_ms(words: [u64; 2], epoch: u16) -> u64 {
    least(words, epoch)
        .unwrap_or(LEAST_RT_MAX_MS)
        .clamp(1, LEAST_RT_MAX_MS)
}

/// The most successes of one half-second bucket, at least one, as a rate per second.
pub fn max_success_qps(successes: Window) -> f64 {
    let most = successes.previous().max(successes.current()).max(1);
    f64::from(most) * 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes at each epoch and reads at the last.
    fn written(write: fn(u64, u16, u64) -> u64, calls: &[(u16, u64)]) -> [u64; 2] {
        let mut words = [0; 2];
        for (epoch, value) in calls {
            let word = words.get_mut(place(*epoch)).unwrap();
            *word = write(*word, *epoch, *value);
        }
        words
    }

    #[test]
    fn sums_hold_the_last_two_buckets() {
        let words = written(add, &[(10, 1), (11, 2), (12, 4), (12, 8), (13, 16)]);
        assert_eq!([13, 14, 15].map(|epoch| sum(words, epoch)), [28, 16, 0]);
        let wrapped = written(add, &[(u16::MAX, 1), (0, 2)]);
        assert_eq!(sum(wrapped, 0), 3);
        assert_eq!(add(pack(3, VALUE_MAX), 3, 9), pack(3, VALUE_MAX));
        // Late by a round: into the newer bucket.
        assert_eq!(add(pack(12, 4), 10, 1), pack(12, 5));
    }

    #[test]
    fn the_least_response_time_is_one_to_five_thousand() {
        let least_of = |calls: &[(u16, u64)], epoch| least_rt_ms(written(add_least, calls), epoch);
        assert_eq!(least_of(&[], 7), 5_000);
        assert_eq!(least_of(&[(7, 0)], 7), 1);
        assert_eq!(least_of(&[(7, 9_000)], 7), 5_000);
        assert_eq!(least_of(&[(6, 30), (7, 40), (7, 20)], 7), 20);
        assert_eq!(least_of(&[(6, 30), (7, 40)], 8), 40);
    }

    #[test]
    fn rates_follow_sentinel() {
        assert!((average_rt_ms(30_000, 3) - 10.0).abs() < f64::EPSILON);
        assert!(average_rt_ms(30_000, 0).abs() < f64::EPSILON);
        assert!((max_success_qps(Window::at(0, 1)) - 2.0).abs() < f64::EPSILON);
        assert!((max_success_qps(Window::at(0, 1).add(7)) - 14.0).abs() < f64::EPSILON);
    }
}
