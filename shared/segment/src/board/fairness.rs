//! What a decision that counts reads beside the scope's word: what others hold, who is cut, and who may hold how much.

use tidegate_abi::board::{ShareWord, scope, seat};
use tidegate_limits::fairness::LEVELS;

use super::{Board, split};
use crate::sync::{Ordering, Word, peek};

/// What a scope held in the last tick besides what a tenant has in flight itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScopeBacklog {
    /// Connections that waited in the accept queues of its listeners.
    pub(crate) waiting: u32,
    /// Requests of other tenants, as far as they count here.
    pub(crate) others: u32,
}

impl Board {
    /// What a scope held in the last tick besides what this tenant has in flight.
    #[inline]
    pub(crate) fn beside(&self, index: u32) -> ScopeBacklog {
        let place = usize::try_from(index).ok();
        let line = place.and_then(|place| self.scope_lines().get(place));
        // Relaxed: counts that stand for themselves.
        let count = |field: usize| {
            line.map_or(0, |line| {
                u32::try_from(peek(line, field)).unwrap_or(u32::MAX)
            })
        };
        ScopeBacklog {
            waiting: count(scope::ACCEPT_QUEUE),
            others: count(scope::OTHERS),
        }
    }

    /// Requests of other tenants in flight in a scope in the last tick, as far as they count here.
    pub fn others(&self, index: u32) -> u32 {
        self.beside(index).others
    }

    /// Level from which the requests of a scope are cut in overload.
    #[inline]
    pub fn scope_cutoff(&self, index: u32) -> u32 {
        let place = usize::try_from(index).ok();
        let line = place.and_then(|index| self.scope_lines().get(index));
        // Relaxed: a decision may take the level of the tick before.
        let level = line.map_or(0, |line| {
            split(line[scope::CUTOFF].load(Ordering::Relaxed)).0
        });
        if level == 0 { LEVELS } else { level }
    }

    /// Hash of the name of a seat's service.
    #[inline]
    pub fn seat_service(&self, index: u32) -> u64 {
        let place = usize::try_from(index).ok();
        let line = place.and_then(|index| self.seat_lines().get(index));
        // Relaxed: written before the seat is used.
        line.map_or(0, |line| line[seat::SERVICE].load(Ordering::Relaxed))
    }

    /// What a seat's service may hold of the limit of the host, or of its own scope; `None` is all.
    #[inline]
    pub fn seat_share(&self, index: u32, of_host: bool) -> Option<ShareWord> {
        let place = usize::try_from(index).ok()?;
        let line = self.seat_lines().get(place)?;
        // Relaxed: one word says it all.
        ShareWord::unpack(share_word(line, of_host).load(Ordering::Relaxed))
    }
}

/// The word of a seat that holds its service's share of the host, or of its own scope.
pub(super) const fn share_word(line: &[Word; seat::WORDS], of_host: bool) -> &Word {
    if of_host {
        &line[seat::SHARE_OF_HOST]
    } else {
        &line[seat::SHARE_OF_SCOPE]
    }
}
