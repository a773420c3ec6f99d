//! Automatic bulkheads: follows what each resource has in flight in each scope, and holds the one that fills a scope
//! whose CPU is idle. What is decided is in [`tidegate_limits::bulkhead`]; here is where it looks and what it does.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_abi::decision::{Mode, ScopeState};
use tidegate_limits::bulkhead::{
    BulkheadChange, BulkheadResource, BulkheadSettings, Bulkheads, Lately, ScopeLook, UsualUse,
};
use tidegate_segment::board::Slot;
use tidegate_segment::clock::monotonic_ns;
use tidegate_segment::ledger::NodeCounts;

use super::reload;
use crate::control::{Handle, HeldResource, ScopeSnapshot, Snapshot};
use crate::host::tenants::{NamedTenant, Tenants};
use crate::rule::Body;
use crate::rule::bulkhead::BulkheadRule;
use crate::rule::flow::Grade;
use crate::schema::fault::Fault;
use crate::tenant::HOST;

/// Looks between two that are taken while every scope is far from its limit.
const REST_LOOKS: u32 = 10;
/// Resources of a tenant that are followed, and what is read in a look: seats × resources of a tenant.
const RESOURCES_MAX: usize = 256;
const READ_MAX: usize = 20_000;
/// A resource is a scope's own if it has this share of its requests in flight there at least.
const OWN_SHARE: f64 = 0.75;

/// A resource: the place of its tenant, and its node.
type Node = (usize, Slot);

/// Counts of a resource in a scope, free-running but for the first.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    held: u32,
    passed: u64,
    done: u64,
    rt_ns: u64,
}

/// What was seen of a resource in a scope.
#[derive(Debug, Default)]
struct Followed {
    usual: UsualUse,
    lately: Lately,
    /// At the last look, if there was one.
    last: Option<Counts>,
}

impl Followed {
    /// Takes a look; where the scope is in overload nothing of it is usual.
    fn take(&mut self, now: Counts, span_ns: u64, overload: bool) {
        let last = self.last.replace(now).unwrap_or(now);
        if !overload {
            let passed = now.passed.saturating_sub(last.passed);
            self.usual.learn(now.held, passed, span_ns);
        }
        let done = now.done.saturating_sub(last.done);
        let rt_ns = now.rt_ns.saturating_sub(last.rt_ns);
        self.lately.take(done, rt_ns, span_ns);
    }
}

impl Counts {
    fn add(&mut self, of_seat: &NodeCounts) {
        let inflight = u32::try_from(of_seat.inflight).unwrap_or(u32::MAX);
        self.held = self.held.saturating_add(inflight);
        self.passed = self.passed.saturating_add(of_seat.passed);
        self.done = self.done.saturating_add(of_seat.success);
        self.rt_ns = self.rt_ns.saturating_add(of_seat.rt_ns);
    }
}

/// A resource in a look.
#[derive(Debug)]
struct Seen {
    node: Node,
    name: Arc<str>,
    /// Whether somebody has given it a limit in flight.
    ruled: bool,
    /// By scope.
    scopes: BTreeMap<u32, Counts>,
}

/// A resource that is held.
#[derive(Debug)]
struct InForce {
    scope: u32,
    scope_name: Arc<str>,
    node: Node,
    rule: BulkheadRule,
}

/// A scope in a look.
#[derive(Debug)]
struct ScopeNow {
    index: u32,
    name: Arc<str>,
    waits: bool,
    full: bool,
    short: bool,
    state: ScopeState,
    mode: Mode,
    settings: Option<BulkheadSettings>,
}

/// The bulkheads of all scopes.
#[derive(Debug, Default)]
pub(super) struct BulkheadKeeper {
    scopes: BTreeMap<u32, Bulkheads>,
    followed: BTreeMap<(u32, u64), Followed>,
    held: Vec<InForce>,
    /// Whether what is held has changed since it was published.
    unpublished: bool,
    rested: u32,
    last_ns: Option<u64>,
}

