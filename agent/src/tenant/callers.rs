//! Who asks at a scope that has so many requests a second to give, and what each may take of them.
//!
//! Callers without a permit of their own are not held against anything in flight, so one that asks without end would
//! take all there is. Here each user has an equal part, and within it each process: whoever asks for less than its part
//! gets what it asks for, and those who ask for more divide the rest (max-min fairness). Parts are reckoned anew ten times
//! a second by what was asked for lately.

use std::collections::HashMap;
use std::hash::Hash;

use super::scope_resolver::ScopeId;

/// How often parts are reckoned anew, ns.
const WINDOW_NS: u64 = 100_000_000;

/// Windows in a second, times 1000 because what a scope can take is told in thousandths.
const MILLI_WINDOWS: f64 = 10_000.0;

/// What is remembered of a caller's questions from one window to the next.
const MEMORY: f64 = 0.8;

/// A caller that has asked for less than this in a window, by what is remembered, is gone.
const GONE: f64 = 0.05;

/// Most users, and most processes of one user, that are told apart. Others count as one.
const EACH_MAX: usize = 64;

/// A process at a door that has no seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// The scope that it belongs to.
    pub scope: ScopeId,
    /// Its service in that scope: the hash of its process's name; 0 where that is not known.
    pub service: u64,
    /// Its user.
    pub uid: u32,
    /// Its process; where that cannot be seen, all of the user's are one.
    pub pid: u32,
}

impl Caller {
    /// One of whom nothing is known but that it is on this host.
    pub const HOST: Self = Self::in_scope(ScopeId::HOST);

    /// One of a scope, of whom nothing else is known.
    pub const fn in_scope(scope: ScopeId) -> Self {
        Self {
            scope,
            service: 0,
            uid: 0,
            pid: 0,
        }
    }
}

/// What one asks for and may take.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    /// Questions in this window.
    asked: u32,
    /// Questions a window, by what is remembered.
    demand: f64,
    /// What it may still take.
    credit: f64,
}

impl Part {
    const fn new(credit: f64) -> Self {
        Self {
            asked: 0,
            demand: 0.0,
            credit,
        }
    }

    fn ask(&mut self) {
        self.asked = self.asked.saturating_add(1);
    }

    fn end_window(&mut self) {
        self.demand = (self.demand * MEMORY).max(f64::from(self.asked));
        self.asked = 0;
    }

    /// A part is kept for the next window, as much as one window gives, or one request.
    fn begin_window(&mut self, level: f64) {
        self.credit = (self.credit + level).min(level.max(1.0));
    }

    fn can_take(&self) -> bool {
        self.credit >= 1.0
    }

    fn take(&mut self) {
        self.credit -= 1.0;
    }
}

#[derive(Debug, Default)]
struct User {
    part: Part,
    /// What each of its processes may take in a window.
    level: f64,
    processes: HashMap<u32, Part>,
}

/// The callers of one scope.
#[derive(Debug, Default)]
pub struct Callers {
    window: u64,
    /// What each user may take in a window.
    level: f64,
    users: HashMap<u32, User>,
}

impl Callers {
    /// Whether a caller may take one of so many requests a second, in thousandths; `None` while it is the only one, who may
    /// have all there is.
    pub fn admit(&mut self, caller: Caller, now_ns: u64, limit_milli: u64) -> Option<bool> {
        self.roll(now_ns / WINDOW_NS, per_window(limit_milli));
        let newcomer = self.level / count(self.users.len().saturating_add(1));
        let is_alone = self.users.len() <= 1;
        let user = entry(&mut self.users, caller.uid, || User {
            part: Part::new(newcomer.max(1.0)),
            ..User::default()
        });
        user.part.ask();
        let of_user = user.level.max(newcomer);
        let newcomer = of_user / count(user.processes.len().saturating_add(1));
        let process = entry(&mut user.processes, caller.pid, || {
            Part::new(newcomer.max(1.0))
        });
        process.ask();
        let (can_take, process_can_take) = (user.part.can_take(), process.can_take());
        let shares_user = user.processes.len() > 1;
        let shares_scope = !(is_alone && self.users.len() <= 1);
        if !shares_user && !shares_scope {
            return None;
        }
        let may =
            limit_milli > 0 && (can_take || !shares_scope) && (process_can_take || !shares_user);
        if may {
            self.take(caller);
        }
        Some(may)
    }

    fn take(&mut self, caller: Caller) {
        if let Some(user) = found(&mut self.users, caller.uid) {
            user.part.take();
            if let Some(process) = found(&mut user.processes, caller.pid) {
                process.take();
            }
        }
    }

    /// Goes on to a window, and reckons what each may take in it.
    fn roll(&mut self, window: u64, budget: f64) {
        if window == self.window {
            return;
        }
        self.window = window;
        for user in self.users.values_mut() {
            user.part.end_window();
            user.processes.values_mut().for_each(Part::end_window);
            user.processes
                .retain(|_pid, process| process.demand >= GONE);
        }
        self.users.retain(|_uid, user| user.part.demand >= GONE);
        self.level = level(budget, self.users.values().map(|user| user.part.demand));
        for user in self.users.values_mut() {
            user.part.begin_window(self.level);
            let of_user = self.level.min(budget);
            user.level = level(of_user, user.processes.values().map(|part| part.demand));
            let of_process = user.level;
            let processes = user.processes.values_mut();
            processes.for_each(|process| process.begin_window(of_process));
        }
    }
}

