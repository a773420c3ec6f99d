//! Bodies of refusals and errors.

use std::fmt::Display;

use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tidegate_abi::decision::RefusalKind;
use tidegate_segment::gate::Refusal;

use crate::tenant::Tenant;

/// What was wrong with a request: its field, the value, what is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    status: StatusCode,
    text: String,
}

#[derive(Serialize)]
struct WrongBody<'w> {
    error: &'w str,
}

impl Wrong {
    pub(super) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
        }
    }

    /// The caller's fault.
    pub(super) fn input(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }
}

impl IntoResponse for Wrong {
    fn into_response(self) -> Response {
        (self.status, Json(WrongBody { error: &self.text })).into_response()
    }
}

#[derive(Serialize)]
struct Refused<'r> {
    admitted: bool,
    kind: &'static str,
    /// Id of the rule; null where no rule refused but a scope.
    rule: Option<&'r str>,
    reason: &'static str,
    /// What was measured, and what it was held against.
    value: u32,
    limit: u32,
    /// Whether trying again makes sense.
    retry: bool,
    retry_after_ms: u64,
}

/// 503 where the machine is short of CPU, 429 where a rule refused.
pub(super) fn refused(tenant: &Tenant, refusal: &Refusal) -> Response {
    let status = match refusal.kind {
        RefusalKind::System => StatusCode::SERVICE_UNAVAILABLE,
        RefusalKind::Authority | RefusalKind::Param | RefusalKind::Flow | RefusalKind::Degrade => {
            StatusCode::TOO_MANY_REQUESTS
        }
    };
    let limits = tenant.directory().limits();
    let retry_after_ms = refusal.retry_after_ns.div_ceil(1_000_000);
    let body = Refused {
        admitted: false,
        kind: refusal.kind.name(),
        rule: limits.id(refusal.rule),
        reason: refusal.reason.name(),
        value: refusal.value,
        limit: refusal.limit,
        retry: refusal.retry,
        retry_after_ms,
    };
    // The header has whole seconds; 0 would invite at once.
    let seconds = retry_after_ms.div_ceil(1000).max(1);
    (status, [(RETRY_AFTER, seconds.to_string())], Json(body)).into_response()
}

/// The whole answer to a connection over a bound, which ends with it.
pub(super) fn over_the_bound(why: &impl Display) -> String {
    let body = format!("{{\"error\":\"{why}\"}}");
    let length = body.len();
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n\
         connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

pub(super) async fn not_found(uri: Uri) -> Wrong {
    let text = format!("there is no {}; see the routes in README.md", uri.path());
    Wrong::new(StatusCode::NOT_FOUND, text)
}

pub(super) async fn method_not_allowed(method: Method, uri: Uri) -> Wrong {
    let text = format!("{} does not take {method}", uri.path());
    Wrong::new(StatusCode::METHOD_NOT_ALLOWED, text)
}
