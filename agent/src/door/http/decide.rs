//! The routes that decide.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{ConnectInfo, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use serde_json::json;
use tidegate_segment::clock::monotonic_ns;
use tidegate_segment::gate::GateVerdict;

use super::answer::{self, Json, Wrong};
use super::caller::Caller;
use super::fields::Fields;
use super::input::{self, ADMIT, ENTER, EXIT, Question};
use crate::host::AgentState;
use crate::tenant::decide::Waits;
use crate::tenant::permit;

#[derive(Serialize)]
struct EnteredRequest {
    admitted: bool,
    permit: String,
    wait_ms: u32,
}

/// Asks for a permit. It ends by the clock, since no process holds it.
pub(super) async fn enter(
    State(context): State<Arc<AgentState>>,
    ConnectInfo(caller): ConnectInfo<Caller>,
    body: Bytes,
) -> Result<Response, Wrong> {
    let question = Question::take(Fields::of_json(&body, &ENTER)?)?;
    let tenant = caller.tenant();
    let args = question.args();
    let place = context.bounds.permits.take(caller.holder);
    let place = place.map_err(|no_place| busy(&no_place))?;
    let token = permit::draw().map_err(|errno| busy(&errno))?;
    let waits = Waits::at_most(context.max_wait);
    let seated = caller.seated(&context);
    match tenant.decide(&seated, &question.with(&args), waits).await {
        GateVerdict::Admitted(pass) => {
            let mut permits = tenant.timed_permits().lock();
            permits.hold(token, seated.permit(pass), place, ends_ns(&context));
            Ok(Json(EnteredRequest {
                admitted: true,
                permit: input::token_text(&token),
                wait_ms: whole_ms(pass.waited_ns),
            })
            .into_response())
        }
        GateVerdict::Refused(refusal) => Ok(answer::refused(tenant, &refusal)),
        GateVerdict::Stale => Err(stale()),
    }
}

/// When a permit that is given now ends, monotonic ns.
fn ends_ns(context: &AgentState) -> u64 {
    let life_ns = u64::try_from(context.permit_time_to_live.as_nanos());
    monotonic_ns().saturating_add(life_ns.unwrap_or(u64::MAX))
}

/// Gives a permit back.
pub(super) async fn exit(
    ConnectInfo(caller): ConnectInfo<Caller>,
    body: Bytes,
) -> Result<Response, Wrong> {
    let (token, outcome) = input::ended(Fields::of_json(&body, &EXIT)?)?;
    let tenant = caller.tenant();
    let permit = tenant
        .timed_permits()
        .lock()
        .take(&token, caller.holder.uid);
    let Some(permit) = permit else {
        return Err(Wrong::new(
            StatusCode::NOT_FOUND,
            "permit: none of this user is held under it; it was given back already, has ended by the clock \
             (http.permit_time_to_live), or is another user's: nothing is left to give back",
        ));
    };
    tenant.exit(permit, outcome);
    Ok(Json(json!({})).into_response())
}

/// Decides once and holds nothing.
pub(super) async fn admit(
    State(context): State<Arc<AgentState>>,
    ConnectInfo(caller): ConnectInfo<Caller>,
    uri: Uri,
) -> Result<Response, Wrong> {
    let question = Question::take(Fields::of_query(&uri, &ADMIT)?)?;
    let tenant = caller.tenant();
    let args = question.args();
    let waits = Waits::at_most(context.max_wait);
    match tenant
        .decide_once(&caller.seated(&context), &question.with(&args), waits)
        .await
    {
        GateVerdict::Admitted(_given_back) => Ok(Json(json!({"admitted": true})).into_response()),
        GateVerdict::Refused(refusal) => Ok(answer::refused(tenant, &refusal)),
        GateVerdict::Stale => Err(stale()),
    }
}

/// The wait of a pass, rounded up.
fn whole_ms(waited_ns: u64) -> u32 {
    u32::try_from(waited_ns.div_ceil(1_000_000)).unwrap_or(u32::MAX)
}

fn busy(error: &impl std::fmt::Display) -> Wrong {
    Wrong::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
}

fn stale() -> Wrong {
    let text = "the resource changed while the agent decided; ask again";
    Wrong::new(StatusCode::SERVICE_UNAVAILABLE, text)
}