/// The entry of a key; once there are many, those that come share one.
fn entry<V>(map: &mut HashMap<u32, V>, key: u32, new: impl FnOnce() -> V) -> &mut V {
    let key = if map.contains_key(&key) || map.len() < EACH_MAX {
        key
    } else {
        u32::MAX
    };
    map.entry(key).or_insert_with(new)
}

fn found<K: Hash + Eq + From<u32>, V>(map: &mut HashMap<K, V>, key: u32) -> Option<&mut V> {
    let key = if map.contains_key(&K::from(key)) {
        key
    } else {
        u32::MAX
    };
    map.get_mut(&K::from(key))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "limits are far below 2^53, and more of them are no limit"
)]
fn per_window(limit_milli: u64) -> f64 {
    limit_milli as f64 / MILLI_WINDOWS
}

fn count(many: usize) -> f64 {
    f64::from(u32::try_from(many).unwrap_or(u32::MAX)).max(1.0)
}

/// What each may have at most, so that all together have the budget: those who want less leave the rest to the others.
pub(super) fn level(budget: f64, demands: impl Iterator<Item = f64>) -> f64 {
    let mut demands: Vec<f64> = demands.collect();
    demands.sort_by(f64::total_cmp);
    let (mut left, mut others) = (budget, demands.len());
    for demand in demands {
        let equal = left / count(others);
        if demand > equal {
            return equal;
        }
        left -= demand;
        others = others.saturating_sub(1);
    }
    // Nobody is held back.
    budget
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    /// What each of some callers got in the last second of three, asking so often a second in turns.
    fn got(limit: u64, askers: &[(Caller, u32)]) -> Vec<u32> {
        let mut callers = Callers::default();
        let mut got = vec![0; askers.len()];
        for step in 0_u64..30_000 {
            let now_ns = step * MS / 10;
            for ((caller, a_second), got) in askers.iter().zip(&mut got) {
                // Spread evenly: so many of the 10,000 steps of a second.
                let due = |step: u64| step * u64::from(*a_second) / 10_000;
                for _question in due(step)..due(step + 1) {
                    let may = callers.admit(*caller, now_ns, limit * 1000).unwrap_or(true);
                    *got += u32::from(may && step >= 20_000);
                }
            }
        }
        got
    }

    const fn caller(uid: u32, pid: u32) -> Caller {
        Caller {
            uid,
            pid,
            ..Caller::HOST
        }
    }

    #[test]
    fn field_b15_a_flood_leaves_another_user_what_it_asks_for() {
        let got = got(139, &[(caller(1, 1), 100_000), (caller(2, 2), 20)]);
        let (flood, other) = (got[0], got[1]);
        assert!(other >= 18, "{other} of 20");
        assert!((100..=139).contains(&flood), "{flood}");
    }

    #[test]
    fn field_b15_a_flood_leaves_another_process_of_its_user_what_it_asks_for() {
        let got = got(
            50,
            &[
                (caller(0, 1), 100_000),
                (caller(0, 2), 10),
                (caller(0, 3), 10),
            ],
        );
        assert!(got[1] >= 9 && got[2] >= 9, "{got:?}");
        assert!((25..=40).contains(&got[0]), "{got:?}");
    }

    #[test]
    fn field_b15_many_processes_of_a_user_have_the_part_of_one_user() {
        let mut askers: Vec<(Caller, u32)> = (1..=200).map(|pid| (caller(1, pid), 1000)).collect();
        askers.push((caller(2, 1), 40));
        let got = got(60, &askers);
        assert!(got[200] >= 28, "{} of 30", got[200]);
    }

    #[test]
    fn who_is_alone_is_not_held_back_here_and_nothing_is_given_of_nothing() {
        let mut callers = Callers::default();
        for step in 0..1000 {
            assert_eq!(callers.admit(caller(1, 1), step * MS, 1000), None);
        }
        assert_eq!(callers.admit(caller(2, 1), 1000 * MS, 0), Some(false));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// All together get no more than there is, within the rounding of whole requests; who asks for less than the
        /// equal part is refused next to nothing.
        #[test]
        fn field_b15_no_more_is_given_than_there_is(
            limit in 20_u64..400,
            rates in prop::collection::vec(1_u32..3000, 2..6),
        ) {
            let askers: Vec<(Caller, u32)> =
                (1..).zip(&rates).map(|(uid, rate)| (caller(uid, uid), *rate)).collect();
            let got = got(limit, &askers);
            let all: u32 = got.iter().sum();
            let most = u32::try_from(limit).unwrap();
            prop_assert!(all <= most + most / 10 + 10, "{got:?} of {limit}");
            let equal = most / u32::try_from(rates.len()).unwrap();
            for (got, rate) in got.iter().zip(&rates) {
                if *rate <= equal {
                    prop_assert!(got + 2 + rate / 10 >= *rate, "{got} of {rate}, equal part {equal}");
                }
            }
        }
    }
}
