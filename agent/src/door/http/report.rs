//! The routes that tell.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use tidegate_segment::board::AgentLife;
use tidegate_segment::clock::monotonic_ns;

use super::answer::{Json, Wrong};
use super::caller::Caller;
use super::fields::Fields;
use super::input::{self, EXPLAIN};
use crate::config::schema::source::shown;
use crate::door::Context;
use crate::door::tenants::Named;
use crate::telemetry::explain::Explained;
use crate::telemetry::rules::Report;
use crate::telemetry::status::{self, Status};
use crate::telemetry::{fill, scrape};

pub(super) async fn status(
    State(context): State<Arc<Context>>,
    ConnectInfo(caller): ConnectInfo<Caller>,
) -> Json<Status> {
    Json(Status::of(&context, &caller.sees(&context)))
}

#[derive(Serialize)]
pub(super) struct Scopes {
    scopes: Vec<status::Scope>,
}

pub(super) async fn scopes(State(context): State<Arc<Context>>) -> Json<Scopes> {
    let snapshot = context.control.snapshot();
    Json(Scopes {
        scopes: status::scopes(&snapshot),
    })
}

#[derive(Serialize)]
pub(super) struct Resources {
    resources: Vec<status::Resource>,
}

pub(super) async fn resources(
    State(context): State<Arc<Context>>,
    ConnectInfo(caller): ConnectInfo<Caller>,
) -> Json<Resources> {
    Json(Resources {
        resources: status::resources(&caller.sees(&context)),
    })
}

#[derive(Serialize)]
pub(super) struct Rules {
    /// That of the caller's own tenant.
    generation: u64,
    rules: Vec<Report>,
}

pub(super) async fn rules(
    State(context): State<Arc<Context>>,
    ConnectInfo(caller): ConnectInfo<Caller>,
) -> Json<Rules> {
    Json(Rules {
        generation: caller.tenant().board().rules_generation(),
        rules: crate::telemetry::rules::rules(&caller.sees(&context)),
    })
}

pub(super) async fn explain(
    State(context): State<Arc<Context>>,
    ConnectInfo(caller): ConnectInfo<Caller>,
    uri: Uri,
) -> Result<Json<Explained>, Wrong> {
    let mut fields = Fields::of_query(&uri, &EXPLAIN)?;
    let name = &input::resource(&mut fields)?;
    let tenant = input::name(&mut fields, "tenant")?;
    let named = tenant_of(tenant, &caller, &context)?;
    let explained = Explained::of(&context, &named, name);
    explained.map(Json).ok_or_else(|| {
        let text = format!(
            "resource \"{name}\" is not known: nothing was asked of it and no rule is for it; \
             `tidegate status` lists those there are"
        );
        Wrong::new(StatusCode::NOT_FOUND, text)
    })
}

/// The tenant of this name, where the caller may see it; its own without a name.
fn tenant_of(name: Option<String>, caller: &Caller, context: &Context) -> Result<Named, Wrong> {
    let Some(name) = name else {
        return Ok(caller.named().clone());
    };
    let seen = caller.sees(context);
    let found = seen.iter().find(|named| *named.name == *name).cloned();
    found.ok_or_else(|| {
        let allowed: Vec<&str> = seen.iter().map(|named| &*named.name).collect();
        let (name, allowed) = (shown(&name), allowed.join(", "));
        let text = format!("tenant = \"{name}\" is none that you may see; allowed: {allowed}");
        Wrong::new(StatusCode::NOT_FOUND, text)
    })
}

pub(super) async fn put_rules(Path(kind): Path<String>) -> Wrong {
    let text = format!(
        "rules of kind {kind} cannot be put over HTTP yet; write a file into the rules directory"
    );
    Wrong::new(StatusCode::NOT_IMPLEMENTED, text)
}

/// What is told over TCP has no caller, and is of all tenants.
pub(super) async fn metrics(
    State(context): State<Arc<Context>>,
    caller: Option<Extension<ConnectInfo<Caller>>>,
) -> Response {
    let seen = match caller {
        Some(Extension(ConnectInfo(caller))) => caller.sees(&context),
        None => context.tenants.iter().cloned().collect(),
    };
    match fill::scrape(&context, &seen).text() {
        Ok(text) => ([(CONTENT_TYPE, scrape::CONTENT_TYPE)], text).into_response(),
        Err(error) => {
            let text = format!("the metrics cannot be written: {error}");
            Wrong::new(StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
        }
    }
}

/// Whether the agent answers at all.
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether its ticks come, so that adaptive limits are in force.
pub(super) async fn readyz(State(context): State<Arc<Context>>) -> Result<&'static str, Wrong> {
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
