//! What the tenants of a scope count of each other.
//!
//! Decisions see what their own tenant holds at each moment, and what the others held in the last tick. A
//! ledger may lie about the latter, so it never takes more than it should from anybody: every
//! tenant is left its equal part of the limit.

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

#[cfg(test)]
mod tests {
    use super::*;

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
