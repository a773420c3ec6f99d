//! What waits at the listening sockets of a service counts as work that it holds.

#![cfg(test)]

use std::net::{Ipv4Addr, TcpStream};

use tidegate_limits::number::whole_u32;
use tidegate_tests::actor::Actor;
use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::until::{self, SOON};

/// A limit of a handful of requests whatever the machine does meanwhile. The rate at which a test asks says
/// nothing of a capacity, so the response time counts alone (`delay`), which is next to nothing; and the CPU
/// is short from the first tick on (`busy_ratio`), so the queue decides and not who else is busy.
const SMALL: &str = "
[cpu]
enabled = false
[load]
enabled = false
[law.entry]
delay = \"1ms\"
least_requests = 10.0
least_qps = 0.0
[law.cold]
entry_per_cpu = 1.0
tight_per_cpu = 1.0
[law.tight]
delay = \"1ms\"
slack_requests = 1.0
floor_requests = 2
[law.evidence]
ticks = 1
busy_ratio = 0.0
";

/// The length of the host's accept queue as the agent tells it; `None` while it is not measured.
fn queue(agent: &Agent) -> Option<u32> {
    let status = agent.get("/v1/status");
    let signal = status.pointer("/scopes/0/signals/accept_queue");
    let value = signal.and_then(|signal| signal.get("value"))?;
    value.as_f64().map(whole_u32)
}

fn call(port: &str) -> TcpStream {
    let port = port.parse().expect("a port");
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the actor listens")
}

#[test]
fn the_queue_of_a_listener_is_told_while_its_service_lives() {
    let mut agent = Agent::start("", CALM);
    let mut actor = Actor::start(&agent.runtime_dir());
    assert_eq!(queue(&agent), None);
    let port = actor.ask("listen");
    until::holds("an empty queue", SOON, || queue(&agent) == Some(0));
    let _callers = [0, 1, 2].map(|_caller| call(&port));
    until::holds("a queue of three", SOON, || queue(&agent) == Some(3));
    assert_eq!(actor.ask("accept 2"), "accepted 2");
    until::holds("a queue of one", SOON, || queue(&agent) == Some(1));
    // The next agent is told as well.
    agent.kill();
    agent.start_again();
    until::holds("the queue again", SOON, || queue(&agent) == Some(1));
    actor.kill();
    until::holds("no listener", SOON, || queue(&agent).is_none());
}

#[test]
fn alone_a_service_that_holds_nothing_refuses_while_too_much_waits_at_its_door() {
    let agent = Agent::start("", SMALL);
    let mut actor = Actor::start(&agent.runtime_dir());
    let port = actor.ask("listen");
    until::holds("an empty queue", SOON, || queue(&agent) == Some(0));
    assert_eq!(actor.ask("try order 5"), "passed 5 refused 0 none");
    let callers: Vec<TcpStream> = (0..100).map(|_caller| call(&port)).collect();
    until::holds("a refusal", SOON, || {
        actor.ask("try order 1") == "passed 0 refused 1 overload"
    });
    // What is accepted and over waits no more, and the service itself sees that at once.
    assert_eq!(actor.ask("accept 100"), "accepted 100");
    drop(callers);
    until::holds("admission", SOON, || {
        actor.ask("try order 1") == "passed 1 refused 0 none"
    });
}
