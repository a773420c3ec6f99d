//! What users hold of a scope's limit in flight by permits over sockets, and what each may hold while another one asks.
//!
//! A user that is alone may hold all of a limit. Once another one is refused because the limit is reached, and for ten
//! seconds after, a user gets no more permits than the others leave it: to each of them is left what it has held lately
//! and a place more, and who holds more than others divides with them what is left (max-min fairness). So whoever comes
//! gets in as soon as one permit is given back.
//!
//! Who never gives back holds up nobody either: permits that were held for several times as long as a request usually
//! takes are *set aside*, but for the user's equal part of a quarter of the limit, up to which a scope in overload admits
//! whatever the cut-off is. They no longer count in the scope, so that others find the place; they still count for their
//! user, and hold what rules gave them until they end.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_limits::number::whole_u32;

use super::callers::level;
use super::scope_resolver::ScopeId;

/// How long a user that was refused counts as one that asks, ns.
const ASKS_NS: u64 = 10_000_000_000;

/// Most users of a scope that are remembered where some hold nothing.
const REMEMBERED_MAX: usize = 1024;

/// What is held for long counts for one in so many of a limit at most. A scope in overload admits up to that whatever its
/// cut-off is; where more never ends, nobody would be admitted, and the cut-off would never rise.
const LONG_PART: u32 = 4;

/// A user in a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UserAt {
    /// The scope.
    pub scope: ScopeId,
    /// The user.
    pub uid: u32,
}

/// The users of all scopes that hold permits over sockets, or ask for some.
#[derive(Debug, Default)]
pub struct ScopeUsers(Mutex<HashMap<ScopeId, Crowd>>);

/// A permit that counts for its user. Dropped, it was given back.
#[derive(Debug)]
pub struct CountedPermit {
    users: Arc<ScopeUsers>,
    /// Its scope; the host where it counts there alone.
    at: UserAt,
    is_aside: bool,
}

/// What a user has of a limit where it has all that it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Permits that it holds.
    pub held: u32,
    /// Most that it may hold.
    pub most: u32,
}

impl ScopeUsers {
    /// What a user may have of a scope's limit, where another one asks and it has that.
    pub fn is_full(&self, at: UserAt, limit: u32, now_ns: u64) -> Option<Share> {
        let scopes = self.0.lock();
        scopes.get(&at.scope)?.is_full(at.uid, limit, now_ns)
    }

    /// A user was refused because a scope's limit is reached.
    pub fn ask(&self, at: UserAt, now_ns: u64) {
        let mut scopes = self.0.lock();
        scopes.entry(at.scope).or_default().ask(at.uid, now_ns);
    }

    /// A user was given a permit that counts in the host, and in the scope if that is another one.
    pub fn count(self: &Arc<Self>, at: UserAt, now_ns: u64) -> CountedPermit {
        let counted = CountedPermit {
            users: Arc::clone(self),
            at,
            is_aside: false,
        };
        let mut scopes = self.0.lock();
        for scope in counted.scopes() {
            scopes.entry(scope).or_default().take(at.uid, now_ns);
        }
        drop(scopes);
        counted
    }

    /// How many permits of each user are to be set aside, if they are held for long. `limit` = that of a scope. To be
    /// called each second or so: users that are gone are forgotten with it.
    pub fn surplus(
        &self,
        limit: impl Fn(ScopeId) -> Option<u32>,
        now_ns: u64,
    ) -> HashMap<UserAt, u32> {
        let mut scopes = self.0.lock();
        scopes.retain(|_scope, crowd| crowd.keep_who_is_there(now_ns));
        let asked = scopes.iter().filter(|(_, crowd)| crowd.asks(now_ns));
        let limited = asked.filter_map(|(scope, crowd)| Some((*scope, crowd, limit(*scope)?)));
        limited
            .flat_map(|(scope, crowd, limit)| {
                let surplus = crowd.surplus(limit, now_ns);
                surplus.map(move |(uid, many)| (UserAt { scope, uid }, many))
            })
            .collect()
    }
}

impl CountedPermit {
    /// Where it counts, once for each.
    pub fn places(&self) -> impl Iterator<Item = UserAt> {
        let uid = self.at.uid;
        self.scopes().map(move |scope| UserAt { scope, uid })
    }

    /// Whether it counts in its scopes no more.
    pub const fn is_aside(&self) -> bool {
        self.is_aside
    }

    /// It counts in its scopes no more.
    pub fn set_aside(&mut self) {
        if std::mem::replace(&mut self.is_aside, true) {
            return;
        }
        let mut scopes = self.users.0.lock();
        for scope in self.scopes() {
            let crowd = scopes.get_mut(&scope);
            if let Some(user) = crowd.and_then(|crowd| crowd.users.get_mut(&self.at.uid)) {
                user.aside = user.aside.saturating_add(1);
            }
        }
    }

