//! One tick: take requests, sample, judge each scope, publish.

mod group_scopes;

use std::sync::mpsc::TrySendError;
use std::time::Duration;

use tidegate_abi::decision::ScopeState;
use tidegate_abi::signal::SignalId;
use tidegate_limits::fairness::tenants;
use tidegate_limits::second_mean::SecondMean;
use tidegate_segment::board::PublishedScope;

use super::clock_watch::ClockWatch;
use super::counts::Counts;
use super::fairness::{Fairness, JudgedScope};
use super::held_nodes::capped;
use super::lateness::Lateness;
use super::listeners::Listeners;
use super::mailbox::{Handle, Mailbox};
use super::measure::Tick;
use super::missed::MissedScopes;
use super::pages::TenantPages;
use super::plan::{Plan, Planned};
use super::request::{HeldResource, Request};
use super::scheduling::Scheduling;
use super::scope::Scope;
use super::services_cpu::ServicesCpu;
use super::snapshot::{ScopeSnapshot, SnapshotCell, Triggers};
use super::stepped::Stepped;
use super::tenant_laws::{AllTenants, TenantLaws};
use super::tick_time::TickTime;
use crate::recording::Tap;
use crate::signal::{FiredTriggers, GROUPS_MAX, Sampler, TopThreads, TriggerStates, WatchedGroup};
use crate::tenant::HOST;
use crate::tenant::scope_resolver::ScopeId;

/// Drives the law of every scope. It belongs to one thread.
#[derive(Debug)]
pub struct Driver {
    sampler: Box<Sampler>,
    pages: Vec<TenantPages>,
    counts: Counts,
    listeners: Listeners,
    fairness: Fairness,
    services: ServicesCpu,
    tenant_laws: TenantLaws,
    /// Share of the host's CPUs that the services used in the last tick.
    services_share: Option<f64>,
    /// Resources that bulkheads hold.
    held: Vec<HeldResource>,
    /// The host's CPU share as system rules have it: the mean of a whole second, and the last one.
    cpu_second: SecondMean,
    cpu_mean: Option<f64>,
    plan: Planned,
    missed: MissedScopes,
    /// A scope's place here is its place on every board; the host is first.
    scopes: Vec<Option<Scope>>,
    mail: Mailbox,
    tap: Tap,
    /// Scopes that there ever were.
    births: u64,
    clock: ClockWatch,
    lateness: Lateness,
    scheduling: Scheduling,
    triggers: Triggers,
    snapshot: SnapshotCell,
    ticks: u64,
    last_ns: Option<u64>,
    /// Whether it was told that a service is in a group out of sight.
    unseen_told: bool,
    time: TickTime,
}

impl Driver {
    /// A driver for the pages of all tenants, and the handle by which the rest of the agent talks with it.
    ///
    /// The host and the agent's own group are watched from the start.
    pub fn new(sampler: Sampler, pages: Vec<TenantPages>, plan: Plan) -> (Box<Self>, Handle) {
        let scopes = GROUPS_MAX.saturating_add(1);
        let snapshot = SnapshotCell::with_room(scopes);
        let (mail, handle) = Mailbox::new(snapshot.clone());
        let mut driver = Box::new(Self {
            sampler: Box::new(sampler),
            counts: Counts::new(&pages, scopes),
            listeners: Listeners::new(),
            fairness: Fairness::new(&pages, scopes),
            services: ServicesCpu::new(pages.len(), scopes),
            tenant_laws: TenantLaws::new(pages.len()),
            services_share: None,
            held: Vec::new(),
            cpu_second: SecondMean::default(),
            cpu_mean: None,
            pages,
            scopes: Vec::with_capacity(scopes),
            mail,
            tap: Tap::default(),
            births: 0,
            clock: ClockWatch::new(),
            lateness: Lateness::of_a_minute(Duration::from_millis(100)),
            scheduling: Scheduling::default(),
            triggers: Triggers::default(),
            snapshot,
            ticks: 0,
            last_ns: None,
            unseen_told: false,
            time: TickTime::default(),
            plan: Planned::default(),
            missed: MissedScopes::default(),
        });
        driver.set_plan(plan);
        driver.watch_first();
        (driver, handle)
    }

    fn watch_first(&mut self) {
        let host = Scope::new("host".into(), None, self.plan.host());
        self.scopes.push(Some(host));
        if let Ok(key) = self.sampler.watch_own() {
            self.scope_of_group(key);
        }
    }

    /// Hands what every tick measures to a recorder.
    pub fn record_to(&mut self, tap: Tap) {
        self.tap = tap;
    }

    /// The thread that ticks has begun.
    pub(super) fn begin(&mut self, scheduling: Scheduling, tick: Duration) {
        self.scheduling = scheduling;
        self.lateness = Lateness::of_a_minute(tick);
    }

