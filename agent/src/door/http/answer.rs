//! Bodies of refusals and errors.

use std::fmt::Display;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tidegate_abi::decision::{Reason, RefusalKind};
use tidegate_segment::clock::monotonic_ns;
use tidegate_segment::gate::Refusal;

use crate::schema::source::shown;
use crate::tenant::Tenant;
use crate::words::{many, ms};

/// From this age on a permit is taken for one that was forgotten, ms.
const LONG_MS: u64 = 1_000;

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

/// A body of JSON that ends its line, so that a shell's prompt does not stick to it.
#[derive(Debug)]
pub(super) struct Json<T>(pub(super) T);

/// Content type of [`json_line`].
pub(super) const JSON: &str = "application/json";

/// A value as a line of JSON.
pub(super) fn json_line(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match json_line(&self.0) {
            Ok(body) => ([(CONTENT_TYPE, JSON)], body).into_response(),
            Err(error) => {
                let text = format!("the answer cannot be written: {error}\n");
                (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
            }
        }
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
    /// Whether trying again makes sense, after this time.
    retry: bool,
    /// 0 where it does not.
    retry_after_ms: u64,
    /// What else an operator should know.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// 503 where the machine is short of CPU, 429 where a rule refused.
pub(super) fn refused(tenant: &Tenant, refusal: &Refusal) -> Response {
    let status = match refusal.kind {
        RefusalKind::System => StatusCode::SERVICE_UNAVAILABLE,
        RefusalKind::Authority | RefusalKind::Param | RefusalKind::Flow | RefusalKind::Degrade => {
            StatusCode::TOO_MANY_REQUESTS
        }
    };
    let limits = tenant.directory().rule_index();
    let retry_after_ms = if refusal.retry {
        refusal.retry_after_ns.div_ceil(1_000_000)
    } else {
        0
    };
    let body = Refused {
        admitted: false,
        kind: refusal.kind.name(),
        rule: limits.id(refusal.rule),
        reason: refusal.reason.name(),
        value: refusal.value,
        limit: refusal.limit,
        retry: refusal.retry,
        retry_after_ms,
        note: not_given_back(tenant, refusal),
    };
    let mut response = (status, Json(body)).into_response();
    if refusal.retry {
        // The header has whole seconds; 0 would invite at once.
        let seconds = retry_after_ms.div_ceil(1000).max(1);
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// Where permits by HTTP that nobody gives back are at least half of what a limit in flight allows, they are why
/// it is reached.
fn not_given_back(tenant: &Tenant, refusal: &Refusal) -> Option<String> {
    if ![Reason::Overload, Reason::Concurrency].contains(&refusal.reason) {
        return None;
    }
    let held = tenant.timed_permits().lock().outstanding(None);
    let age_ms = monotonic_ns().saturating_sub(held.oldest_ns) / 1_000_000;
    if held.permits.saturating_mul(2) < refusal.limit.into()
        || age_ms < LONG_MS
        || held.permits == 0
    {
        return None;
    }
    Some(format!(
        "{} by HTTP not given back, the oldest for {}; give each back with POST /v1/exit",
        many(held.permits, "permit"),
        ms(age_ms)
    ))
}

/// The whole answer to a connection over a bound, which ends with it.
pub(super) fn over_the_bound(why: &impl Display) -> String {
    let body = format!("{{\"error\":\"{why}\"}}\n");
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