impl BulkheadKeeper {
    /// A look, ten times a second.
    ///
    /// # Errors
    /// A limit found no room among the rules.
    pub(super) async fn look(
        &mut self,
        control: &Handle,
        tenants: &Tenants,
    ) -> Result<(), Vec<Fault>> {
        let (scopes, near) = control.look(|now| (scopes(now), is_near(now)));
        self.rested = self.rested.saturating_add(1);
        if !near && self.held.is_empty() && self.rested < REST_LOOKS {
            return Ok(());
        }
        self.rested = 0;
        let seen = see(tenants);
        let now_ns = monotonic_ns();
        let span_ns = self.last_ns.map_or(0, |last| now_ns.saturating_sub(last));
        self.last_ns = Some(now_ns);
        let mut changed = self.drop_gone(&seen);
        for scope in &scopes {
            let resources = self.resources(scope, &seen, span_ns);
            let now = ScopeLook {
                ns: now_ns,
                waits: scope.waits,
                full: scope.full,
                short: scope.short,
            };
            let bulkheads = self.scopes.entry(scope.index).or_default();
            let Some(settings) = scope.settings else {
                *bulkheads = Bulkheads::default();
                let before = self.held.len();
                self.held.retain(|held| held.scope != scope.index);
                changed |= self.held.len() < before;
                continue;
            };
            if let Some(change) = bulkheads.look(&resources, now, &settings) {
                self.change(scope, change, &seen);
                changed = true;
            }
        }
        self.scopes
            .retain(|index, _state| scopes.iter().any(|scope| scope.index == *index));
        self.unpublished |= changed;
        if self.unpublished {
            self.publish(control, tenants).await?;
            self.unpublished = false;
        }
        Ok(())
    }

    /// Forgets resources and scopes that are gone; whether one of them was held.
    fn drop_gone(&mut self, seen: &[Seen]) -> bool {
        let known = |key: u64| seen.iter().any(|one| key_of(one.node) == key);
        self.followed.retain(|(_scope, key), _usual| known(*key));
        let before = self.held.len();
        self.held.retain(|held| known(key_of(held.node)));
        self.held.len() < before
    }

    /// The resources of a scope, with what is usual of them.
    fn resources(
        &mut self,
        scope: &ScopeNow,
        seen: &[Seen],
        span_ns: u64,
    ) -> Vec<BulkheadResource> {
        let mut resources = Vec::new();
        for one in seen {
            let Some(&counts) = one.scopes.get(&scope.index) else {
                continue;
            };
            let (key, held) = (key_of(one.node), counts.held);
            let followed = self.followed.entry((scope.index, key)).or_default();
            followed.take(counts, span_ns, scope.state == ScopeState::Overload);
            let all = one.scopes.get(&HOST).map_or(held, |all| all.held);
            let own = f64::from(held) >= OWN_SHARE * f64::from(all);
            let elsewhere = self.held.iter();
            let elsewhere = elsewhere.filter(|held| held.scope != scope.index);
            let taken = elsewhere.map(|held| held.node).any(|node| node == one.node);
            resources.push(BulkheadResource {
                key,
                held,
                usual: followed.usual,
                lately: followed.lately,
                free: !one.ruled && own && !taken,
            });
        }
        resources
    }

    fn change(&mut self, scope: &ScopeNow, change: BulkheadChange, seen: &[Seen]) {
        match change {
            BulkheadChange::Hold { key, limit } => {
                let Some(one) = seen.iter().find(|one| key_of(one.node) == key) else {
                    return;
                };
                tracing::warn!(
                    event = "bulkhead_begun",
                    scope = &*scope.name,
                    resource = &*one.name,
                    limit,
                    "bulkhead: the CPU is idle and this resource fills the scope, so its requests wait for something \
                     else; it is held to this limit in flight, and the others pass"
                );
                self.held.push(InForce {
                    scope: scope.index,
                    scope_name: Arc::clone(&scope.name),
                    node: one.node,
                    rule: BulkheadRule {
                        resource: one.name.to_string(),
                        limit,
                        mode: scope.mode,
                    },
                });
            }
            BulkheadChange::LetGo { key, useless } => {
                let goes = |held: &InForce| held.scope == scope.index && key_of(held.node) == key;
                for held in self.held.iter().filter(|held| goes(held)) {
                    tracing::warn!(
                        event = "bulkhead_ended",
                        scope = &*held.scope_name,
                        resource = held.rule.resource,
                        "bulkhead: {}",
                        if useless {
                            "holding this resource has not helped the others: it has no limit any more"
                        } else {
                            "this resource needs little again: it has no limit any more"
                        }
                    );
                }
                self.held.retain(|held| !goes(held));
            }
        }
    }

