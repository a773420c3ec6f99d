//! Sockets, and their directory, that somebody deletes under the agent.

#![cfg(test)]

use std::fs;

use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::until::{self, SOON};

fn errors(agent: &Agent) -> usize {
    let log = agent.log();
    log.lines().filter(|line| line.contains("ERROR")).count()
}

#[test]
fn field_b7_sockets_that_are_deleted_are_told_once_and_made_again() {
    let agent = Agent::start_logging("", CALM);
    let sockets = ["gate.sock", "http.sock"].map(|name| agent.runtime_dir().join(name));
    for socket in &sockets {
        fs::remove_file(socket).expect("the agent made it");
    }
    until::holds("both sockets serve again", SOON, || agent.serves());
    assert_eq!(agent.ask_http("GET", "/healthz", "").status, 200);
    // A socket listens a moment before that is told.
    until::holds("an error for each", SOON, || errors(&agent) >= 2);
    let log = agent.log();
    for socket in sockets {
        let told = format!("socket={}", socket.display());
        let told = |line: &&str| line.contains("ERROR") && line.contains(&told);
        assert_eq!(log.lines().filter(told).count(), 1, "{log}");
    }
    assert_eq!(errors(&agent), 2, "{log}");
}

#[test]
fn field_b7_a_runtime_directory_that_is_deleted_is_made_again() {
    let agent = Agent::start_logging("", CALM);
    let directory = agent.runtime_dir();
    let aside = directory.with_extension("gone");
    // In one step: while names are deleted one by one, the agent may make one again.
    fs::rename(&directory, &aside).expect("the agent made it");
    fs::remove_dir_all(aside).expect("the agent is not there any more");
    until::holds("both sockets serve again", SOON, || agent.serves());
    assert_eq!(agent.ask_http("GET", "/healthz", "").status, 200);
}

#[test]
fn field_b7_a_socket_that_cannot_be_made_again_is_told_with_what_to_do_until_it_can() {
    let agent = Agent::start_logging("", CALM);
    let gate = agent.runtime_dir().join("gate.sock");
    let file = agent.runtime_dir().join("file");
    fs::write(&file, "").expect("the directory is ours");
    fs::rename(file, &gate).expect("the directory is ours");
    until::holds("an error that names the file", SOON, || {
        let log = agent.log();
        log.contains("exists and is not a socket") && log.contains("restart the agent")
    });
    // The other socket serves on.
    assert_eq!(agent.ask_http("GET", "/healthz", "").status, 200);
    fs::remove_file(&gate).expect("the directory is ours");
    until::holds("the gate socket serves again", SOON, || agent.serves());
    let log = agent.log();
    let cannot = log.matches("cannot be created again").count();
    assert_eq!(cannot, 1, "{log}");
}
