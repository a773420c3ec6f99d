//! Holds a scope against what its recording expects.

use super::run::{ScopeReplay, Seen, ratio};
use crate::recording::line::{Expect, Range};

/// What the scope is not as expected, one text each.
pub(super) fn missed(expect: &Expect, run: Option<&mut ScopeReplay>) -> Vec<String> {
    let Some(run) = run else {
        return vec![format!("scope = {}: there was no tick of it", expect.scope)];
    };
    let mut missed = words(expect, run);
    let published = *run.published();
    let now = run.figures();
    let since = since(&run.seen, &now);
    let ranges = [
        ("entry", expect.entry, Some(f64::from(published.entry))),
        ("tight", expect.tight, Some(f64::from(published.tight))),
        ("allowed_qps", expect.allowed_qps, published.allowed_qps),
        ("capacity_qps", expect.capacity_qps, published.capacity_qps),
        (
            "base_rt_ms",
            expect.base_rt_ms,
            published.base_rt_s.map(|seconds| seconds * 1e3),
        ),
        (
            "healthy_needed",
            expect.healthy_needed,
            Some(f64::from(published.healthy_needed)),
        ),
        (
            "changes",
            expect.changes,
            Some(tidegate_limits::number::double(since.changes)),
        ),
        (
            "refused_ratio",
            expect.refused_ratio,
            Some(ratio(since.refused, since.offered)),
        ),
    ];
    let outside = ranges
        .into_iter()
        .filter_map(|(name, range, value)| outside(name, range?, value));
    missed.extend(outside);
    if expect.changes.is_some() {
        run.seen.changes = now.changes;
    }
    if expect.refused_ratio.is_some() {
        (run.seen.offered, run.seen.refused) = (now.offered, now.refused);
    }
    missed
}

fn since(seen: &Seen, now: &Seen) -> Seen {
    Seen {
        changes: now.changes.saturating_sub(seen.changes),
        offered: now.offered.saturating_sub(seen.offered),
        refused: now.refused.saturating_sub(seen.refused),
    }
}

fn words(expect: &Expect, run: &ScopeReplay) -> Vec<String> {
    let published = run.published();
    let mut missed = Vec::new();
    if let Some(state) = expect.state
        && state != published.state.into()
    {
        missed.push(format!(
            "state = {}; expected is {state:?}",
            published.state.name()
        ));
    }
    if let Some(cause) = &expect.cause
        && cause != published.cause.name()
    {
        missed.push(format!(
            "cause = {}; expected is {cause}",
            published.cause.name()
        ));
    }
    if let Some(ineffective) = expect.ineffective
        && ineffective != published.ineffective
    {
        missed.push(format!(
            "ineffective = {}; expected is {ineffective}",
            published.ineffective
        ));
    }
    missed
}

fn outside(name: &str, [least, most]: Range, value: Option<f64>) -> Option<String> {
    let expected = format!("expected is {least} to {most}");
    match value {
        Some(value) if (least..=most).contains(&value) => None,
        Some(value) => Some(format!("{name} = {value}; {expected}")),
        None => Some(format!("{name} is not known; {expected}")),
    }
}
