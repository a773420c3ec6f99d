//! System rules, merged into one set of marks.

use tidegate_abi::decision::Mode;
use tidegate_limits::system::SystemThresholds;
use tidegate_segment::board::{PoolSpan, SystemRules};

use crate::rule::{Body, RuleSet, System};

/// The system rules of a set, merged.
#[derive(Debug, Clone, Copy, Default)]
pub struct MergedSystem {
    /// Those that refuse.
    pub enforced: Option<SystemRules>,
    /// Those that only observe.
    pub observed: Option<SystemRules>,
}

impl MergedSystem {
    /// Merges the rules of each mode. The first of them stands for all in messages.
    pub fn of(rules: &RuleSet) -> Self {
        Self {
            enforced: merged(rules, Mode::Enforce),
            observed: merged(rules, Mode::Observe),
        }
    }

    /// Whether any is in force.
    pub const fn any(&self) -> bool {
        self.enforced.is_some() || self.observed.is_some()
    }
}

fn merged(rules: &RuleSet, mode: Mode) -> Option<SystemRules> {
    let quirks = rules.quirks().into();
    let mut first = None;
    let marks = (0..).zip(rules.rules()).filter_map(|(number, rule)| {
        let Body::System(system) = &rule.body else {
            return None;
        };
        (rule.mode == mode && rule.rest().is_none()).then(|| {
            first.get_or_insert(number);
            marks(system)
        })
    });
    let marks: Vec<SystemThresholds> = marks.collect();
    Some(SystemRules {
        marks: SystemThresholds::merged(marks, quirks)?,
        rule: first?,
        quirks,
        observed: PoolSpan::default(),
    })
}

fn marks(system: &System) -> SystemThresholds {
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1_000.0;
    SystemThresholds {
        qps: system.qps.map(crate::rule::Amount::get),
        concurrency: system.concurrency.map(f64::from),
        average_rt_ms: system.avg_rt.map(ms),
        load: system.load.map(crate::rule::Amount::get),
        cpu: system.cpu.map(crate::rule::Amount::get),
    }
}
