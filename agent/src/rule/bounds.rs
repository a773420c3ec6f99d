//! What a word of the pages can hold of a rule. A rule that is past it would not be held, so it is refused.

use std::time::Duration;

use tidegate_limits::param::token_bucket::TOKENS_MAX;
use tidegate_limits::strict::{RuleLimit, ValueLimit, WINDOW_MAX_NS};
use tidegate_limits::window::COUNT_MAX;

use super::Amount;
use crate::schema::settings::Section;

const SECOND: Duration = Duration::from_secs(1);

/// Refuses a flow rule that rejects with a count or a window past its word. A second's window past its word stands
/// for "not limited", as no resource passes as much.
pub(super) fn check_window(
    (count, window, strict): (u32, Duration, bool),
    section: &mut Section<'_, '_>,
) {
    if strict {
        check_strict_window(window, section);
        let most = RuleLimit::LIMIT_MAX;
        if count > most {
            section.refuse(&["count", "strict"], at_most(most), "the rule is strict");
        }
    } else if window != SECOND && count >= COUNT_MAX {
        let allowed = at_most(COUNT_MAX.saturating_sub(1));
        section.refuse(&["count", "window"], allowed, "a window counts no further");
    }
}

/// Refuses a hot-parameter rule with a bucket past its word; `limits` are those of its values, each with the option
/// that it stands in.
pub(super) fn check_bucket(
    limits: impl Iterator<Item = (&'static str, u32)>,
    window: Duration,
    burst: u32,
    strict: bool,
    section: &mut Section<'_, '_>,
) {
    if strict {
        check_strict_window(window, section);
    }
    for (option, limit) in limits {
        let most = ValueLimit::LIMIT_MAX;
        if strict && limit > most {
            section.refuse(&[option, "strict"], at_most(most), "the rule is strict");
        } else if !strict && limit.saturating_add(burst) > TOKENS_MAX {
            // A count of a second alone stands for "not limited", as no value passes as much.
            let allowed = format!("at most {TOKENS_MAX} with the burst");
            if burst > 0 {
                section.refuse(&["burst", option], allowed, "a bucket holds no more");
            } else if window != SECOND {
                section.refuse(&[option, "window"], allowed, "a bucket holds no more");
            }
        }
    }
}

fn check_strict_window(window: Duration, section: &mut Section<'_, '_>) {
    let longest = Duration::from_secs(Duration::from_nanos(WINDOW_MAX_NS).as_secs());
    if window > longest {
        let allowed = format!("at most \"{}\"", humantime::format_duration(longest));
        section.refuse(&["window", "strict"], allowed, "the rule is strict");
    }
}

/// Refuses a warm-up whose bucket, of `period × count` tokens, is past its word.
pub(super) fn check_warm_up(count: Amount, period: Duration, section: &mut Section<'_, '_>) {
    let most = f64::from(i32::MAX) / period.as_secs_f64();
    if count.get() > most {
        let hint = "the bucket of so long a warm-up holds no more";
        section.refuse(
            &["count", "warm_up_period"],
            format!("at most {}", most.floor()),
            hint,
        );
    }
}

/// Refuses a time that is counted in seconds and is not whole ones.
pub(super) fn check_seconds(option: &str, time: Duration, section: &mut Section<'_, '_>) {
    if time.subsec_nanos() != 0 {
        section.refuse(&[option], "whole seconds", "it is counted in seconds");
    }
}

fn at_most(most: u32) -> String {
    format!("at most {most}")
}
