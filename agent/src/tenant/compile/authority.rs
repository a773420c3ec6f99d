//! Authority rules: the hashes of the origins go into the pool.

use tidegate_abi::board::name_hash;
use tidegate_limits::authority::OriginListMode;
use tidegate_segment::board::RuleKind;

use super::Pool;
use crate::rule::Authority;
use crate::rule::authority::Listing;

pub(super) fn kind(authority: &Authority, pool: &mut Pool) -> RuleKind {
    let hashes = authority.origins.iter();
    let hashes = hashes.map(|origin| name_hash(origin.as_bytes()));
    RuleKind::Authority {
        list: match authority.listing {
            Listing::Allow => OriginListMode::Allow,
            Listing::Deny => OriginListMode::Deny,
        },
        origins: pool.put(hashes.collect()),
    }
}
