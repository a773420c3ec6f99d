//! The few conversions between whole and fractional numbers that the formulas need.

use core::num::NonZeroU64;

/// ns in a millisecond.
pub const NS_PER_MS: u64 = 1_000_000;
/// ns in a second.
pub const NS_PER_S: u64 = 1_000_000_000;

/// The whole part; below 0 and not-a-number give 0, too large gives `u64::MAX`.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the conversion saturates, and that is what the callers want"
)]
pub const fn whole(value: f64) -> u64 {
    value as u64
}

/// As [`whole`], at most `u32::MAX`.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the conversion saturates, and that is what the callers want"
)]
pub const fn whole_u32(value: f64) -> u32 {
    value as u32
}

/// `floor(value + 0.5)`, with the ends as [`whole`] has them.
#[inline]
pub const fn rounded(value: f64) -> u64 {
    whole(value + 0.5)
}

/// The number as a double; exact below 2^53.
#[inline]
#[expect(
    clippy::cast_precision_loss,
    reason = "counts and times are below 2^53; a larger one may lose its last bits"
)]
pub const fn double(value: u64) -> f64 {
    value as f64
}

/// `now_ns` without its fraction of a millisecond.
#[inline]
pub const fn whole_ms(now_ns: u64) -> u64 {
    now_ns.saturating_sub(remainder(now_ns, MS))
}

/// [`NS_PER_MS`] as a divisor.
pub(crate) const MS: NonZeroU64 = match NonZeroU64::new(NS_PER_MS) {
    Some(ns) => ns,
    None => NonZeroU64::MIN,
};

/// `dividend / divisor`.
#[inline]
#[expect(clippy::arithmetic_side_effects, reason = "the divisor cannot be zero")]
pub(crate) const fn quotient(dividend: u64, divisor: NonZeroU64) -> u64 {
    dividend / divisor.get()
}

/// `dividend % divisor`.
#[inline]
#[expect(clippy::arithmetic_side_effects, reason = "the divisor cannot be zero")]
pub(crate) const fn remainder(dividend: u64, divisor: NonZeroU64) -> u64 {
    dividend % divisor.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_saturate_and_halves_go_up() {
        assert_eq!(whole(-1.0), 0);
        assert_eq!(whole(f64::NAN), 0);
        assert_eq!(whole(f64::INFINITY), u64::MAX);
        assert_eq!((whole_u32(5e9), whole_u32(-1.0)), (u32::MAX, 0));
        assert_eq!((whole_u32(f64::NAN), whole_u32(7.9)), (0, 7));
        assert_eq!((rounded(2.5), rounded(0.49), rounded(-7.0)), (3, 0, 0));
        assert_eq!(whole_ms(1_999_999), 1_000_000);
    }
}
