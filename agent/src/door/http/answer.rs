//! Bodies of refusals and errors.

use std::fmt::Display;

use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tidegate_abi::decision::RefusalKind;
use tidegate_segment::gate::Refusal;

use crate::config::schema::source::shown;
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

/// Paths and methods that are answered, for who asks for others.
#[derive(Debug)]
pub(super) struct Routes(Vec<(&'static str, &'static str)>);

impl FromIterator<(&'static str, &'static str)> for Routes {
    fn from_iter<I: IntoIterator<Item = (&'static str, &'static str)>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}

impl Routes {
    pub(super) fn not_found(&self, uri: &Uri) -> Wrong {
        let all: Vec<_> = self
            .0
            .iter()
            .map(|(path, method)| format!("{method} {path}"))
            .collect();
        let (path, all) = (shown(uri.path()), all.join(", "));
        let text = format!("there is no {path}; allowed are {all}");
        Wrong::new(StatusCode::NOT_FOUND, text)
    }

    pub(super) fn method_not_allowed(&self, method: &Method, path: &str) -> Wrong {
        let of_path = self.0.iter().filter(|(own, _method)| *own == path);
        let allowed: Vec<_> = of_path.map(|(_path, method)| *method).collect();
        let (method, allowed) = (shown(method.as_str()), allowed.join(", "));
        let text = format!("{path} does not take {method}; allowed is {allowed}");
        Wrong::new(StatusCode::METHOD_NOT_ALLOWED, text)
    }
}