    async fn publish(&self, control: &Handle, tenants: &Tenants) -> Result<(), Vec<Fault>> {
        for (place, named) in tenants.iter().enumerate() {
            let held = self.held.iter().filter(|held| held.node.0 == place);
            let rules: Vec<BulkheadRule> = held.map(|held| held.rule.clone()).collect();
            let limits = named.tenant.directory().rule_index();
            if rules.is_empty() && limits.rules().bulkheads().next().is_none() {
                continue;
            }
            Box::pin(reload::hold(&named.tenant, &rules)).await?;
        }
        let held = self.held.iter();
        let held = held.map(|held| HeldResource {
            tenant: held.node.0,
            slot: held.node.1,
        });
        if let Err(overrun) = control.hold(held.collect()) {
            tracing::warn!(event = "bulkhead_untold", %overrun, "the tick was not told which resources are held: the law still counts their requests");
        }
        Ok(())
    }
}

fn key_of((tenant, slot): Node) -> u64 {
    let tenant = u64::try_from(tenant).unwrap_or(u64::MAX);
    tenant << 48 | u64::from(slot.generation) << 32 | u64::from(slot.index)
}

fn scopes(snapshot: &Snapshot) -> Vec<ScopeNow> {
    let scopes = snapshot.scopes.iter();
    scopes.map(ScopeNow::of).collect()
}

/// Whether some scope holds a quarter of its entry limit or more, or is in overload.
fn is_near(snapshot: &Snapshot) -> bool {
    snapshot.scopes.iter().any(|scope| {
        let published = &scope.published;
        published.state == ScopeState::Overload
            || published.held.saturating_mul(4) >= published.entry
    })
}

impl ScopeNow {
    fn of(scope: &ScopeSnapshot) -> Self {
        let published = &scope.published;
        Self {
            index: scope.index,
            name: Arc::clone(&scope.name),
            waits: published.waits,
            full: published.held >= published.entry,
            short: published.evidence.short(),
            state: published.state,
            mode: if published.observes() {
                Mode::Observe
            } else {
                Mode::Enforce
            },
            settings: scope.bulkhead,
        }
    }
}

fn see(tenants: &Tenants) -> Vec<Seen> {
    let tenants = tenants.iter().enumerate();
    tenants
        .flat_map(|(place, named)| see_tenant(place, named))
        .collect()
}

/// The resources of a tenant; one alone is not looked at, for there is none to protect from it.
fn see_tenant(place: usize, named: &NamedTenant) -> Vec<Seen> {
    let tenant = &named.tenant;
    let (board, ledger) = (*tenant.board(), *tenant.ledger());
    let seats = 0..board.seats_used();
    let seats: Vec<u32> = seats.filter(|seat| board.seat(*seat).live).collect();
    let directory = tenant.directory();
    let (resources, limits) = (directory.list(), directory.rule_index());
    let most = READ_MAX.checked_div(seats.len()).unwrap_or(0);
    if seats.is_empty() || resources.len() < 2 {
        return Vec::new();
    }
    let resources = resources.into_iter().take(most.min(RESOURCES_MAX));
    let seen = resources.map(|(name, slot)| {
        let mut scopes = BTreeMap::<u32, Counts>::new();
        for seat in &seats {
            let counts = ledger.seat_node_counts(&board, *seat, slot);
            let own = board.seat_scope(*seat);
            let of = [Some(HOST), Some(own).filter(|own| *own != HOST)];
            for scope in of.into_iter().flatten() {
                scopes.entry(scope).or_default().add(&counts);
            }
        }
        let ruled = limits.of_resource(&name).into_iter().any(|placed| {
            let in_flight =
                matches!(&placed.rule.body, Body::Flow(flow) if flow.grade == Grade::Concurrency);
            in_flight && !placed.rule.is_bulkhead()
        });
        Seen {
            node: (place, slot),
            name,
            ruled,
            scopes,
        }
    });
    seen.collect()
}
