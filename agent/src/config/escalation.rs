//! What happens when a scope stays in overload.

use std::time::Duration;

use crate::schema::effect::{Effects, Idle, OptionEffect};
use crate::schema::kind::{DurationRange, Flag};
use crate::schema::settings::{Section, settings};

settings! {
    /// A scope that stays in overload.
    pub struct EscalationOptions {
        /// Whether it is told again, and written to a file beside the sockets, `/run/tidegate/escalation.json`. The unit
        /// `tidegate-escalation.path`, which is off as installed, starts a unit of yours then.
        enabled: bool = true, Flag;
        /// How long it must be in overload, or refuse all. It is told once for each overload; the file is written 6
        /// times an hour at most.
        after: Duration = Duration::from_mins(10), DurationRange::ms(1_000, 86_400_000);
    }
    check check_escalation;
}

impl Effects for EscalationOptions {
    const EFFECTS: &'static [OptionEffect<Self>] = &[
        OptionEffect::always("enabled"),
        OptionEffect::new("after", |escalation| {
            let off = !escalation.enabled;
            Idle::when(off, "with enabled = true", "nothing is told again")
        }),
    ];
}

fn check_escalation(escalation: &EscalationOptions, section: &mut Section<'_, '_>) {
    escalation.warn(section);
}