    fn scopes(&self) -> impl Iterator<Item = ScopeId> + use<> {
        let own = Some(self.at.scope).filter(|own| *own != ScopeId::HOST);
        std::iter::once(ScopeId::HOST).chain(own)
    }
}

impl Drop for CountedPermit {
    fn drop(&mut self) {
        let mut scopes = self.users.0.lock();
        for scope in self.scopes() {
            if let Some(crowd) = scopes.get_mut(&scope) {
                crowd.give_back(self.at.uid, self.is_aside);
            }
        }
    }
}

/// The users of one scope.
#[derive(Debug, Default)]
struct Crowd {
    users: HashMap<u32, User>,
    /// When one of them was refused last, monotonic ns.
    asked_ns: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct User {
    /// Permits that it holds.
    held: u32,
    /// Those of them that were set aside.
    aside: u32,
    /// Most that it held lately, and when that was, monotonic ns.
    peak: (u32, u64),
    /// When it was refused last, monotonic ns.
    asked_ns: Option<u64>,
}

impl User {
    fn asks(&self, now_ns: u64) -> bool {
        is_recent(self.asked_ns, now_ns)
    }

    fn is_there(&self, now_ns: u64) -> bool {
        self.held > 0 || self.asks(now_ns)
    }

    /// What others leave to it where it is not more than they have.
    fn wants(&self, now_ns: u64) -> u32 {
        let (peak, at_ns) = self.peak;
        let lately = if is_recent(Some(at_ns), now_ns) {
            peak.max(self.held)
        } else {
            self.held
        };
        lately.saturating_add(u32::from(self.asks(now_ns)))
    }

    fn take(&mut self, now_ns: u64) {
        self.held = self.held.saturating_add(1);
        let (peak, at_ns) = self.peak;
        if self.held >= peak || !is_recent(Some(at_ns), now_ns) {
            self.peak = (self.held, now_ns);
        }
    }
}

impl Crowd {
    fn asks(&self, now_ns: u64) -> bool {
        is_recent(self.asked_ns, now_ns)
    }

    fn keep_who_is_there(&mut self, now_ns: u64) -> bool {
        self.users.retain(|_uid, user| user.is_there(now_ns));
        !self.users.is_empty()
    }

    fn ask(&mut self, uid: u32, now_ns: u64) {
        self.asked_ns = Some(now_ns);
        if self.users.len() < REMEMBERED_MAX || self.users.contains_key(&uid) {
            self.users.entry(uid).or_default().asked_ns = Some(now_ns);
        }
    }

    fn take(&mut self, uid: u32, now_ns: u64) {
        self.users.entry(uid).or_default().take(now_ns);
    }

    fn give_back(&mut self, uid: u32, was_aside: bool) {
        let Some(user) = self.users.get_mut(&uid) else {
            return;
        };
        user.held = user.held.saturating_sub(1);
        user.aside = user.aside.saturating_sub(u32::from(was_aside));
    }

    fn is_full(&self, uid: u32, limit: u32, now_ns: u64) -> Option<Share> {
        if !self.asks(now_ns) {
            return None;
        }
        let held = self.users.get(&uid)?.held;
        let others = || self.others(uid, now_ns);
        if !others().any(|other| other.asks(now_ns)) {
            return None;
        }
        // It takes what it finds.
        let wanted = others().map(|other| f64::from(other.wants(now_ns)));
        let most = level(f64::from(limit), wanted.chain([f64::INFINITY]));
        let most = whole_u32(most).max(1);
        (held >= most).then_some(Share { held, most })
    }

    fn surplus(&self, limit: u32, now_ns: u64) -> impl Iterator<Item = (u32, u32)> {
        let there = self.users.values().filter(|user| user.is_there(now_ns));
        let equal = equal_part(limit, there.count());
        let held = self.users.iter().filter(|(_, user)| user.held > 0);
        held.filter(move |(uid, _)| self.others(**uid, now_ns).any(|other| other.asks(now_ns)))
            .map(move |(uid, user)| {
                let counted = user.held.saturating_sub(user.aside);
                (*uid, counted.saturating_sub(equal))
            })
    }

    fn others(&self, uid: u32, now_ns: u64) -> impl Iterator<Item = &User> {
        let others = self.users.iter().filter(move |(other, _)| **other != uid);
        let others = others.map(|(_uid, user)| user);
        others.filter(move |user| user.is_there(now_ns))
    }
}

fn is_recent(at_ns: Option<u64>, now_ns: u64) -> bool {
    at_ns.is_some_and(|at_ns| now_ns.saturating_sub(at_ns) < ASKS_NS)
}

/// What one of so many users may hold for long of a limit.
fn equal_part(limit: u32, users: usize) -> u32 {
    let users = u32::try_from(users).unwrap_or(u32::MAX);
    limit
        .checked_div(LONG_PART.saturating_mul(users))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;
