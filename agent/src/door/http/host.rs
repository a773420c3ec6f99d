//! Which hosts may be asked for at the TCP port. A page in a browser can let its own name lead to a loopback address, and
//! would then read what is told there; but its name is in the request.

use std::net::IpAddr;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};

/// Whether a request asks for this machine by a loopback address or `localhost`, or by one of these names. A request
/// that names nobody comes from no browser.
pub(super) fn is_own(uri: &Uri, headers: &HeaderMap, names: &[String]) -> bool {
    let in_head = headers.get_all(header::HOST).iter();
    let mut in_head = in_head.map(|host| host.to_str().unwrap_or_default());
    let in_line = uri.authority().map(Authority::as_str);
    in_head.all(|host| is_one_of(host, names)) && in_line.is_none_or(|host| is_one_of(host, names))
}

fn is_one_of(host: &str, names: &[String]) -> bool {
    let name = without_port(host.trim());
    let is_loopback = |address: IpAddr| address.is_loopback();
    name.eq_ignore_ascii_case("localhost")
        || name.parse().is_ok_and(is_loopback)
        || names.iter().any(|own| name.eq_ignore_ascii_case(own))
}

fn without_port(host: &str) -> &str {
    if let Some((address, _port)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => host,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn may_ask(host: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
        is_own(
            &Uri::from_static("/metrics"),
            &headers,
            &["metrics.example.org".to_owned()],
        )
    }

    #[test]
    fn field_b5_this_machine_and_configured_names_may_be_asked_for() {
        for host in [
            "127.0.0.1:9469",
            "127.0.0.1",
            "127.8.8.8:1",
            "localhost:9469",
            "LOCALHOST",
            "[::1]:9469",
            "[::1]",
            "Metrics.example.org",
            "metrics.example.org:80",
        ] {
            assert!(may_ask(host), "{host}");
        }
    }

    #[test]
    fn field_b5_other_names_may_not_however_they_look() {
        for host in [
            "evil.example",
            "evil.example:9469",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "evil.example:127.0.0.1",
            "10.0.0.1:9469",
            "[::2]:9469",
            "[127.0.0.1.evil]:1",
            "",
            " ",
            ":9469",
            "0.0.0.0",
            "user@evil.example",
        ] {
            assert!(!may_ask(host), "{host}");
        }
    }

    #[test]
    fn field_b5_every_name_in_a_request_counts() {
        let mut headers = HeaderMap::new();
        headers.append(header::HOST, HeaderValue::from_static("localhost"));
        assert!(is_own(&Uri::from_static("/metrics"), &headers, &[]));
        let absolute = Uri::from_static("http://evil.example/metrics");
        assert!(!is_own(&absolute, &headers, &[]));
        headers.append(header::HOST, HeaderValue::from_static("evil.example"));
        assert!(!is_own(&Uri::from_static("/metrics"), &headers, &[]));
        headers.clear();
        headers.append(header::HOST, HeaderValue::from_bytes(b"\xff").unwrap());
        assert!(!is_own(&Uri::from_static("/metrics"), &headers, &[]));
        assert!(is_own(
            &Uri::from_static("/metrics"),
            &HeaderMap::new(),
            &[]
        ));
    }
}
