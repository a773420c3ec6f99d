//! The gate as it decides from a scope's word, and what the agent divides for it each tick.

use tidegate_abi::board::{ScopeWord, SurgeWord};
use tidegate_abi::decision::ScopeState;
use tidegate_limits::fairness::cutoff::{ClassArrivals, Cutoff};
use tidegate_limits::fairness::share::{ServiceDemand, ShareMember, divide};
use tidegate_limits::fairness::{self, InFlightCounts, OverloadLimits, ServiceShare};
use tidegate_limits::law::{FAR_OVER, PublishedLimits, is_surge};
use tidegate_limits::number::whole;

use super::{Caller, SERVICES};

/// In flight by service, and who goes first.
#[derive(Default)]
pub(super) struct Door {
    pub(super) held: [u32; SERVICES],
    /// Admitted and refused in the tick, by service.
    counts: [(u64, u64); SERVICES],
    asked: [ServiceDemand; SERVICES],
    inlet: ClassArrivals,
    cutoff: Cutoff,
    shares: Option<[ServiceShare; SERVICES]>,
    /// What a surge is measured from, and when that was.
    surge: Option<(SurgeWord, f64)>,
}

impl Door {
    /// Decides on a request of this caller, with so many at the door.
    pub(super) fn admits(
        &mut self,
        word: ScopeWord,
        waiting: u32,
        caller: &Caller,
        key: u64,
        now_s: f64,
    ) -> bool {
        let all = self.held.iter().sum::<u32>() + waiting;
        let own = self.held[caller.service] + waiting;
        let held = InFlightCounts { all, own };
        let level = fairness::level(caller.class, key);
        let admitted = match word.state {
            ScopeState::Healthy | ScopeState::Cold => {
                let far =
                    word.state == ScopeState::Healthy && all >= word.entry.saturating_mul(FAR_OVER);
                let over = all >= word.entry && (word.short || far || self.surges(all, now_s));
                !over || fairness::admits_at_entry(limits(word), caller.class, held)
            }
            ScopeState::Overload => self.in_overload(word, caller, level, held),
            ScopeState::Reject => false,
        };
        self.held[caller.service] += u32::from(admitted);
        let (passed, shed) = &mut self.counts[caller.service];
        *passed += u64::from(admitted);
        *shed += u64::from(!admitted);
        admitted
    }

    fn surges(&self, held: u32, now_s: f64) -> bool {
        self.surge.is_some_and(|(before, at_s)| {
            is_surge(before, held, whole((now_s - at_s).max(0.0) * 1e9))
        })
    }

    fn in_overload(
        &mut self,
        word: ScopeWord,
        caller: &Caller,
        level: u32,
        held: InFlightCounts,
    ) -> bool {
        let shares = self.shares;
        let share = shares.map_or(ServiceShare::ALL, |shares| shares[caller.service]);
        let cutoff = self.cutoff.level();
        let admitted = fairness::admits(limits(word), share, level, cutoff, held);
        let rank = usize::try_from(fairness::rank(caller.class)).unwrap();
        self.inlet.offered[rank] += 1;
        self.inlet.keyed += u64::from(caller.keyed);
        self.inlet.refused += u64::from(!admitted);
        self.inlet.refused_under += u64::from(!admitted && level < cutoff);
        admitted
    }

    /// A tick has published this.
    pub(super) fn tick(&mut self, published: &PublishedLimits, now_s: f64) {
        self.surge = Some((published.surge(), now_s));
        let (word, capacity_qps) = (published.word(), published.capacity_qps);
        let inlet = std::mem::take(&mut self.inlet);
        let counts = std::mem::take(&mut self.counts);
        for (asked, (passed, shed)) in self.asked.iter_mut().zip(counts) {
            asked.update(passed, shed, 1.0);
        }
        if word.state != ScopeState::Overload {
            self.cutoff.release();
            self.shares = None;
            return;
        }
        let all: u32 = self.held.iter().sum();
        let capacity = capacity_qps.map(|capacity| capacity * super::TICK_S);
        let draining = capacity.filter(|_capacity| all > word.tight * 2);
        self.cutoff.step(&inlet, draining);
        let mut members: Vec<ShareMember> = (0..SERVICES)
            .map(|service| ShareMember {
                held: self.held[service],
                asked: self.asked[service],
                ..ShareMember::new(1.0)
            })
            .collect();
        let active = members.iter().filter(|member| member.is_active());
        let alone = active.count() < 2 && self.shares.is_none();
        divide(limits(word), capacity, &mut members);
        self.shares = (!alone).then(|| [members[0].share, members[1].share]);
    }
}

fn limits(word: ScopeWord) -> OverloadLimits {
    OverloadLimits {
        tight: word.tight,
        entry: word.entry,
    }
}
