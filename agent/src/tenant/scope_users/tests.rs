use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;

/// Users of one scope of a limit: what the gate and the sweep do, in numbers.
#[derive(Default)]
struct Scope {
    crowd: Crowd,
    limit: u32,
}

impl Scope {
    fn of(limit: u32) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    fn counted(&self) -> u32 {
        let users = self.crowd.users.values();
        users.map(|user| user.held - user.aside).sum()
    }

    /// A user asks for a permit: its share is looked at, then the limit.
    fn ask(&mut self, uid: u32, now_ns: u64) -> bool {
        if self.crowd.is_full(uid, self.limit, now_ns).is_some() {
            return false;
        }
        let has_room = self.counted() < self.limit;
        if has_room {
            self.crowd.take(uid, now_ns);
        } else {
            self.crowd.ask(uid, now_ns);
        }
        has_room
    }

    fn ask_for(&mut self, uid: u32, many: u32, now_ns: u64) -> u32 {
        (0..many).map(|_one| u32::from(self.ask(uid, now_ns))).sum()
    }

    /// All permits are old.
    fn set_aside(&mut self, now_ns: u64) {
        let surplus: Vec<_> = self.crowd.surplus(self.limit, now_ns).collect();
        for (uid, many) in surplus {
            self.crowd.users.get_mut(&uid).unwrap().aside += many;
        }
    }

    fn held(&self, uid: u32) -> u32 {
        self.crowd.users.get(&uid).map_or(0, |user| user.held)
    }
}

#[test]
fn field_b3_a_user_that_is_alone_may_hold_all_of_a_limit_again_and_again() {
    let mut scope = Scope::of(64);
    for second in 0..20 {
        assert_eq!(scope.ask_for(1, 100, second * SECOND), 64);
        scope.set_aside(second * SECOND);
        assert_eq!(scope.counted(), 64, "nobody else asks");
        (0..64).for_each(|_one| scope.crowd.give_back(1, false));
    }
}

#[test]
fn field_b3_who_never_gives_back_leaves_another_user_its_part_and_gets_no_more() {
    let mut scope = Scope::of(64);
    assert_eq!(scope.ask_for(1, 1000, 0), 64);
    assert!(!scope.ask(2, SECOND));
    scope.set_aside(SECOND);
    assert_eq!(
        scope.ask_for(1, 1000, SECOND),
        0,
        "it holds 64 all the same"
    );
    assert_eq!(scope.ask_for(2, 1000, SECOND), 32);
    assert_eq!(scope.counted(), 8 + 32);
    assert_eq!(scope.ask_for(1, 1000, SECOND), 0);
    assert_eq!(scope.ask_for(3, 1000, SECOND), 21);
}

#[test]
fn field_b3_who_gives_each_back_in_time_and_asks_at_once_leaves_another_user_a_place() {
    let mut scope = Scope::of(64);
    scope.ask_for(1, 1000, 0);
    for request in 1..=20_u32 {
        let now_ns = u64::from(request) * SECOND / 2;
        scope.ask(2, now_ns);
        scope.crowd.give_back(1, false);
        scope.ask_for(1, 10, now_ns);
    }
    assert!(scope.held(2) >= 18, "{}", scope.held(2));
}

#[test]
fn field_b3_a_user_that_wants_little_leaves_the_rest_to_the_others() {
    let mut scope = Scope::of(32);
    assert_eq!(scope.ask_for(1, 100, 0), 32);
    assert!(!scope.ask(2, 0));
    // Requests of the first one end, and it asks for all that there is.
    (0..8).for_each(|_one| scope.crowd.give_back(1, false));
    assert_eq!(scope.ask_for(2, 2, SECOND), 2);
    scope.ask_for(1, 100, SECOND);
    assert_eq!((scope.held(1), scope.held(2)), (29, 2));
    // When the second one was not refused for a while, nothing is kept for it.
    let later = 12 * SECOND;
    scope.ask_for(1, 100, later);
    assert_eq!((scope.held(1), scope.held(2)), (30, 2));
}

#[test]
fn a_limit_of_one_goes_to_whoever_comes_when_it_is_free() {
    let mut scope = Scope::of(1);
    assert!(scope.ask(1, 0));
    assert!(!scope.ask(2, 0));
    scope.set_aside(SECOND);
    assert!(!scope.ask(1, SECOND));
    assert!(scope.ask(2, SECOND));
}

#[test]
fn a_permit_counts_in_the_host_and_in_its_scope_until_it_is_dropped_and_nobody_is_remembered_for_good()
 {
    let users = Arc::new(ScopeUsers::default());
    let group = ScopeId::first_at(3);
    let [in_group, in_host] = [group, ScopeId::HOST].map(|scope| UserAt { scope, uid: 7 });
    let mut counted = users.count(in_group, 0);
    assert_eq!(counted.places().collect::<Vec<_>>(), [in_host, in_group]);
    counted.set_aside();
    counted.set_aside();
    let aside = |scope| users.0.lock()[&scope].users[&7].aside;
    assert_eq!([group, ScopeId::HOST].map(aside), [1, 1]);
    drop(counted);
    users.ask(UserAt { uid: 8, ..in_group }, SECOND);
    users.surplus(|_scope| Some(10), 2 * SECOND);
    assert_eq!(users.0.lock().len(), 1);
    users.surplus(|_scope| Some(10), 20 * SECOND);
    assert!(users.0.lock().is_empty());
}

proptest! {
    /// Whoever holds what, and whatever its own permits do: a user that holds nothing is let in once the others were told
    /// apart, where each user finds a place at all.
    #[test]
    fn field_b3_whoever_holds_nothing_gets_in(
        limit in 8_u32..200,
        others in prop::collection::vec(1_u32..300, 1..7),
    ) {
        let mut scope = Scope::of(limit);
        for (uid, wanted) in (1..).zip(&others) {
            scope.ask_for(uid, *wanted, 0);
            scope.set_aside(0);
            scope.ask_for(uid, *wanted, 0);
        }
        scope.ask(100, SECOND);
        scope.set_aside(SECOND);
        for (uid, wanted) in (1..).zip(&others) {
            scope.ask_for(uid, *wanted, SECOND);
        }
        prop_assert!(scope.held(100) > 0 || scope.ask(100, SECOND));
        prop_assert!(scope.counted() <= limit);
    }
}
