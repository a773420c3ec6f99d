//! Room for connections: a bound for all, and one for each user, so that no user keeps the others out.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// No user but root has more than one place in this many.
const SHARE_OF_USER: usize = 2;

/// The places of a socket.
#[derive(Debug)]
pub struct Places {
    most: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_user: HashMap<u32, usize>,
}

/// A place that a connection holds until it is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    uid: u32,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoPlace {
    /// All are taken.
    #[error("{0} connections are open, more are not served; close some, or connect later")]
    All(usize),
    /// The user has its share.
    #[error("user {uid} has {held} connections open, more are not served; close some")]
    OfUser {
        /// The user.
        uid: u32,
        /// Its connections.
        held: usize,
    },
}

impl Places {
    /// So many places.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            taken: Mutex::default(),
        })
    }

    /// Takes a place for a user.
    ///
    /// # Errors
    /// There is none left, or none for this user.
    pub fn take(self: &Arc<Self>, uid: u32) -> Result<Place, NoPlace> {
        let mut taken = self.taken.lock();
        if taken.all >= self.most {
            return Err(NoPlace::All(taken.all));
        }
        let held = taken.by_user.get(&uid).copied().unwrap_or(0);
        if uid != 0 && held >= self.most.div_ceil(SHARE_OF_USER) {
            return Err(NoPlace::OfUser { uid, held });
        }
        taken.all = taken.all.saturating_add(1);
        taken.by_user.insert(uid, held.saturating_add(1));
        Ok(Place {
            places: Arc::clone(self),
            uid,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        taken.all = taken.all.saturating_sub(1);
        if let Some(held) = taken.by_user.get_mut(&self.uid) {
            *held = held.saturating_sub(1);
            if *held == 0 {
                taken.by_user.remove(&self.uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_half_of_the_places_and_root_what_is_left() {
        let places = Places::new(4);
        let mut held = vec![places.take(7).unwrap(), places.take(7).unwrap()];
        assert_eq!(
            places.take(7).unwrap_err().to_string(),
            "user 7 has 2 connections open, more are not served; close some"
        );
        held.push(places.take(0).unwrap());
        held.push(places.take(0).unwrap());
        assert_eq!(
            places.take(8).unwrap_err().to_string(),
            "4 connections are open, more are not served; close some, or connect later"
        );
        held.remove(0);
        let _other = places.take(8).unwrap();
        drop(held);
        let _again = places.take(7).unwrap();
        assert_eq!(places.taken.lock().by_user.len(), 2);
    }
}
