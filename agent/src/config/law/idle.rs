//! Which options of the law have no effect.

use super::{Bulkhead, Law, LawKind};
use crate::schema::effect::{Effect, Effects, Idle};

/// Sentinel's check has no options of its own.
fn not_asked(law: &Law) -> Option<Idle> {
    let plain = law.kind == LawKind::Sentinel;
    Idle::when(
        plain,
        "with kind = \"adaptive\"",
        "Sentinel's check takes the marks of [cpu] and [load] alone",
    )
}

impl Effects for Law {
    const EFFECTS: &'static [Effect<Self>] = &[
        Effect::always("kind"),
        Effect::always("mode"),
        Effect::new("entry", not_asked),
        Effect::new("tight", not_asked),
        Effect::new("cold", not_asked),
        Effect::new("estimate", not_asked),
        Effect::new("evidence", not_asked),
        Effect::new("release", not_asked),
        Effect::new("rate", not_asked),
        Effect::new("effect", not_asked),
        Effect::new("bulkhead", not_asked),
    ];
}

fn not_held(bulkhead: &Bulkhead) -> Option<Idle> {
    Idle::when(
        !bulkhead.enabled,
        "with enabled = true",
        "without it no resource is held",
    )
}

impl Effects for Bulkhead {
    const EFFECTS: &'static [Effect<Self>] = &[
        Effect::always("enabled"),
        Effect::new("share_ratio", not_held),
        Effect::new("after", not_held),
    ];
}
