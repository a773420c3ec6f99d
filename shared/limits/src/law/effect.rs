//! Whether shedding helps.
//!
//! When other work keeps the CPU busy, refusing more and more of the own requests changes nothing.
//! The sign: pressure stays for a whole period while little of the earlier rate is admitted, and the
//! CPU is not in the scope's own use. Then the law rests: the entry limit alone is in force, from the first tick on
//! in which something is done. While nothing is, a wider limit would only let more wait for nothing.

use super::settings;

/// What the check says.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
enum Verdict {
    /// Shedding helps, or nothing is known yet.
    #[default]
    Helps,
    /// Pressure stays and little is admitted, for so long.
    Doubtful { for_ns: u64 },
    /// Shedding did not help; it is tried again after the rest.
    Ineffective { rested_ns: u64 },
}

/// The check of the effect of shedding.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct EffectCheck {
    reference_qps: f64,
    verdict: Verdict,
}

/// What a tick in overload looked like.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observation {
    pub tick_ns: u64,
    /// Requests done in each second lately.
    pub done_qps: f64,
    /// Whether the CPU was short.
    pub short: bool,
    /// Whether the scope's own tasks used the CPU, as far as is known.
    pub own_work: bool,
}

impl EffectCheck {
    /// Overload begins; `done_qps` is the rate of work done until now.
    pub(super) fn enter(&mut self, done_qps: f64) {
        *self = Self {
            reference_qps: done_qps,
            verdict: Verdict::Helps,
        };
    }

    /// Takes a tick in overload into account and says whether shedding is ineffective.
    pub(super) fn update(
        &mut self,
        seen: &Observation,
        settings: &settings::EffectSettings,
    ) -> bool {
        let share = f64::from(settings.little_percent) / 100.0;
        let little = seen.done_qps < share * self.reference_qps;
        let doubtful = little && seen.short && !seen.own_work;
        self.verdict = match self.verdict {
            Verdict::Ineffective { rested_ns } => {
                let rested_ns = rested_ns.saturating_add(seen.tick_ns);
                if seen.short && rested_ns < settings.rest_ns {
                    Verdict::Ineffective { rested_ns }
                } else {
                    Verdict::Helps
                }
            }
            Verdict::Helps if doubtful => Verdict::Doubtful {
                for_ns: seen.tick_ns,
            },
            Verdict::Doubtful { for_ns } if doubtful => {
                let for_ns = for_ns.saturating_add(seen.tick_ns);
                if for_ns < settings.period_ns {
                    Verdict::Doubtful { for_ns }
                } else {
                    Verdict::Ineffective { rested_ns: 0 }
                }
            }
            Verdict::Helps | Verdict::Doubtful { .. } => Verdict::Helps,
        };
        matches!(self.verdict, Verdict::Ineffective { .. })
    }
}
