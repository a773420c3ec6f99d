//! Which options of the law have no effect.

use super::{BulkheadOptions, LawKind, LawOptions};
use crate::schema::effect::{Effects, Idle, OptionEffect};

/// Sentinel's check has no options of its own.
fn not_asked(law: &LawOptions) -> Option<Idle> {
    let plain = law.kind == LawKind::Sentinel;
    Idle::when(
        plain,
        "with kind = \"adaptive\"",
        "Sentinel's check takes the marks of [cpu] and [load] alone",
    )
}

impl Effects for LawOptions {
    const EFFECTS: &'static [OptionEffect<Self>] = &[
        OptionEffect::always("kind"),
        OptionEffect::always("mode"),
        OptionEffect::new("entry", not_asked),
        OptionEffect::new("tight", not_asked),
        OptionEffect::new("cold", not_asked),
        OptionEffect::new("estimate", not_asked),
        OptionEffect::new("evidence", not_asked),
        OptionEffect::new("release", not_asked),
        OptionEffect::new("rate", not_asked),
        OptionEffect::new("effect", not_asked),
        OptionEffect::new("bulkhead", not_asked),
    ];
}

fn not_held(bulkhead: &BulkheadOptions) -> Option<Idle> {
    Idle::when(
        !bulkhead.enabled,
        "with enabled = true",
        "without it no resource is held",
    )
}

impl Effects for BulkheadOptions {
    const EFFECTS: &'static [OptionEffect<Self>] = &[
        OptionEffect::always("enabled"),
        OptionEffect::new("share_ratio", not_held),
        OptionEffect::new("after", not_held),
    ];
}
