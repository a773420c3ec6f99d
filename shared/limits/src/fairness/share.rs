//! How the services of a scope divide its limit.
//!
//! By weight, and what one does not need is lent to those who do. A service that asks in the mean
//! of the last ticks for no more than its part of what can be done in one is *modest*: it needs what it holds and a little
//! more, and is guaranteed its part of several entry limits, for in flight is a matter of chance and a part
//! of the tight limit may be a handful. The others need everything; they divide what the modest leave.

use super::OverloadLimits;

/// What a service may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceShare {
    /// Admitted up to this whatever the others hold.
    pub guaranteed: u32,
    /// Its part of the limit with what it borrows.
    pub limit: u32,
}

impl ServiceShare {
    /// Everything, for the only service of a scope.
    pub const ALL: Self = Self {
        guaranteed: 0,
        limit: u32::MAX,
    };
}

/// Weight of the newest tick in the mean of what was asked for.
const WEIGHT: f64 = 0.2;
/// A tick is this part of a whole one at least.
const LEAST_PART: f64 = 0.01;

/// Mean requests of a whole tick.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ServiceDemand {
    /// Admitted.
    pub passed: f64,
    /// Admitted, or refused because of a scope.
    pub offered: f64,
}

impl ServiceDemand {
    /// Takes a tick into account, of which `part` is what it is of a whole one, up to 1.
    pub fn update(&mut self, passed: u64, shed: u64, part: f64) {
        let part = part.clamp(LEAST_PART, 1.0);
        let weight = if part < 1.0 { WEIGHT * part } else { WEIGHT };
        let passed = crate::number::double(passed) / part;
        let offered = passed + crate::number::double(shed) / part;
        self.passed += weight * (passed - self.passed);
        self.offered += weight * (offered - self.offered);
    }

    /// Adds what another process of the service asked for.
    pub fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.offered += other.offered;
    }
}

/// A service of a scope in a tick.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShareMember {
    /// Its weight; over 0.
    pub weight: f64,
    /// Requests that it holds.
    pub held: u32,
    /// What it asked for lately.
    pub asked: ServiceDemand,
    /// What it may hold from now on.
    pub share: ServiceShare,
    /// Whether it asks for no more than its part; set when the limit is divided.
    pub modest: bool,
}

impl ShareMember {
    /// A service of this weight that has done nothing.
    pub fn new(weight: f64) -> Self {
        Self {
            weight: if weight > 0.0 { weight } else { 1.0 },
            held: 0,
            asked: ServiceDemand::default(),
            share: ServiceShare::ALL,
            modest: false,
        }
    }

    /// Whether it takes part: it holds or wants something.
    pub fn is_active(&self) -> bool {
        self.held > 0 || self.asked.offered > 0.5
    }

    fn need(&self) -> f64 {
        f64::from(self.held) * 1.25 + 1.0
    }
}

/// Divides the tight limit among the services. `capacity` is how many requests the scope can do in a tick; where
/// it is not known, or less, those that passed stand for it.
pub fn divide(limits: OverloadLimits, capacity: Option<f64>, members: &mut [ShareMember]) {
    let (whole, wide) = (f64::from(limits.tight), f64::from(limits.entry));
    let passed: f64 = members.iter().map(|member| member.asked.passed).sum();
    let passed = passed.max(capacity.unwrap_or(0.0));
    let weights = weights(members, ShareMember::is_active);
    for member in &mut *members {
        let others = if member.is_active() {
            0.0
        } else {
            member.weight
        };
        let part = member.weight / (weights + others);
        member.modest = member.asked.offered <= passed * part;
        // Whoever is alone has all of the limit, and nobody to be guaranteed anything against.
        let guaranteed = if member.modest && part < 1.0 {
            wide.max(whole) * f64::from(super::WIDE) * part
        } else {
            0.0
        };
        member.share = ServiceShare {
            guaranteed: up(guaranteed),
            limit: up(whole * part),
        };
    }
    lend(whole, members);
}

/// What the modest leave, by weight to the others. They have what they asked for, so nobody of them
/// needs less than its part.
fn lend(whole: f64, members: &mut [ShareMember]) {
    let needed: f64 = members
        .iter()
        .filter(|member| member.modest && member.is_active())
        .map(ShareMember::need)
        .sum();
    let left = (whole - needed).max(0.0);
    let weights = weights(members, |member| !member.modest);
    for member in members.iter_mut().filter(|member| !member.modest) {
        member.share.limit = up(left * member.weight / weights).max(1);
    }
}

fn weights(members: &[ShareMember], of: impl Fn(&ShareMember) -> bool) -> f64 {
    let members = members.iter().filter(|member| of(member));
    members.map(|member| member.weight).sum()
}

/// Up, so that nobody is left with nothing.
fn up(part: f64) -> u32 {
    crate::number::whole_u32(libm::ceil(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_alone_is_held_to_the_limit_however_little_it_asks_for() {
        let idle = (1.0, 0, 0.0, 0.0);
        let alone = shares(20, &[(1.0, 15, 3.0, 0.0), idle]);
        assert_eq!(alone[0], (0, 20));
        assert!(alone[1].0 > 0, "and whoever comes has its part");
    }

    /// Weight, held, passed and shed of each.
    fn shares(limit: u32, members: &[(f64, u32, f64, f64)]) -> Vec<(u32, u32)> {
        let mut members: Vec<_> = members
            .iter()
            .map(|&(weight, held, passed, shed)| ShareMember {
                held,
                asked: ServiceDemand {
                    passed,
                    offered: passed + shed,
                },
                ..ShareMember::new(weight)
            })
            .collect();
        let limits = OverloadLimits {
            tight: limit,
            entry: limit * 2,
        };
        divide(limits, Some(30.0), &mut members);
        let share = |member: &ShareMember| (member.share.guaranteed, member.share.limit);
        members.iter().map(share).collect()
    }

    #[test]
    fn what_a_modest_service_leaves_is_lent_to_the_greedy_one() {
        // The modest one needs 4 · 1.25 + 1 = 6 of 40; it asked for 12 of the 40 that passed.
        assert_eq!(
            shares(40, &[(1.0, 4, 12.0, 0.0), (1.0, 36, 28.0, 300.0)]),
            [(320, 20), (0, 34)]
        );
    }

    #[test]
    fn a_refusal_makes_nobody_greedy_who_asked_for_no_more_than_its_part() {
        let modest = shares(10, &[(1.0, 4, 10.0, 2.0), (1.0, 6, 30.0, 300.0)])[0];
        assert_eq!(modest, (80, 5));
    }

    #[test]
    fn two_greedy_services_divide_by_weight() {
        assert_eq!(
            shares(40, &[(3.0, 20, 20.0, 90.0), (1.0, 20, 20.0, 90.0)]),
            [(0, 30), (0, 10)]
        );
    }

    #[test]
    fn one_that_is_away_keeps_its_part_and_lends_all_of_it() {
        assert_eq!(
            shares(40, &[(1.0, 0, 0.0, 0.0), (1.0, 40, 40.0, 90.0)]),
            [(320, 20), (0, 40)]
        );
    }

    #[test]
    fn odd_weights_counts_and_limits_give_shares_that_let_work() {
        let odd = (f64::NAN, u32::MAX, 1e18, 1e18);
        for (_guaranteed, limit) in shares(0, &[odd, (0.0, 3, 0.0, 3.0), (1e300, 1, 9.0, 0.0)]) {
            assert!(limit <= 1);
        }
        assert_eq!(shares(5, &[]), []);
    }
}
