//! How the agent is, in one line for the service manager.

use crate::control::Snapshot;
use crate::report::why;
use crate::telemetry::reload::RefusedReload;

/// `8 rules, 3 clients, host healthy`, and before it which socket is missing and how the last reload was refused, if so.
pub(super) fn state_line(
    rules: usize,
    clients: usize,
    snapshot: &Snapshot,
    refused: Option<&RefusedReload>,
    missing: Option<&str>,
) -> String {
    let host = snapshot.scopes.first();
    let host = host.map_or("not measured yet", |host| why::state_of(host));
    let [rules, clients] = [(rules, "rule"), (clients, "client")].map(counted);
    let line = format!("{rules}, {clients}, host {host}");
    let line = refused.map_or_else(|| line.clone(), |refused| format!("{refused}; {line}"));
    let line = missing.map_or_else(
        || line.clone(),
        |socket| format!("{socket} is missing, nobody new can connect; {line}"),
    );
    // The service manager takes one line for one variable.
    line.replace(|one: char| one.is_control(), " ")
}

fn counted((many, one): (usize, &str)) -> String {
    let end = if many == 1 { "" } else { "s" };
    format!("{many} {one}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::reload::{Instead, LastReading};

    #[test]
    fn field_o8_the_service_manager_is_told_in_one_line() {
        let nothing = Snapshot::default();
        assert_eq!(
            state_line(8, 1, &nothing, None, None),
            "8 rules, 1 client, host not measured yet"
        );
        let last = LastReading::default();
        last.refuse(Instead::Rules, 2, "a\nSTATUS=b:1:1".to_owned());
        let refused = last.refused();
        assert_eq!(
            state_line(1, 0, &nothing, refused.as_ref(), None),
            "last reload refused 0 s ago: 2 faults, a STATUS=b:1:1; the rules before stay in force; \
             1 rule, 0 clients, host not measured yet"
        );
        assert_eq!(
            state_line(1, 0, &nothing, None, Some("gate.sock")),
            "gate.sock is missing, nobody new can connect; 1 rule, 0 clients, host not measured yet"
        );
    }
}
