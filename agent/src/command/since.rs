//! A time in the past as the command line gives it.

use std::time::UNIX_EPOCH;

/// Seconds since 1970 of a time, or of so long ago.
#[expect(
    clippy::disallowed_types,
    reason = "an operator asks by the time of the clock"
)]
pub(super) fn since(text: &str) -> Result<u64, String> {
    let ago = humantime::parse_duration(text).ok();
    let then = match ago {
        Some(ago) => std::time::SystemTime::now().checked_sub(ago),
        None => humantime::parse_rfc3339_weak(text).ok(),
    };
    let since_1970 = then.and_then(|then| then.duration_since(UNIX_EPOCH).ok());
    since_1970.map(|time| time.as_secs()).ok_or_else(|| {
        "so long ago, such as \"10m\", or a time in UTC, such as \"2026-11-30 23:40:00\"".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_o13_since_is_a_time_or_so_long_ago() {
        assert_eq!(since("1970-01-01 00:01:00"), Ok(60));
        assert_eq!(since("1970-01-01T00:01:00Z"), Ok(60));
        assert!(since("10m").unwrap() > 1_700_000_000);
        assert!(since("yesterday").unwrap_err().contains("such as"));
    }
}
