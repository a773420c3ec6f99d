//! The routes that tell.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{ConnectInfo, State};
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use tidegate_segment::board::AgentLife;
use tidegate_segment::clock::monotonic_ns;

use super::answer::{Json, Wrong};
use super::caller::{Caller, View};
use super::fields::Fields;
use super::input::{self, EVENTS, EXPLAIN};
use super::reports::{Report, Reports};
use crate::host::AgentState;
use crate::host::tenants::NamedTenant;
use crate::report::events::EventsReport;
use crate::report::explain::ExplainReport;
use crate::schema::source::shown;
use crate::telemetry::form::ScrapeForm;

/// A report, as far as the caller may see it.
pub(super) fn told(report: Report) -> MethodRouter<Arc<AgentState>> {
    get(
        async move |ConnectInfo(caller): ConnectInfo<Caller>,
                    Extension(reports): Extension<Arc<Reports>>| {
            reports.tell(report, &caller).await
        },
    )
}

pub(super) async fn explain(
    State(context): State<Arc<AgentState>>,
    Extension(reports): Extension<Arc<Reports>>,
    ConnectInfo(caller): ConnectInfo<Caller>,
    uri: Uri,
) -> Result<Json<ExplainReport>, Wrong> {
    let mut fields = Fields::of_query(&uri, &EXPLAIN)?;
    let name = input::resource(&mut fields)?;
    let tenant = input::name(&mut fields, "tenant")?;
    let named = tenant_of(tenant, &caller, &context)?;
    let asked = name.clone();
    let explain = move |context: &AgentState| ExplainReport::of(context, &named, &asked);
    let explained = reports.once(caller.holder, explain).await?;
    explained.map(Json).ok_or_else(|| {
        let text = format!(
            "resource \"{name}\" is not known: nothing was asked of it and no rule is for it; \
             `tidegate status` lists those there are"
        );
        Wrong::new(StatusCode::NOT_FOUND, text)
    })
}

/// What happened after an event, as far as the caller may know; without its number, all that is kept.
pub(super) async fn events(
    Extension(reports): Extension<Arc<Reports>>,
    ConnectInfo(caller): ConnectInfo<Caller>,
    uri: Uri,
) -> Result<Json<EventsReport>, Wrong> {
    let mut fields = Fields::of_query(&uri, &EVENTS)?;
    let after = fields.whole("after", "the number of an event, such as 1796000000000")?;
    let View { own, sees_all } = caller.view;
    let tenant = (!sees_all).then_some(own.name);
    let made = move |context: &AgentState| {
        EventsReport::of(&context.events, after.unwrap_or(0), tenant.as_ref())
    };
    reports.once(caller.holder, made).await.map(Json)
}

/// The tenant of this name, where the caller may see it; its own without a name.
fn tenant_of(
    name: Option<String>,
    caller: &Caller,
    context: &AgentState,
) -> Result<NamedTenant, Wrong> {
    let Some(name) = name else {
        return Ok(caller.named().clone());
    };
    let seen = caller.view.tenants(context);
    let found = seen.iter().find(|named| *named.name == *name).cloned();
    found.ok_or_else(|| {
        let allowed: Vec<&str> = seen.iter().map(|named| &*named.name).collect();
        let (name, allowed) = (shown(&name), allowed.join(", "));
        let text = format!("tenant = \"{name}\" is none that you may see; allowed: {allowed}");
        Wrong::new(StatusCode::NOT_FOUND, text)
    })
}

/// What is told over TCP has no caller, and is of all tenants.
pub(super) async fn metrics(
    Extension(reports): Extension<Arc<Reports>>,
    caller: Option<Extension<ConnectInfo<Caller>>>,
    headers: HeaderMap,
) -> Result<Response, Wrong> {
    let accepted = headers.get_all(ACCEPT).iter();
    let accepted: Vec<&str> = accepted.filter_map(|value| value.to_str().ok()).collect();
    let form = ScrapeForm::wanted_by(&accepted.join(","));
    match caller {
        Some(Extension(ConnectInfo(caller))) => reports.tell(Report::Metrics(form), &caller).await,
        None => reports.scrape(form).await,
    }
}

/// Whether the agent answers at all.
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether its ticks come, so that adaptive limits are in force.
pub(super) async fn readyz(State(context): State<Arc<AgentState>>) -> Result<&'static str, Wrong> {
    if context.control.snapshot().scopes.is_empty() {
        return Err(Wrong::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the first tick has not come yet; it does within `tick` of the start",
        ));
    }
    let default = &context.tenants.default_one().tenant;
    match default.board().agent_life(monotonic_ns()) {
        AgentLife::Present => Ok("ok\n"),
        AgentLife::Grace | AgentLife::Lost(_) => Err(Wrong::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "no tick came within agent_loss.time_to_live; static rules alone are in force",
        )),
    }
}
