//! One tick: take requests, sample, judge each scope, publish.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tidegate_segment::board::TickWriter;
use tidegate_segment::ledger::{Ledger, ScopeCounts};

use super::clock_watch::ClockWatch;
use super::lateness::Lateness;
use super::measure::Tick;
use super::plan::Plan;
use super::request::{Handle, Mailbox, Request};
use super::scope::{FREE, Scope};
use super::snapshot::SnapshotCell;
use super::thread::Scheduling;
use crate::signal::{GROUPS_MAX, GroupKey, Sampler};

/// Place of the host on every board.
pub const HOST: u32 = 0;

/// Time after which declared groups that were not there are looked for again, ns.
const LOOK_AGAIN_NS: u64 = 1_000_000_000;

/// The tick's role on a tenant's board, and the ledger that goes with it.
#[derive(Debug)]
pub struct Tenant {
    /// Writes heartbeat, clock and scopes.
    pub writer: TickWriter,
    /// Counts what the tenant's services do.
    pub ledger: Ledger,
}

/// Drives the law of every scope. It belongs to one thread.
#[derive(Debug)]
pub struct Driver {
    sampler: Box<Sampler>,
    tenants: Vec<Tenant>,
    plan: Plan,
    /// A scope's place here is its place on every board; the host is first.
    scopes: Vec<Option<Scope>>,
    mail: Mailbox,
    clock: ClockWatch,
    lateness: Lateness,
    scheduling: Scheduling,
    snapshot: SnapshotCell,
    ticks: u64,
    last_ns: Option<u64>,
    looked_ns: Option<u64>,
}

impl Driver {
    /// A driver for these tenants, and the handle by which the rest of the agent talks with it.
    ///
    /// The host and the agent's own group are watched from the start.
    pub fn new(sampler: Sampler, tenants: Vec<Tenant>, plan: Plan) -> (Box<Self>, Handle) {
        let snapshot = SnapshotCell::with_room(GROUPS_MAX.saturating_add(1));
        let (mail, handle) = Mailbox::new(snapshot.clone());
        let mut driver = Box::new(Self {
            sampler: Box::new(sampler),
            tenants,
            scopes: Vec::with_capacity(GROUPS_MAX.saturating_add(1)),
            mail,
            clock: ClockWatch::new(),
            lateness: Lateness::of_a_minute(Duration::from_millis(100)),
            scheduling: Scheduling::default(),
            snapshot,
            ticks: 0,
            last_ns: None,
            looked_ns: None,
            plan,
        });
        driver.watch_first();
        (driver, handle)
    }

    fn watch_first(&mut self) {
        let counts = self.counts(HOST);
        let host = Scope::new("host".into(), None, Arc::clone(&self.plan.host), counts);
        self.scopes.push(Some(host));
        if let Ok(key) = self.sampler.watch_own() {
            self.scope_of_group(key);
        }
    }

    /// The thread that ticks has begun.
    pub(super) fn begin(&mut self, scheduling: Scheduling, tick: Duration) {
        self.scheduling = scheduling;
        self.lateness = Lateness::of_a_minute(tick);
    }

    /// One tick at `now_ns` (monotonic), which began `late` after it was due.
    pub fn tick(&mut self, now_ns: u64, late: Duration) {
        self.take_requests();
        self.look_for_declared(now_ns);
        self.sampler.sample(now_ns);
        let length_ns = self
            .last_ns
            .map_or(0, |last_ns| now_ns.saturating_sub(last_ns));
        self.last_ns = Some(now_ns);
        for index in 0..self.scopes.len() {
            self.step_scope(index, now_ns, length_ns);
        }
        self.publish_clock();
        for tenant in &mut self.tenants {
            tenant.writer.beat(now_ns);
        }
        self.ticks = self.ticks.saturating_add(1);
        self.lateness.push(late);
        self.fill_snapshot(now_ns, late);
    }

    fn take_requests(&mut self) {
        while let Some(request) = self.mail.take() {
            match request {
                Request::Scope { pid, answer } => {
                    let scope = self.scope_of_process(pid);
                    // Whoever asked may have gone meanwhile.
                    let _gone: Result<(), u32> = answer.send(scope);
                }
                Request::Plan(plan) => self.set_plan(*plan),
            }
        }
    }

    fn set_plan(&mut self, plan: Plan) {
        for scope in self.scopes.iter_mut().flatten() {
            match &scope.group {
                Some((_key, path)) => (scope.name, scope.settings) = plan.of_group(path),
                None => scope.settings = Arc::clone(&plan.host),
            }
        }
        self.plan = plan;
        self.looked_ns = None;
    }

    fn look_for_declared(&mut self, now_ns: u64) {
        let due = self
            .looked_ns
            .is_none_or(|looked_ns| now_ns.saturating_sub(looked_ns) >= LOOK_AGAIN_NS);
        if !due || self.plan.declared.is_empty() {
            return;
        }
        self.looked_ns = Some(now_ns);
        for path in self.plan.paths().collect::<Vec<_>>() {
            if !self.is_watched(&path)
                && let Ok(key) = self.sampler.watch_path(&path)
            {
                self.scope_of_group(key);
            }
        }
    }

