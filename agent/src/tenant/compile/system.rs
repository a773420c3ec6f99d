//! System rules, merged into one set of marks.

use tidegate_abi::decision::Mode;
use tidegate_limits::system::Marks;
use tidegate_segment::board::SystemRules;

use crate::rule::{Body, RuleSet, System};

/// The marks of the rules in force; `None` if nothing is checked. The first of them stands for all
/// in messages.
pub fn merged(rules: &RuleSet) -> Option<SystemRules> {
    let quirks = rules.quirks().into();
    let mut first = None;
    let marks = (0..).zip(rules.rules()).filter_map(|(number, rule)| {
        let Body::System(system) = &rule.body else {
            return None;
        };
        (rule.mode == Mode::Enforce).then(|| {
            first.get_or_insert(number);
            marks(system)
        })
    });
    let marks: Vec<Marks> = marks.collect();
    Some(SystemRules {
        marks: Marks::merged(marks, quirks)?,
        rule: first?,
        quirks,
    })
}

fn marks(system: &System) -> Marks {
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1_000.0;
    Marks {
        qps: system.qps.map(crate::rule::Amount::get),
        concurrency: system.concurrency.map(f64::from),
        average_rt_ms: system.avg_rt.map(ms),
        load: system.load.map(crate::rule::Amount::get),
        cpu: system.cpu.map(crate::rule::Amount::get),
    }
}
