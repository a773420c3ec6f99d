//! Who is refused first in overload: the least important, and whoever has more than its share.
//!
//! A request has a *level*, 0 the most important: three classes of 128 sub-levels. The *cut-off* of a
//! scope divides the levels. Those under it are admitted up to the scope's tight limit, those over it
//! up to a quarter of it, which they find free only when the others leave it free. `critical` may go
//! on to eight entry limits while the cut-off does not cut into it: so it is refused last,
//! also while what piled up before the overload goes away. `normal` may go on by half while the
//! cut-off is among the sheddable, so that a burst costs those first.
//!
//! A *share* is what a service may hold of the scope's limit ([`share`]). One that asks for no more
//! than its part is admitted whatever the others hold and whatever the level, up to its part of
//! eight entry limits; so a service that comes back takes its part at once. The others divide what is left, and those who had
//! borrowed are held to less from the next tick on. Until then the scope may be over its limit by what
//! was taken back. What other tenants hold counts as well, see [`tenants`].

pub mod cutoff;
pub mod share;
pub mod tenants;

use tidegate_abi::decision::Class;

pub use share::ServiceShare;

/// Sub-levels of a class.
pub const SUBLEVELS: u32 = 128;
/// Levels of all classes. As a cut-off: nothing is cut.
pub const LEVELS: u32 = SUBLEVELS * 3;

/// Entry limits that the critical class, and all modest services together, may hold: a step in the load
/// piles up several before the first tick sees it, and they are to pass while that goes away. What
/// they ask for fits into the capacity, or the next tick no longer takes them for such.
pub(crate) const WIDE: u32 = 8;

/// Number of a class among those that have levels. Probes have a budget of their own and are as
/// important as `critical` within a limit.
pub const fn rank(class: Class) -> u32 {
    match class {
        Class::Critical | Class::Probe => 0,
        Class::Normal => 1,
        Class::Sheddable => 2,
    }
}

/// Level of a request. `key` spreads the requests of a class over its sub-levels: those with the
/// same key are refused or admitted together.
pub const fn level(class: Class, key: u64) -> u32 {
    // Fibonacci hashing: the top bits of the product depend on all bits of the key.
    let sublevel = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57) as u32;
    rank(class).wrapping_mul(SUBLEVELS).wrapping_add(sublevel)
}

/// What is held of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InFlightCounts {
    /// By all services of the scope.
    pub all: u32,
    /// By the service of the request.
    pub own: u32,
}

/// The limits of a scope in overload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverloadLimits {
    /// Where the law wants to hold the scope.
    pub tight: u32,
    /// Where overload begins.
    pub entry: u32,
}

/// Whether a request of this class is admitted where overload has just begun, and nothing is known of
/// who wants what: the critical ones are, and those of a service that holds little of what piled up.
///
/// Little is a third of the limit: in the tenths of a second until a tick tells them apart, a modest service that
/// waits behind a greedy one comes to hold a quarter.
#[inline]
pub const fn admits_at_entry(limits: OverloadLimits, class: Class, held: InFlightCounts) -> bool {
    let little = held.own < limits.entry / 3;
    little || admits(limits, ServiceShare::ALL, level(class, 0), LEVELS, held)
}

/// Whether a request of this level is admitted.
#[inline]
pub const fn admits(
    limits: OverloadLimits,
    share: ServiceShare,
    level: u32,
    cutoff: u32,
    held: InFlightCounts,
) -> bool {
    held.own < share.guaranteed
        || (held.all < reach(limits.tight, limits, level, cutoff)
            && held.own < reach(share.limit, limits, level, cutoff))
}

/// How far a level reaches where others reach to `part` of the tight limit.
const fn reach(part: u32, limits: OverloadLimits, level: u32, cutoff: u32) -> u32 {
    if level >= cutoff {
        part.div_ceil(4)
    } else if level < SUBLEVELS && cutoff >= SUBLEVELS {
        let wide = limits.entry.saturating_mul(WIDE);
        part.saturating_add(wide.saturating_sub(limits.tight))
    } else if level < SUBLEVELS * 2 && cutoff >= SUBLEVELS * 2 && cutoff < LEVELS {
        part.saturating_add(part / 2)
    } else {
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: OverloadLimits = OverloadLimits {
        tight: 20,
        entry: 80,
    };

    fn most(share: ServiceShare, class: Class, cutoff: u32) -> u32 {
        let level = level(class, 0);
        let admitted = |held: &u32| {
            let held = InFlightCounts {
                all: *held,
                own: *held,
            };
            admits(LIMITS, share, level, cutoff, held)
        };
        (0..1000).find(|held| !admitted(held)).unwrap()
    }

    #[test]
    fn a_class_reaches_further_the_more_important_it_is() {
        let alone = ServiceShare::ALL;
        assert_eq!(most(alone, Class::Normal, LEVELS), 20);
        assert_eq!(most(alone, Class::Sheddable, 256), 5);
        assert_eq!(most(alone, Class::Normal, 255), 20);
        assert_eq!(most(alone, Class::Normal, 256), 30);
        assert_eq!(most(alone, Class::Critical, 256), 640);
        assert_eq!(
            most(alone, Class::Critical, 100),
            20,
            "too many are critical"
        );
        assert_eq!(most(alone, Class::Critical, 0), 5);
    }

    #[test]
    fn a_guaranteed_part_is_admitted_whatever_the_level() {
        let share = ServiceShare {
            guaranteed: 12,
            limit: 15,
        };
        assert_eq!(most(share, Class::Sheddable, 1), 12);
        assert_eq!(most(share, Class::Normal, LEVELS), 15);
    }

    #[test]
    fn keys_spread_over_the_levels_of_their_class() {
        let mut seen = std::collections::HashSet::new();
        for key in 0..1000 {
            let level = level(Class::Sheddable, key);
            assert!((256..384).contains(&level));
            seen.insert(level);
        }
        assert!(seen.len() > 100);
    }
}
