//! What tests of an agent that is started anew share.

use serde_json::Value;

use crate::agent::Agent;
use crate::until::{self, SOON};

/// A limit that counts what is in flight, and one that counts for an hour.
pub const RULES: &str = "
[[flow]]
resource = \"work\"
grade = \"concurrency\"
count = 10
[[flow]]
resource = \"hourly\"
count = 50
window = \"1h\"
";

/// Waits until so many clients that fit are connected.
///
/// # Panics
/// If they do not come.
pub fn wait_for_clients(agent: &Agent, count: usize, fits: impl Fn(&Value) -> bool) {
    until::holds("clients that have come back", SOON, || {
        let status = agent.get("/v1/status");
        let clients = status.get("clients").and_then(Value::as_array);
        let clients = clients.into_iter().flatten();
        clients.filter(|client| fits(client)).count() == count
    });
}
