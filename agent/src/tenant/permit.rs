//! Permits that the agent holds for callers over sockets, named by unguessable tokens.

use std::collections::HashMap;

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use tidegate_abi::message::TOKEN;
use tidegate_segment::gate::Pass;

/// Names a permit.
pub type Token = [u8; TOKEN];

/// Most permits in one table: of a connection, or of all HTTP clients together.
pub const PERMITS_MAX: usize = 65_536;

/// Why a permit could not be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HoldError {
    /// Too many are held.
    #[error("{PERMITS_MAX} permits are held, more are not; give some back with exit")]
    Full,
    /// No random number for the token.
    #[error("no random number for a token: {0}")]
    Random(Errno),
}

/// Random bytes that nobody can guess.
///
/// # Errors
/// The kernel's refusal; it does not come once the system is up.
pub fn random<const N: usize>() -> Result<[u8; N], Errno> {
    let mut bytes = [0; N];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes)
}

/// Permits by their tokens. It belongs to one connection, or is shared behind a lock.
#[derive(Debug, Default)]
pub struct Permits {
    held: HashMap<Token, Held>,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    pass: Pass,
    uid: u32,
    ends_ns: u64,
}

impl Permits {
    /// Draws the token of a permit that is about to be asked for.
    ///
    /// # Errors
    /// The table is full, or there is no random number.
    pub fn draw(&self) -> Result<Token, HoldError> {
        if self.held.len() >= PERMITS_MAX {
            return Err(HoldError::Full);
        }
        random().map_err(HoldError::Random)
    }

    /// Holds a permit for a user until a time, monotonic ns.
    pub fn hold(&mut self, token: Token, pass: Pass, uid: u32, ends_ns: u64) {
        self.held.insert(token, Held { pass, uid, ends_ns });
    }

    /// Takes out a permit of a user. Another user's permit stays, and does not show.
    pub fn take(&mut self, token: &Token, uid: u32) -> Option<Pass> {
        if self.held.get(token)?.uid != uid {
            return None;
        }
        self.held.remove(token).map(|held| held.pass)
    }

    /// Takes out all permits that ended by `now_ns`.
    pub fn take_ended(&mut self, now_ns: u64) -> Vec<Pass> {
        let ended = self.held.extract_if(|_token, held| held.ends_ns <= now_ns);
        ended.map(|(_token, held)| held.pass).collect()
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
    use tidegate_segment::board::Slot;

    use super::*;

    const PASS: Pass = Pass::plain(Slot::OVERFLOW, 0, Direction::In);

    #[test]
    fn a_permit_is_given_back_once_and_by_its_user_alone() {
        let mut table = Permits::default();
        let token = table.draw().unwrap();
        table.hold(token, PASS, 7, u64::MAX);
        assert_eq!(table.take(&token, 8), None);
        assert_eq!(table.take(&[0; TOKEN], 7), None);
        assert_eq!(table.take(&token, 7), Some(PASS));
        assert_eq!(table.take(&token, 7), None);
    }

    #[test]
    fn permits_end_by_the_clock() {
        let mut table = Permits::default();
        for ends_ns in [10, 20] {
            let token = table.draw().unwrap();
            table.hold(token, PASS, 7, ends_ns);
        }
        assert_eq!(table.take_ended(9), []);
        assert_eq!(table.take_ended(10), [PASS]);
        assert_eq!(table.len(), 1);
    }
}
