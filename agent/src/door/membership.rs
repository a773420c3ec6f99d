//! Finds out in which scope those are who are connected, and follows them when they move.
//!
//! A look reads a file or two of `/proc`. Nobody waits for one: whoever connects is the host's alone until it is done,
//! and who asks is in the scope that the last look has told. Who asks over a socket is looked at again by its own
//! requests, at most every two seconds; those that map the pages ask nothing of the agent, so some of them are looked at each
//! second in turns.

use std::sync::Arc;
use std::time::Duration;

use tidegate_segment::clock::monotonic_ns;
use tokio::time::MissedTickBehavior;

use crate::host::AgentState;
use crate::host::tenants::NamedTenant;
use crate::tenant::Tenant;
use crate::tenant::client::{ConnectionId, ServiceConnection};
use crate::tenant::scope_resolver::ScopeResolver;

/// How often some of those that are connected are looked at.
const EVERY: Duration = Duration::from_secs(1);

/// How many of each tenant are looked at each time.
const AT_ONCE: usize = 32;

/// Looks for the scope of a client beside the connection: a group that is new is known with the next tick only.
pub(super) fn look_beside(
    scopes: &Arc<dyn ScopeResolver>,
    tenant: &Arc<Tenant>,
    client: &Arc<ServiceConnection>,
) {
    let (client, tenant) = (Arc::clone(client), Arc::clone(tenant));
    let scopes = Arc::clone(scopes);
    tokio::task::spawn_blocking(move || look(&*scopes, &tenant, &client));
}

/// Looks for the scope of a client, and moves its seat there.
fn look(scopes: &dyn ScopeResolver, tenant: &Tenant, client: &ServiceConnection) {
    client.scope().look(scopes);
    let place = client.scope().current(scopes).place;
    if let Some(seat) = client.who.seat
        && tenant.board().seat_scope(seat.index) != place
    {
        tenant.seats().move_to_scope(seat, place);
    }
}

/// Follows those that are connected, and gives up seats that the agent took for callers and needs no more. Never ends.
pub(super) async fn follow(context: Arc<AgentState>) {
    let mut every = tokio::time::interval(EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last: Vec<Option<ConnectionId>> = vec![None; context.tenants.iter().count()];
    loop {
        every.tick().await;
        for (named, last) in context.tenants.iter().zip(&mut last) {
            let scopes = &context.scopes;
            let is_current = |scope| scopes.is_current(scope);
            named.tenant.tend_proxy_seats(monotonic_ns(), is_current);
            *last = follow_some(&context, named, *last).await;
        }
    }
}

/// Looks at the next ones behind one; returns the last of them.
async fn follow_some(
    context: &Arc<AgentState>,
    named: &NamedTenant,
    last: Option<ConnectionId>,
) -> Option<ConnectionId> {
    let next = named.tenant.clients().list_from(last, AT_ONCE);
    let end = next.last().map(|(ticket, _client)| *ticket);
    let (scopes, tenant) = (Arc::clone(&context.scopes), Arc::clone(&named.tenant));
    let looked = tokio::task::spawn_blocking(move || {
        let now_ns = monotonic_ns();
        let due = |client: &Arc<ServiceConnection>| client.scope().takes_look(now_ns);
        let mapped = next.iter().map(|(_ticket, client)| client);
        let mapped = mapped.filter(|client| client.who.seat.is_some());
        mapped
            .filter(|client| due(client))
            .for_each(|client| look(&*scopes, &tenant, client));
    });
    // A look that panicked ended the agent.
    let _ended: Result<(), tokio::task::JoinError> = looked.await;
    end
}