    fn is_watched(&self, path: &Path) -> bool {
        let is_at = |scope: &Scope| scope.group.as_ref().is_some_and(|(_key, at)| **at == *path);
        self.scopes.iter().flatten().any(is_at)
    }

    /// Place of the scope of a process's group; the host where that group cannot be watched.
    fn scope_of_process(&mut self, pid: u32) -> u32 {
        match self.sampler.watch_process(pid) {
            Ok(key) => self.scope_of_group(key),
            Err(_out_of_sight) => HOST,
        }
    }

    /// Place of the scope of a watched group, a new one if it has none yet.
    fn scope_of_group(&mut self, key: GroupKey) -> u32 {
        let is_its = |scope: &Option<Scope>| {
            let group = scope.as_ref().and_then(|scope| scope.group.as_ref());
            group.is_some_and(|(known, _path)| *known == key)
        };
        let known = self.scopes.iter().position(is_its);
        let place = known.or_else(|| self.add_scope(key));
        place
            .and_then(|place| u32::try_from(place).ok())
            .unwrap_or(HOST)
    }

    fn add_scope(&mut self, key: GroupKey) -> Option<usize> {
        let path: Arc<Path> = self.sampler.group(key)?.path().into();
        let free = self.scopes.iter().position(Option::is_none);
        let place = free.unwrap_or(self.scopes.len());
        let room = self
            .tenants
            .iter()
            .all(|tenant| place < tenant.ledger.geometry().scopes() as usize);
        if !room || place > GROUPS_MAX {
            return None;
        }
        let (name, settings) = self.plan.of_group(&path);
        let counts = self.counts(u32::try_from(place).ok()?);
        let scope = Some(Scope::new(name, Some((key, path)), settings, counts));
        match self.scopes.get_mut(place) {
            Some(free) => *free = scope,
            None => self.scopes.push(scope),
        }
        Some(place)
    }

    /// Counts of a scope over all tenants.
    fn counts(&self, index: u32) -> ScopeCounts {
        sum_counts(&self.tenants, index)
    }

    fn step_scope(&mut self, place: usize, now_ns: u64, length_ns: u64) {
        let Some(slot) = self.scopes.get_mut(place) else {
            return;
        };
        let (Some(scope), Ok(index)) = (slot.as_mut(), u32::try_from(place)) else {
            return;
        };
        let group = scope
            .group
            .as_ref()
            .map(|(key, _path)| self.sampler.group(*key));
        let report = if let Some(None) = group {
            *slot = None;
            FREE
        } else {
            let tick = Tick {
                length_ns,
                host: self.sampler.host(),
                group: group.flatten(),
                counts: &sum_counts(&self.tenants, index),
                before: &scope.counts(),
            };
            scope.step(&tick, now_ns, &mut self.mail)
        };
        for tenant in &mut self.tenants {
            tenant.writer.publish_scope(index, &report);
        }
    }

    fn publish_clock(&mut self) {
        if let Some(source) = self.clock.tick() {
            for tenant in &mut self.tenants {
                tenant.writer.publish_clock(source);
            }
        }
    }

    fn fill_snapshot(&mut self, now_ns: u64, late: Duration) {
        let late_p99 = self.lateness.p99();
        self.snapshot.fill(|snapshot| {
            snapshot.ticks = self.ticks;
            snapshot.now_ns = now_ns;
            snapshot.late = late;
            snapshot.late_p99 = late_p99;
            snapshot.uses_counter = self.clock.uses_counter();
            snapshot.scheduling = self.scheduling;
            snapshot.events_lost = self.mail.lost;
            snapshot.scopes.clear();
            for (index, scope) in (0..).zip(&self.scopes) {
                let Some(scope) = scope else { continue };
                let group = scope.group.as_ref();
                let group = group.and_then(|(key, _path)| self.sampler.group(*key));
                let readings = group.map_or(self.sampler.host(), |group| group.readings());
                snapshot.scopes.push(scope.snapshot(index, readings));
            }
        });
    }
}

/// Counts of a scope over all tenants.
fn sum_counts(tenants: &[Tenant], index: u32) -> ScopeCounts {
    tenants.iter().fold(ScopeCounts::default(), |sum, tenant| {
        let counts = tenant.ledger.scope_counts(&tenant.writer.board(), index);
        ScopeCounts {
            inflight: sum.inflight.saturating_add(counts.inflight),
            passed: sum.passed.wrapping_add(counts.passed),
            success: sum.success.wrapping_add(counts.success),
            rt_ns: sum.rt_ns.wrapping_add(counts.rt_ns),
            refused: sum.refused.wrapping_add(counts.refused),
            shed: sum.shed.wrapping_add(counts.shed),
        }
    })
}
