//! System rules as the board has them.

use tidegate_limits::system::SystemThresholds;
use tidegate_segment::board::SystemRules;

use super::Pool;
use crate::tenant::rule_index::system::MergedSystem;

/// The rules as the board has them; those that observe go into the pool.
pub fn placed(system: &MergedSystem, pool: &mut Pool) -> Option<SystemRules> {
    let observed = system
        .observed
        .map(|rules| pool.put(rules.words().to_vec()));
    let rules = system.enforced.or(system.observed.map(|rules| SystemRules {
        marks: SystemThresholds::default(),
        ..rules
    }));
    rules.map(|rules| SystemRules {
        observed: observed.unwrap_or_default(),
        ..rules
    })
}
