//! Which scope a group has, and a process.

use std::sync::Arc;

use super::Driver;
use crate::control::request::Event;
use crate::control::scope::{Place, Scope, nearest_above};
use crate::procfs::{Missing, NoValue};
use crate::signal::{GROUPS_MAX, GroupKey};
use crate::tenant::scope_resolver::ScopeId;
use crate::tenant::{HOST, OPEN_SCOPE};

impl Driver {
    /// Gives each group that the sampler has found a scope, and the settings of the pattern it fits.
    pub(super) fn adopt_groups(&mut self) {
        for scope in self.scopes.iter_mut().flatten() {
            let group = scope.group.as_ref().map(|place| place.key);
            if let Some(group) = group.and_then(|key| self.sampler.group(key)) {
                scope.fits(group.pattern(), &self.plan);
            }
        }
        while let Some(key) = self.without_scope() {
            if self.add_scope(key).is_none() {
                return;
            }
        }
    }

    fn without_scope(&self) -> Option<GroupKey> {
        let mut keys = self.sampler.groups().map(|(key, _group)| key);
        keys.find(|key| self.place_of(*key).is_none())
    }

    fn place_of(&self, key: GroupKey) -> Option<usize> {
        self.scopes.iter().position(|scope| {
            let group = scope.as_ref().and_then(|scope| scope.group.as_ref());
            group.is_some_and(|place| place.key == key)
        })
    }

    /// The scope of a process's group. Where that group has none, since it cannot be watched or there is no room, the
    /// scope of the nearest group above it that has one; else the host.
    pub(super) fn scope_of_process(&mut self, pid: u32) -> ScopeId {
        let own = match self.sampler.watch_process(pid) {
            Ok(key) => self.scope_of_group(key),
            Err(missing) => {
                self.tell_unseen(missing);
                None
            }
        };
        let place = own.or_else(|| {
            let path = self.sampler.path_of_process(pid)?;
            nearest_above(&self.scopes, &path)
        });
        let place = place.and_then(|place| u32::try_from(place).ok());
        self.mail.freed.scope_at(place.unwrap_or(HOST))
    }

    /// Tells, the first time, that a service is in a group out of sight. One that is gone meanwhile is none.
    fn tell_unseen(&mut self, missing: Missing) {
        let is_unseen = matches!(missing.fault, NoValue::OutOfSight | NoValue::NotMounted);
        if is_unseen && !self.unseen_told {
            self.unseen_told = true;
            self.mail.tell(Event::GroupUnseen { missing });
        }
    }

    /// Place of the scope of a watched group, a new one if it has none yet; `None` if there is no room for it.
    pub(super) fn scope_of_group(&mut self, key: GroupKey) -> Option<usize> {
        self.place_of(key).or_else(|| self.add_scope(key))
    }

    fn add_scope(&mut self, key: GroupKey) -> Option<usize> {
        let group = self.sampler.group(key)?;
        let (path, pattern) = (Arc::from(group.path()), group.pattern());
        let free = self.scopes.iter().position(Option::is_none);
        let place = free.unwrap_or(self.scopes.len());
        let room = self
            .pages
            .iter()
            .all(|page| place < page.ledger.geometry().scopes() as usize);
        if !room || place > GROUPS_MAX {
            return None;
        }
        let terms = self.plan.of_group(&path, pattern);
        let index = u32::try_from(place).ok()?;
        // Before anybody hears of the place: a process must not find words of an earlier scope.
        for page in &mut self.pages {
            page.writer.publish_scope(index, &OPEN_SCOPE);
        }
        let group = Some(Place {
            key,
            path,
            pattern,
            cpus: terms.cpus,
        });
        self.births = self.births.saturating_add(1);
        let mut scope = Scope::new(terms.name, group, terms.settings).born(self.births);
        scope.weight = self.plan.weights().of_name(&scope.name);
        let scope = Some(scope);
        match self.scopes.get_mut(place) {
            Some(free) => *free = scope,
            None => self.scopes.push(scope),
        }
        Some(place)
    }
}
