//! How a gRPC call ended.

use http::HeaderMap;
use tidegate_abi::decision::Outcome;

/// The trailer that says it.
pub(super) const GRPC_STATUS: &str = "grpc-status";

/// How a call ended by its `grpc-status`; `None` without one. What the service could not do is its failure, as with HTTP.
pub(super) fn of_grpc(trailers: &HeaderMap) -> Option<Outcome> {
    let status = trailers.get(GRPC_STATUS)?.to_str().ok()?;
    Some(match status {
        // CANCELLED
        "1" => Outcome::Ignore,
        // UNKNOWN, DEADLINE_EXCEEDED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS
        "2" | "4" | "12" | "13" | "14" | "15" => Outcome::Error,
        _of_the_caller => Outcome::Ok,
    })
}
