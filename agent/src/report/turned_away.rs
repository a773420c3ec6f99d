//! Who found no place, for the status.

use std::collections::BTreeMap;

use super::ListedWord;
use crate::host::AgentState;
use crate::places::Full;

/// Callers that found no place, by what they asked for; what nobody was refused is left out.
pub(super) fn by_bound(context: &AgentState) -> BTreeMap<ListedWord, u64> {
    let of_doors = context.bounds.iter();
    let of_doors = of_doors.map(|places| (places.what(), sum(places.turned_away())));
    let seats = context.tenants.iter();
    let seats = seats.map(|named| sum(named.tenant.seats().refused()));
    let seats = ("seats", seats.fold(0, u64::saturating_add));
    let all = of_doors.chain([seats]);
    all.filter(|(_what, count)| *count > 0)
        .map(|(what, count)| (what.into(), count))
        .collect()
}

fn sum(counts: impl Iterator<Item = (Full, u64)>) -> u64 {
    counts
        .map(|(_full, count)| count)
        .fold(0, u64::saturating_add)
}
