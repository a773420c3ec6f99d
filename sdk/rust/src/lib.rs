//! What the examples share.

use std::net::SocketAddr;

/// Where an example serves or calls: `$ADDRESS`, or port 8080 of this host.
#[must_use]
pub fn address() -> SocketAddr {
    let named = std::env::var("ADDRESS").ok();
    let usual = SocketAddr::from(([127, 0, 0, 1], 8080));
    named.and_then(|text| text.parse().ok()).unwrap_or(usual)
}
