//! Permits that the agent holds for callers over sockets, named by unguessable tokens.

use std::collections::HashMap;

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use tidegate_abi::message::TOKEN;
use tidegate_segment::board::Slot;
use tidegate_segment::gate::Pass;

use super::proxy_seats::ProxyPermit;
use crate::places::HeldPlaces;

/// Names a permit.
pub type PermitToken = [u8; TOKEN];

/// There is no random number for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no random number for a token: {0}")]
pub struct NoToken(Errno);

/// Random bytes that nobody can guess.
///
/// # Errors
/// The kernel's refusal; it does not come once the system is up.
pub fn random<const N: usize>() -> Result<[u8; N], Errno> {
    let mut bytes = [0; N];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes)
}

/// The token of a permit that is about to be asked for.
///
/// # Errors
/// There is no random number.
pub fn draw() -> Result<PermitToken, NoToken> {
    random().map_err(NoToken)
}

/// Permits by their tokens. It belongs to one connection, or is shared behind a lock.
#[derive(Debug, Default)]
pub struct Permits {
    /// Boxed, so that the table is small where it has just grown and is half empty.
    held: HashMap<PermitToken, Box<PermitHolder>>,
    /// Those that ended by the clock.
    expired: u64,
}

/// Permits that were not given back yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outstanding {
    /// How many.
    pub permits: u64,
    /// When the first of them was given, monotonic ns; 0 where there is none.
    pub oldest_ns: u64,
}

impl Outstanding {
    /// These and others.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let oldest = match (self.permits, other.permits) {
            (_, 0) => self.oldest_ns,
            (0, _) => other.oldest_ns,
            (_, _) => self.oldest_ns.min(other.oldest_ns),
        };
        Self {
            permits: self.permits.saturating_add(other.permits),
            oldest_ns: oldest,
        }
    }

    fn one(pass: &Pass) -> Self {
        Self {
            permits: 1,
            oldest_ns: pass.entered_ns,
        }
    }
}

#[derive(Debug)]
struct PermitHolder {
    permit: ProxyPermit,
    place: HeldPlaces,
    ends_ns: u64,
}

impl Permits {
    /// Holds a permit for whoever has the place, until a time, monotonic ns.
    pub fn hold(
        &mut self,
        token: PermitToken,
        permit: ProxyPermit,
        place: HeldPlaces,
        ends_ns: u64,
    ) {
        let held = PermitHolder {
            permit,
            place,
            ends_ns,
        };
        self.held.insert(token, Box::new(held));
    }

    /// Takes out a permit of a user. Another user's permit stays, and does not show.
    pub fn take(&mut self, token: &PermitToken, uid: u32) -> Option<ProxyPermit> {
        if self.held.get(token)?.place.holder().uid != uid {
            return None;
        }
        self.held.remove(token).map(|held| held.permit)
    }

    /// Takes out all permits that ended by `now_ns`.
    pub fn take_ended(&mut self, now_ns: u64) -> Vec<ProxyPermit> {
        let ended = self.held.extract_if(|_token, held| held.ends_ns <= now_ns);
        let ended: Vec<ProxyPermit> = ended.map(|(_token, held)| held.permit).collect();
        let many = u64::try_from(ended.len()).unwrap_or(u64::MAX);
        self.expired = self.expired.saturating_add(many);
        ended
    }

    /// Permits that were given before a time, monotonic ns.
    pub(super) fn given_before(&mut self, time_ns: u64) -> impl Iterator<Item = &mut ProxyPermit> {
        let held = self.held.values_mut().map(|held| &mut held.permit);
        held.filter(move |permit| permit.pass.entered_ns < time_ns)
    }

    /// Permits that ended by the clock so far.
    pub fn expired(&self) -> u64 {
        self.expired
    }

    /// Permits that were not given back yet: of a resource, or of all.
    pub fn outstanding(&self, of: Option<Slot>) -> Outstanding {
        let held = self.held.values().map(|held| &held.permit.pass);
        held.filter(|pass| of.is_none_or(|slot| pass.slot == slot))
            .map(Outstanding::one)
            .fold(Outstanding::default(), Outstanding::and)
    }

    /// Permits held.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use tidegate_abi::decision::Direction;

    use super::*;
    use crate::places::{Holder, PlaceBound, Places};

    const PASS: Pass = Pass::plain(Slot::OVERFLOW, 0, Direction::In);

    /// A place of user 7.
    fn place() -> HeldPlaces {
        let places = Places::new("permits", PlaceBound::parts(8, 1, 1));
        places.take(Holder { uid: 7, pid: 1 }).unwrap()
    }

    #[test]
    fn a_permit_is_given_back_once_and_by_its_user_alone() {
        let mut table = Permits::default();
        let token = draw().unwrap();
        table.hold(token, PASS.into(), place(), u64::MAX);
        let mut take = |token: &PermitToken, uid| table.take(token, uid).map(|permit| permit.pass);
        assert_eq!(take(&token, 8), None);
        assert_eq!(take(&[0; TOKEN], 7), None);
        assert_eq!(take(&token, 7), Some(PASS));
        assert_eq!(take(&token, 7), None);
    }

    #[test]
    fn permits_end_by_the_clock() {
        let mut table = Permits::default();
        for ends_ns in [10, 20] {
            table.hold(draw().unwrap(), PASS.into(), place(), ends_ns);
        }
        assert_eq!(table.take_ended(9).len(), 0);
        assert_eq!(table.take_ended(10).len(), 1);
        assert_eq!((table.len(), table.expired()), (1, 1));
    }
}
