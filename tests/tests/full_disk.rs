//! An agent whose log cannot be written, as on a full disk.

#![cfg(test)]

use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::reload_state;
use tidegate_tests::until::{self, SOON};

const NOBODY: &str = "
[[flow]]
resource = \"order\"
count = 0
";

#[test]
fn an_agent_whose_log_takes_nothing_serves_and_reads_rules() {
    let agent = Agent::start_with_full_log("", CALM);
    let enter = || agent.ask_http("POST", "/v1/enter", r#"{"resource":"order"}"#);
    assert_eq!(enter().status, 200);
    // Each of these is logged.
    agent.write_rules("[[flow]]\ncount = nan\n");
    until::holds("a refused reload", SOON, || {
        !reload_state::refused(&agent).is_null()
    });
    agent.write_rules(NOBODY);
    until::holds("the new rules are in force", SOON, || enter().status == 429);
}
