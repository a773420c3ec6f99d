//! Places: what the agent has a bounded number of, with a share for each user and each process.
//!
//! So nobody keeps the others out. A connection takes one, so does a permit; a body takes one for each byte.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_segment::sync::{Ordering, Word};

/// Who takes places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Holder {
    /// Its user.
    pub uid: u32,
    /// Its process; 0 where it cannot be seen, and then only its user counts.
    pub pid: u32,
}

/// How many places there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlaceBound {
    /// For all together.
    pub all: usize,
    /// For one user other than root while no other holds any; see `PlaceBound::of_user`.
    pub user: usize,
    /// For one process, whoever runs it.
    pub process: usize,
}

impl PlaceBound {
    /// So many for all, a part of them for a user and a part for a process; at least one for each.
    pub const fn parts(all: usize, user_part: usize, process_part: usize) -> Self {
        Self {
            all,
            user: all.div_ceil(user_part),
            process: all.div_ceil(process_part),
        }
    }

    /// Most places of a user other than root that holds so many already, with so many left. What it takes leaves as
    /// much to others as it then has: alone it has half of all, who comes next has half of the rest, and whoever comes
    /// later finds some. Where one user may have all, it has no share.
    fn of_user(self, held: usize, left: usize) -> usize {
        if self.user >= self.all {
            return self.all;
        }
        self.user.min((held.saturating_add(left) / 2).max(1))
    }
}

/// What has no more to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// All are taken.
    All,
    /// The user has its share.
    User,
    /// The process has its share.
    Process,
}

impl Full {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::All, Self::User, Self::Process];

    /// What it is called in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::User => "user",
            Self::Process => "process",
        }
    }
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct NoPlace {
    what: &'static str,
    full: Full,
    most: usize,
    holder: Holder,
}

impl NoPlace {
    /// That all of some things are taken, where nobody has a share.
    pub const fn all(what: &'static str, most: usize) -> Self {
        let holder = Holder { uid: 0, pid: 0 };
        Self {
            what,
            full: Full::All,
            most,
            holder,
        }
    }

    fn text(&self) -> String {
        let Self { what, most, .. } = self;
        let Holder { uid, pid } = self.holder;
        match self.full {
            Full::All => format!("{what}: all {most} are taken; try again later"),
            Full::User => format!(
                "{what}: user {uid} may have {most} at a time and has no more left; give some back, or try again later"
            ),
            Full::Process => format!(
                "{what}: process {pid} may have {most} at a time and has no more left; give some back, or try again later"
            ),
        }
    }
}

/// The places of one kind.
#[derive(Debug)]
pub struct Places {
    what: &'static str,
    bound: PlaceBound,
    taken: Mutex<Taken>,
    turned_away: [Word; 3],
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_user: HashMap<u32, usize>,
    by_process: HashMap<Holder, usize>,
}

/// Places that are held until this is dropped.
#[derive(Debug)]
pub struct HeldPlaces {
    places: Arc<Places>,
    holder: Holder,
    count: usize,
}

impl Places {
    /// So many places of this name.
    pub fn new(what: &'static str, bound: PlaceBound) -> Arc<Self> {
        Arc::new(Self {
            what,
            bound,
            taken: Mutex::default(),
            turned_away: [const { Word::new(0) }; 3],
        })
    }

    /// What they are called.
    pub const fn what(&self) -> &'static str {
        self.what
    }

    /// Takes one place.
    ///
    /// # Errors
    /// There is none left, or none for this user or process.
    pub fn take(self: &Arc<Self>, holder: Holder) -> Result<HeldPlaces, NoPlace> {
        self.take_many(holder, 1)
    }

    /// Takes so many places, or none.
    ///
    /// # Errors
    /// There are not so many left, or not for this user or process.
    pub fn take_many(
        self: &Arc<Self>,
        holder: Holder,
        count: usize,
    ) -> Result<HeldPlaces, NoPlace> {
        let mut taken = self.taken.lock();
        let full = taken.full_for(self.bound, holder, count);
        if let Some((full, most)) = full {
            drop(taken);
            self.count(full);
            let what = self.what;
            return Err(NoPlace {
                what,
                full,
                most,
                holder,
            });
        }
        taken.add(holder, count);
        drop(taken);
        Ok(HeldPlaces {
            places: Arc::clone(self),
            holder,
            count,
        })
    }

    /// Takes so many places, or as many as one process has at most, so that one thing of any size finds room.
    ///
    /// # Errors
    /// There are not so many left, or not for this user or process.
    pub fn take_up_to(
        self: &Arc<Self>,
        holder: Holder,
        count: usize,
    ) -> Result<HeldPlaces, NoPlace> {
        let most = self.bound.process.min(self.bound.user);
        self.take_many(holder, count.min(most))
    }

    /// Who was turned away, and how often.
    pub fn turned_away(&self) -> impl Iterator<Item = (Full, u64)> {
        // Relaxed: numbers for people.
        let counts = self.turned_away.iter();
        Full::ALL
            .into_iter()
            .zip(counts.map(|count| count.load(Ordering::Relaxed)))
    }

    fn count(&self, full: Full) {
        let [all, user, process] = &self.turned_away;
        let word = match full {
            Full::All => all,
            Full::User => user,
            Full::Process => process,
        };
        word.count(1);
    }
}

impl Taken {
    /// What has not so many more for this holder, with how many it has at most.
    fn full_for(&self, bound: PlaceBound, holder: Holder, count: usize) -> Option<(Full, usize)> {
        let lacks = |held: usize, most| held.saturating_add(count) > most;
        let of_user = self.by_user.get(&holder.uid).copied().unwrap_or(0);
        let of_process = self.by_process.get(&holder).copied().unwrap_or(0);
        let share = bound.of_user(of_user, bound.all.saturating_sub(self.all));
        if lacks(self.all, bound.all) {
            Some((Full::All, bound.all))
        } else if holder.uid != 0 && lacks(of_user, share) {
            Some((Full::User, share))
        } else if holder.pid != 0 && lacks(of_process, bound.process) {
            Some((Full::Process, bound.process))
        } else {
            None
        }
    }

