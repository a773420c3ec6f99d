//! Which options of the law have no effect.

use super::{Law, LawKind};
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
        Effect::new("entry", not_asked),
        Effect::new("tight", not_asked),
        Effect::new("cold", not_asked),
        Effect::new("estimate", not_asked),
        Effect::new("evidence", not_asked),
        Effect::new("release", not_asked),
        Effect::new("rate", not_asked),
        Effect::new("effect", not_asked),
    ];
}
