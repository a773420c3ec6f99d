//! Checked ways between counts and real numbers.

/// A count as a real number; exact up to 2^53, which no count of a tick reaches.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a tick stay far under 2^53"
)]
pub(super) fn real(count: u64) -> f64 {
    count as f64
}

/// The next whole number at or over `value`, between 0 and [`u32::MAX`]; not a number is 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is what is wanted"
)]
pub(super) fn ceil_u32(value: f64) -> u32 {
    libm::ceil(value) as u32
}

/// `value` in thousandths, between 0 and [`u64::MAX`]; not a number is 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is what is wanted"
)]
pub(super) fn milli_u64(value: f64) -> u64 {
    libm::round(value * 1000.0) as u64
}

/// The nearest number of half the width; what is kept of a tick needs no more.
#[expect(
    clippy::cast_possible_truncation,
    reason = "rounding is what is wanted"
)]
pub(super) fn narrow(value: f64) -> f32 {
    value as f32
}

/// Moves `mean` towards `value` by the share `weight`.
pub(super) fn blend(mean: f64, value: f64, weight: f64) -> f64 {
    mean + weight * (value - mean)
}

/// Seconds of a span in ns.
pub(super) fn seconds(span_ns: u64) -> f64 {
    real(span_ns) * 1e-9
}

/// The same for a part of a tick: so many parts as make a whole move it as far as one whole does.
pub(super) fn blend_part(mean: f64, value: f64, weight: f64, part: f64) -> f64 {
    if part >= 1.0 {
        blend(mean, value, weight)
    } else {
        blend(mean, value, 1.0 - libm::pow(1.0 - weight, part))
    }
}

/// What a part of a tick leaves where a whole one leaves `share`.
pub(super) fn left(share: f64, part: f64) -> f64 {
    if part >= 1.0 {
        share
    } else {
        libm::pow(share, part)
    }
}