    /// The triggers as they were armed. Whoever asks before the first tick is told of them too.
    pub(super) fn begin_with(&mut self, states: &TriggerStates) {
        self.tell_triggers(states);
        let triggers = self.triggers;
        self.snapshot.fill(|snapshot| snapshot.triggers = triggers);
    }

    /// The triggers that can make a tick come early, as they are now.
    pub(super) fn tell_triggers(&mut self, states: &TriggerStates) {
        self.triggers.states = *states;
    }

    /// One tick at `now_ns` (monotonic), which began `late` after it was due.
    pub fn tick(&mut self, now_ns: u64, late: Duration) {
        self.lateness.push(late);
        self.turn(now_ns, late);
    }

    /// One tick at `now_ns` (monotonic) before it was due, since these triggers fired. It says nothing about
    /// how late ticks are.
    pub(super) fn tick_early(&mut self, now_ns: u64, fired: FiredTriggers) {
        self.triggers.count(fired);
        if self.has_traffic() {
            self.time.hurry(now_ns);
        }
        self.turn(now_ns, Duration::ZERO);
    }

    /// One tick at `now_ns` (monotonic) that is shorter than a whole one, since [`Driver::hurries`].
    pub(super) fn tick_short(&mut self, now_ns: u64) {
        self.turn(now_ns, Duration::ZERO);
    }

    /// Whether the next tick should be a short one.
    pub(super) fn hurries(&self, now_ns: u64) -> bool {
        self.time.hurries(now_ns)
    }

    fn has_traffic(&self) -> bool {
        let host = self.scopes.first().and_then(Option::as_ref);
        host.is_some_and(Scope::has_traffic)
    }

    fn turn(&mut self, now_ns: u64, late: Duration) {
        self.take_requests();
        let late_p99 = self.lateness.p99();
        self.sampler.tell_late(late_p99);
        self.sampler.sample(now_ns);
        self.adopt_groups();
        let sampler = &self.sampler;
        let configured = self.plan.configured(|key| sampler.found(key));
        self.missed.look(now_ns, configured, &mut self.mail);
        let length_ns = self
            .last_ns
            .map_or(0, |last_ns| now_ns.saturating_sub(last_ns));
        self.last_ns = Some(now_ns);
        self.time.begin(length_ns, self.plan.host().tick.0);
        self.counts.take(&self.pages, self.time.part());
        self.services.look(&self.pages, &self.counts, &self.time);
        self.listeners.look();
        let weights = self.fairness.scope_weights.iter_mut();
        for (weight, scope) in weights.zip(&self.scopes) {
            *weight = scope.as_ref().map_or(1.0, |scope| scope.weight);
        }
        self.services_share = self.services.share(&self.sampler, &self.scopes);
        for index in 0..self.scopes.len() {
            self.step_scope(index, now_ns, length_ns);
        }
        self.publish_samples(length_ns);
        self.publish_clock();
        for page in &mut self.pages {
            page.writer.beat(now_ns);
        }
        self.ticks = self.ticks.saturating_add(1);
        self.fill_snapshot(now_ns, late, late_p99);
    }

    fn take_requests(&mut self) {
        while let Some(request) = self.mail.take() {
            match request {
                Request::Scope { pid, answer } => {
                    let scope = self.scope_of_process(pid);
                    // Whoever asked may have gone meanwhile.
                    let _gone: Result<(), TrySendError<ScopeId>> = answer.try_send(scope);
                }
                Request::Plan(plan) => self.set_plan(*plan),
                Request::Listener(listener) => self.listeners.watch(listener),
                Request::Held(held) => self.held = held,
            }
        }
    }

    fn set_plan(&mut self, plan: Plan) {
        let sampler = &mut self.sampler;
        self.plan
            .set(plan, |pattern| sampler.watch_pattern(pattern));
        self.missed = MissedScopes::default();
        self.fairness.weights = self.plan.weights().clone();
        for scope in self.scopes.iter_mut().flatten() {
            scope.follow(&self.plan);
        }
    }

