//! A refusal as the answer to an HTTP request.

use std::fmt::Write as _;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

use crate::refused::Refused;

impl Refused {
    /// The HTTP answer to the request: 429 or 503, `Retry-After` where coming again helps, and a body of
    /// [`Refused::problem`] about `resource`.
    pub fn to_response(self, resource: &str) -> Response<String> {
        let mut response = self.head().map(|()| self.problem(resource));
        let json = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        response
    }

    /// The same without a body.
    pub(crate) fn head(&self) -> Response<()> {
        let mut response = Response::new(());
        *response.status_mut() =
            StatusCode::from_u16(self.http_status()).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
        if self.retry {
            let seconds = self.retry_after_s().into();
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        response
    }

    /// The refusal of a request for `resource` as `application/problem+json` (RFC 9457).
    ///
    /// The name comes from a program and yet may hold any text, so control characters, and those that turn the direction
    /// of what follows, are escaped.
    pub fn problem(&self, resource: &str) -> String {
        let status = self.http_status();
        let title = if status == 429 {
            "Too Many Requests"
        } else {
            "Service Unavailable"
        };
        let mut json = format!(
            "{{\"type\":\"about:blank\",\"title\":\"{title}\",\"status\":{status},\"resource\":\""
        );
        escape(resource, &mut json);
        let (kind, reason) = (self.kind.name(), self.reason.name());
        let rule = self
            .rule
            .map_or_else(String::new, |rule| format!(",\"rule\":{rule}"));
        let (value, limit, retry) = (self.value, self.limit, self.retry);
        let retry_after_ms = self.retry_after.as_millis();
        // A string takes what is written.
        let _written = write!(
            json,
            "\",\"detail\":\"{self}\",\"kind\":\"{kind}\",\"reason\":\"{reason}\"{rule},\"value\":{value},\
             \"limit\":{limit},\"retry\":{retry},\"retry_after_ms\":{retry_after_ms}}}"
        );
        json
    }
}

/// Writes text as the inside of a JSON string.
fn escape(text: &str, json: &mut String) {
    for letter in text.chars() {
        let turns = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        match letter {
            '"' | '\\' => json.extend(['\\', letter]),
            _control if letter.is_control() || turns => {
                let _written = write!(json, "\\u{:04x}", u32::from(letter));
            }
            _other => json.push(letter),
        }
    }
}

#[cfg(all(target_os = "linux", not(tidegate_stub)))]
#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate_abi::decision::{Reason, RefusalKind};
    use tidegate_segment::gate::Refusal;

    use super::*;

    fn refused(kind: RefusalKind, reason: Reason, retry: bool) -> Refused {
        Refused::from(Refusal {
            kind,
            reason,
            retry,
            rule: 3,
            value: 100,
            limit: 100,
            retry_after_ns: 213_000_000,
        })
    }

    #[test]
    fn a_refusal_is_a_problem_that_says_who_why_and_when() {
        let response = refused(RefusalKind::Flow, Reason::Qps, true).to_response("orders");
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()[RETRY_AFTER], "1");
        assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
        assert_eq!(
            response.body(),
            "{\"type\":\"about:blank\",\"title\":\"Too Many Requests\",\"status\":429,\"resource\":\"orders\",\
             \"detail\":\"refused by flow (qps): 100 of 100, retry in 213 ms\",\"kind\":\"flow\",\"reason\":\"qps\",\
             \"rule\":3,\"value\":100,\"limit\":100,\"retry\":true,\"retry_after_ms\":213}"
        );
        let never = refused(RefusalKind::Authority, Reason::Origin, false).to_response("orders");
        assert!(
            !never.headers().contains_key(RETRY_AFTER),
            "coming again does not help"
        );
    }

    #[test]
    fn a_name_of_255_bytes_that_runs_from_right_to_left_stays_in_its_place() {
        // 127 letters of two bytes, and an override of three in the place of one and a half.
        let name = format!("\u{202e}{}", "\u{5d0}".repeat(126));
        assert_eq!(name.len(), 255);
        let refused = refused(RefusalKind::System, Reason::Overload, true);
        let problem = refused.problem(&name);
        assert!(
            problem.contains("\"resource\":\"\\u202e\u{5d0}"),
            "{problem}"
        );
        assert!(
            problem.contains("\",\"detail\":\"refused by system (overload)"),
            "{problem}"
        );
        assert!(!problem.contains('\u{202e}'));
        assert!(
            refused
                .problem("a\"b\\c\n")
                .contains("\"resource\":\"a\\\"b\\\\c\\u000a\"")
        );
        assert_eq!(refused.retry_after, Duration::from_millis(213));
    }
}