    fn add(&mut self, holder: Holder, count: usize) {
        self.all = self.all.saturating_add(count);
        let of_user = self.by_user.entry(holder.uid).or_default();
        *of_user = of_user.saturating_add(count);
        let of_process = self.by_process.entry(holder).or_default();
        *of_process = of_process.saturating_add(count);
    }

    fn remove(&mut self, holder: Holder, count: usize) {
        self.all = self.all.saturating_sub(count);
        lower(&mut self.by_user, &holder.uid, count);
        lower(&mut self.by_process, &holder, count);
    }
}

/// Takes from a number, and the number out when nothing is left of it.
fn lower<K: Hash + Eq>(held: &mut HashMap<K, usize>, key: &K, count: usize) {
    if let Some(own) = held.get_mut(key) {
        *own = own.saturating_sub(count);
        if *own == 0 {
            held.remove(key);
        }
    }
}

impl HeldPlaces {
    /// Who holds it.
    pub const fn holder(&self) -> Holder {
        self.holder
    }
}

impl Drop for HeldPlaces {
    fn drop(&mut self) {
        self.places.taken.lock().remove(self.holder, self.count);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn holder(uid: u32, pid: u32) -> Holder {
        Holder { uid, pid }
    }

    fn places(all: usize) -> Arc<Places> {
        Places::new("connections", PlaceBound::parts(all, 2, 4))
    }

    #[test]
    fn who_has_its_share_is_told_so_and_root_has_what_is_left() {
        let places = places(8);
        let mut held = vec![
            places.take(holder(7, 1)).unwrap(),
            places.take(holder(7, 1)).unwrap(),
        ];
        assert_eq!(
            places.take(holder(7, 1)).unwrap_err().to_string(),
            "connections: process 1 may have 2 at a time and has no more left; give some back, or try again later"
        );
        held.extend([2, 3].map(|pid| places.take(holder(7, pid)).unwrap()));
        assert_eq!(
            places.take(holder(7, 4)).unwrap_err().to_string(),
            "connections: user 7 may have 4 at a time and has no more left; give some back, or try again later"
        );
        held.extend([5, 6, 7, 8].map(|pid| places.take(holder(0, pid)).unwrap()));
        assert_eq!(
            places.take(holder(8, 9)).unwrap_err().to_string(),
            "connections: all 8 are taken; try again later"
        );
        let counts: Vec<u64> = places.turned_away().map(|(_full, count)| count).collect();
        assert_eq!(counts, [1, 1, 1]);
        held.remove(0);
        let _other = places.take(holder(8, 9)).unwrap();
        drop(held);
        let _again = places.take(holder(7, 1)).unwrap();
        assert_eq!(places.taken.lock().by_user.len(), 2);
    }

    #[test]
    fn an_unseen_process_has_the_share_of_its_user() {
        let places = places(8);
        let held = [(); 4].map(|()| places.take(holder(7, 0)).unwrap());
        places.take(holder(7, 0)).unwrap_err();
        drop(held);
    }

    #[test]
    fn field_b3_however_many_users_take_all_they_get_one_more_finds_a_place() {
        let places = places(1024);
        let mut held = Vec::new();
        let takes = |held: &mut Vec<HeldPlaces>, uid| {
            let before = held.len();
            let own = (1..).map_while(|pid| places.take(holder(uid, pid)).ok());
            held.extend(own);
            held.len() - before
        };
        for (uid, gets) in [(1, 512), (2, 256), (3, 128), (4, 64), (5, 32)] {
            assert_eq!(takes(&mut held, uid), gets, "user {uid}");
        }
        assert_eq!(
            places.take(holder(2, 999)).unwrap_err().to_string(),
            "connections: user 2 may have 144 at a time and has no more left; give some back, or try again later"
        );
        held.truncate(512);
        assert_eq!(
            takes(&mut held, 6),
            256,
            "what was given back is there again"
        );
    }

    proptest! {
        /// Whatever is taken and given back: no bound is passed, nothing is lost, and as long as no other user took
        /// anything a user finds a place.
        #[test]
        fn field_b3_no_order_of_taking_passes_a_bound(
            all in 4_usize..40,
            steps in prop::collection::vec((0_u32..3, 0_u32..4, 1_usize..9, any::<bool>()), 1..80),
        ) {
            let places = places(all);
            let bound = PlaceBound::parts(all, 2, 4);
            let mut held: Vec<HeldPlaces> = Vec::new();
            for (uid, pid, count, gives_back) in steps {
                if gives_back && !held.is_empty() {
                    held.swap_remove(count % held.len());
                } else if let Ok(place) = places.take_many(holder(uid, pid), count) {
                    held.push(place);
                }
                let sum = |fits: &dyn Fn(Holder) -> bool| held.iter()
                    .filter(|place| fits(place.holder)).map(|place| place.count).sum::<usize>();
                prop_assert!(sum(&|_all| true) <= bound.all);
                for uid in 1..3 {
                    prop_assert!(sum(&|held| held.uid == uid) <= bound.user);
                }
                for pid in 1..4 {
                    prop_assert!(sum(&|held| held == holder(uid, pid)) <= bound.process);
                }
                prop_assert_eq!(sum(&|_all| true), places.taken.lock().all);
            }
            held.clear();
            let taken = places.taken.lock();
            prop_assert!(taken.all == 0 && taken.by_user.is_empty() && taken.by_process.is_empty());
        }
    }
}
