//! An agent in a control group namespace of its own, as in a container: its services are joined to their scopes, or it
//! is said that their groups are out of sight.

#![cfg(test)]

use std::process::Command;

use tidegate_tests::actor::Actor;
use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::confined::ConfinedProcess;
use tidegate_tests::{skip, until};

/// A command that joins a group and runs what follows in a namespace whose top is that group, after `prepared`.
fn inside(group: &ConfinedProcess, prepared: &str) -> Option<Command> {
    let name = group.cgroup.trim_start_matches('/');
    let join = format!(
        "for controller in cpu cpuacct; do echo $$ >/sys/fs/cgroup/$controller/{name}/cgroup.procs || exit; done; \
         exec unshare --cgroup --mount sh -c '{prepared} exec \"$@\"' sh \"$@\""
    );
    let command = || {
        let mut command = Command::new("sh");
        command.args(["-c", &join, "sh"]);
        command
    };
    let tried = command().arg("true").output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        skip::skip("needs a control group namespace and mounts of its own, as root has them");
        return None;
    }
    Some(command())
}

fn sleeping(name: &str) -> Option<ConfinedProcess> {
    ConfinedProcess::start(name, Command::new("sleep").arg("600"))
}

#[test]
fn field_s17_an_agent_with_the_hosts_mount_joins_a_service_to_its_scope() {
    let (Some(own), Some(group)) = (sleeping("ns-agent"), sleeping("ns-service")) else {
        return;
    };
    group.limit(30_000);
    let Some(command) = inside(&own, "") else {
        return;
    };
    let path = group.cgroup.trim_start_matches('/');
    let config = format!("{CALM}[[scope]]\nname = \"web\"\ncgroup = \"/{path}\"\n");
    let agent = Agent::start_by(command, &config);
    let _service = Actor::start_in(&group, &agent.runtime_dir());
    until::holds("a client in the scope of its group", until::SOON, || {
        agent.get("/v1/status")["clients"][0]["scope"] == "web"
    });
    let status = agent.get("/v1/status");
    let scopes = status["scopes"].as_array().cloned().unwrap_or_default();
    let web = scopes.iter().find(|scope| scope["name"] == "web");
    let cpus = web.map(|web| web["signals"]["effective_cpus"]["value"].clone());
    assert_eq!(cpus, Some(0.3.into()));
}

#[test]
fn field_s17_a_service_whose_group_is_out_of_sight_is_told() {
    let (Some(own), Some(group)) = (sleeping("ns-blind"), sleeping("ns-unseen")) else {
        return;
    };
    // As a container has it: each hierarchy begins with the container's own group.
    let prepared = "for controller in cpu cpuacct; do umount -l /sys/fs/cgroup/$controller && mount -t cgroup -o $controller none /sys/fs/cgroup/$controller || exit; done;";
    let Some(command) = inside(&own, prepared) else {
        return;
    };
    let agent = Agent::start_logging_by(command, CALM);
    let _service = Actor::start_in(&group, &agent.runtime_dir());
    until::holds("a line of the log", until::SOON, || {
        agent
            .log()
            .contains("a service is in a group that is not in sight")
    });
    assert_eq!(agent.get("/v1/status")["clients"][0]["scope"], "host");
}
