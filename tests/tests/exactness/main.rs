//! Limits hold over processes and threads: never exceeded, never left unused. One file for each kind of
//! rule that counts, and one for services behind it; most let eight processes meet at a barrier and ask
//! at the same moment.

#![cfg(test)]

mod breaker;
mod flow;
mod http;
mod pace;
mod param;
mod strict;

use tidegate_tests::spans::Spans;

const LIMIT: u64 = 100;
const QPS_RULE: &str = "[[flow]]\nresource = \"order\"\ngrade = \"qps\"\ncount = 100\n";

/// No window has more than the limit, and each has at least 99 % of it.
fn check_windows(spans: &Spans, first: u64, last: u64) {
    let windows = spans.windows(first, last);
    assert!(windows.len() >= 4, "too short an offer: {spans}");
    for (least, most) in windows {
        assert!(least <= LIMIT, "{least} admitted in one window: {spans}");
        assert!(
            most >= LIMIT - 1,
            "only {most} admitted in one window: {spans}"
        );
    }
}
