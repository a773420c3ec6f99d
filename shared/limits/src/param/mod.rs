//! Limits per value of a parameter. One word holds the state of one value in a table:
//!
//! ```text
//! [fingerprint 16 | state 48]
//! ```
//!
//! The fingerprint belongs to the table (0 = free place): it tells whose state this is, so that a
//! value that took another's place is never charged for it. The steps here see the state alone,
//! `None` at first sight of the value:
//!
//! | rule | state | [`crate::strict`] instead |
//! |---|---|---|
//! | [`token_bucket`] | `[stamp 26 \| tokens 22]` | [`crate::strict::ValueLimit`] |
//! | [`value_pacing`] | last release in ms | |
//! | concurrency | calls that run now | |

pub mod token_bucket;
pub mod value_pacing;

/// Bits of a value's state.
pub const STATE_BITS: u32 = 48;
/// The largest state.
pub const STATE_MAX: u64 = (1 << STATE_BITS) - 1;

/// Calls of this value after one more, if at most `limit` may run.
#[inline]
pub const fn begin_call(running: u64, limit: u64) -> Option<u64> {
    let next = running.saturating_add(1);
    if next <= limit && next <= STATE_MAX {
        Some(next)
    } else {
        None
    }
}

/// Calls of this value after one has ended; never below 0.
#[inline]
pub const fn end_call(running: u64) -> u64 {
    running.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_up_to_the_limit_run_at_once() {
        assert_eq!(begin_call(0, 1), Some(1));
        assert_eq!(begin_call(1, 1), None);
        assert_eq!(begin_call(0, 0), None);
        assert_eq!(begin_call(u64::MAX, u64::MAX), None);
        assert_eq!((end_call(1), end_call(0)), (0, 0));
    }
}