    fn step_scope(&mut self, place: usize, now_ns: u64, length_ns: u64) {
        let Some(slot) = self.scopes.get_mut(place) else {
            return;
        };
        let (Some(scope), Ok(index)) = (slot.as_mut(), u32::try_from(place)) else {
            return;
        };
        let sampler = &self.sampler;
        let accept_queue = self.listeners.waiting(index);
        let group = scope.group.as_ref();
        let group = group.map(|place| sampler.group(place.key));
        let stepped = if let Some(None) = group {
            *slot = None;
            self.mail.freed.count(place);
            // What is still held in it counts in the host alone from now on, not in the next group of the place.
            for page in &mut self.pages {
                page.writer.leave_scope(index);
            }
            Stepped::GONE
        } else {
            let group = group.flatten();
            let threads = group.map(WatchedGroup::thread_groups).unwrap_or_default();
            scope.threads = TopThreads::of(threads);
            scope.neighbour = group.and_then(WatchedGroup::neighbour);
            scope.limiter = group.map(|group| group.limiter().words());
            let tick = Tick {
                length_ns,
                host: sampler.host(),
                services: self.services_share,
                group: group.map(|group| (group.readings(), group.cpus_busy())),
                counts: self.counts.of(place),
                accept_queue,
                one_shot: self.counts.one_shot(place),
                capped: capped(&self.pages, &self.held, index, None),
                observed: self.counts.observed(place),
            };
            let report = scope.step(&tick, now_ns, &mut self.mail);
            if scope.hurries(now_ns, length_ns) {
                self.time.hurry(now_ns);
            }
            self.tap.put(|| scope.record(index));
            let whole_s = self.time.whole().as_secs_f64();
            Stepped {
                report,
                capacity: scope.capacity_qps().map(|qps| qps * whole_s),
                surge: scope.surge(),
            }
        };
        if index == HOST {
            self.tenant_laws.step_all(&AllTenants {
                pages: &self.pages,
                held: &self.held,
                counts: &self.counts,
                services: &self.services,
                sampler: &self.sampler,
                scopes: &self.scopes,
            });
        }
        self.publish_scope(place, index, &stepped, accept_queue.unwrap_or(0));
    }

    /// Tells every tenant of a scope.
    fn publish_scope(&mut self, place: usize, index: u32, stepped: &Stepped, waiting: u32) {
        let report = &stepped.report;
        let judged = JudgedScope {
            word: report.word,
            capacity: stepped.capacity,
            whole: self.time.is_whole(),
        };
        // Before the word: whoever finds overload finds the shares of it.
        self.fairness
            .publish(index, &judged, &self.counts, &mut self.pages);
        let limit = match report.word.state {
            ScopeState::Overload => report.word.tight,
            ScopeState::Healthy | ScopeState::Cold | ScopeState::Reject => report.word.entry,
        };
        for tenant in 0..self.pages.len() {
            let held = self.counts.held_by_tenants(place);
            let others = tenants::others(held, tenant, limit);
            let beside = others.saturating_add(waiting);
            let scope = (index, report.word);
            let word = self
                .tenant_laws
                .word_for(tenant, scope, beside, &self.scopes);
            let Some(page) = self.pages.get_mut(tenant) else {
                return;
            };
            page.writer
                .publish_scope(index, &PublishedScope { word, ..*report });
            page.writer.publish_held(index, stepped.surge, others);
            page.writer.publish_accept_queue(index, waiting);
        }
    }

    /// What the system rules of every tenant look at.
    fn publish_samples(&mut self, length_ns: u64) {
        let host = self.sampler.host();
        let second = self.cpu_second.step(host.value(SignalId::Cpu), length_ns);
        self.cpu_mean = second.unwrap_or(self.cpu_mean);
        let scope = self.scopes.first().and_then(Option::as_ref);
        let (load, cpu) = scope
            .and_then(Scope::sentinel_samples)
            .unwrap_or_else(|| (host.value(SignalId::Load1), self.cpu_mean));
        for page in &mut self.pages {
            page.writer.publish_samples(load, cpu);
        }
    }

    fn publish_clock(&mut self) {
        if let Some(source) = self.clock.tick() {
            for page in &mut self.pages {
                page.writer.publish_clock(source);
            }
        }
    }

    fn fill_snapshot(&mut self, now_ns: u64, late: Duration, late_p99: Duration) {
        self.snapshot.fill(|snapshot| {
            snapshot.ticks = self.ticks;
            snapshot.now_ns = now_ns;
            snapshot.late = late;
            snapshot.late_p99 = late_p99;
            snapshot.uses_counter = self.clock.uses_counter();
            snapshot.scheduling = self.scheduling;
            snapshot.triggers = self.triggers;
            snapshot.events_lost = self.mail.lost;
            snapshot.recording_lost = self.tap.lost();
            snapshot.recordings_begun_anew = self.tap.begun_anew();
            snapshot.configured.clear();
            let configured = self.plan.configured(|key| self.sampler.found(key));
            snapshot.configured.extend(configured.flatten());
            snapshot.scopes.clear();
            for (index, scope) in (0..).zip(&self.scopes) {
                let scope = scope.as_ref();
                let scope = scope.map(|scope| ScopeSnapshot {
                    cutoff: usize::try_from(index)
                        .ok()
                        .and_then(|place| self.fairness.cutoff(place)),
                    ..scope.snapshot(index, now_ns)
                });
                snapshot.scopes.extend(scope);
            }
        });
    }
}
