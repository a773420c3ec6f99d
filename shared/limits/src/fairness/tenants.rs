//! What the tenants of a scope count of each other.
//!
//! Decisions see what their own tenant holds at each moment, and what the others held in the last tick. A
//! ledger may lie about the latter, so it never takes more than it should from anybody: every
//! tenant is left its equal part of the limit.

use tidegate_abi::board::ScopeWord;
use tidegate_abi::decision::ScopeState;

/// Requests of others that the tenant at `place` counts as held in a scope with this limit. `held` is
/// what each tenant held in the last tick, in their order.
pub fn others(held: impl Iterator<Item = u64>, place: usize, limit: u32) -> u32 {
    let (mut sum, mut tenants) = (0_u64, 1_u32);
    for (at, held) in held.enumerate() {
        if at != place && held > 0 {
            sum = sum.saturating_add(held);
            tenants = tenants.saturating_add(1);
        }
    }
    let left = limit.saturating_sub(limit.div_ceil(tenants));
    u32::try_from(sum).unwrap_or(u32::MAX).min(left)
}

/// The stricter of two words of the host: that of all tenants, and that of what one tenant did itself.
///
/// The second holds beside `others`, the requests of others that the tenant counts. What another tenant claims can
/// lift the first alone.
pub fn stricter(all: ScopeWord, own: ScopeWord, others: u32) -> ScopeWord {
    let beside = |limit: u32| match limit {
        ScopeWord::LIMIT_MAX => limit,
        _ => limit.saturating_add(others).min(ScopeWord::LIMIT_MAX),
    };
    let rests = |state| matches!(state, ScopeState::Healthy | ScopeState::Cold);
    let state = if rests(all.state) && own.state == ScopeState::Overload {
        own.state
    } else {
        all.state
    };
    ScopeWord {
        state,
        short: all.short,
        near: all.near || own.near,
        observe: all.observe,
        entry: all.entry.min(beside(own.entry)),
        tight: all.tight.min(beside(own.tight)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(state: ScopeState, entry: u32, tight: u32) -> ScopeWord {
        ScopeWord {
            state,
            short: true,
            near: false,
            observe: false,
            entry,
            tight,
        }
    }

    #[test]
    fn field_l11_what_another_tenant_claims_lifts_no_limit_of_this_one() {
        use ScopeState::{Healthy, Overload, Reject};
        let honest = word(Healthy, 40, 12);
        let lifted = word(Healthy, 4_800_000, 900_000);
        assert_eq!(stricter(lifted, honest, 30), word(Healthy, 70, 42));
        let own = word(Overload, 40, 12);
        assert_eq!(stricter(lifted, own, 30), word(Overload, 70, 42));
        // Its own claims lift nothing either.
        assert_eq!(stricter(honest, lifted, 0), honest);
        let strict = word(Reject, 40, 0);
        assert_eq!(stricter(strict, own, 3), strict);
        let open = word(Healthy, ScopeWord::LIMIT_MAX, ScopeWord::LIMIT_MAX);
        assert_eq!(stricter(honest, open, 3), honest);
    }

    #[test]
    fn others_count_in_full_while_they_leave_a_tenant_its_part() {
        let held = [3, 10, 0, 4];
        let of = |place| others(held.into_iter(), place, 40);
        assert_eq!([0, 1, 2, 3].map(of), [14, 7, 17, 13]);
        assert_eq!(others([5].into_iter(), 0, 40), 0);
    }

    #[test]
    fn a_tenant_that_claims_everything_leaves_the_others_their_parts() {
        let of = |limit| others([1, u64::MAX, 2].into_iter(), 0, limit);
        // A third of 40 is 14, and a third of 1 is the whole of it.
        assert_eq!((of(40), of(1), of(0)), (26, 0, 0));
        assert_eq!(
            others([1, u64::MAX, u64::MAX].into_iter(), 0, u32::MAX),
            u32::MAX / 3 * 2
        );
    }
}
