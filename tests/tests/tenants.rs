//! Tenants: services that do not trust each other have rules, counts and pages apart.

#![cfg(test)]

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_tests::actor::Actor;
use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::confined::ConfinedProcess;
use tidegate_tests::program::Program;
use tidegate_tests::until::{self, SOON};
use tidegate_tests::user::{self, act_as};

const RULE: &str = "[[flow]]\nresource = \"order\"\ngrade = \"concurrency\"\ncount = 3\n";
const STRICTER: &str = "[[flow]]\nresource = \"order\"\ngrade = \"concurrency\"\ncount = 1\n";

const BLUE: u32 = user::TWO[0];
const GREEN: u32 = user::TWO[1];

/// An agent with a tenant for each of two users, and the directory of the second one's own rules.
fn two_tenants(more: &str) -> (Agent, TempDir) {
    let green = tempfile::tempdir().expect("there is room for a directory");
    fs::write(green.path().join("green.toml"), STRICTER).expect("the directory is ours");
    let config = format!(
        "{CALM}{more}[socket]\nmode = \"0666\"\n\
         [[tenant]]\nname = \"blue\"\nuid = {BLUE}\n\
         [[tenant]]\nname = \"green\"\nuid = {GREEN}\nrules_dir = \"{}\"\n",
        green.path().display()
    );
    let agent = Agent::start(RULE, &config);
    agent.open_directory();
    (agent, green)
}

/// What a list of the status says of the tenants, in its order.
fn named(status: &Value, list: &str, tenant: &str) -> Vec<Value> {
    let found = status.get(list).and_then(Value::as_array);
    let found = found.into_iter().flatten();
    found
        .filter(|one| one.get("tenant") == Some(&json!(tenant)))
        .cloned()
        .collect()
}

#[test]
fn each_tenant_counts_apart_under_its_own_rules() {
    if !user::are_at_hand() {
        return;
    }
    let (agent, _green_rules) = two_tenants("");
    let mut root = Actor::start(&agent.runtime_dir());
    let [mut blue, mut green] = user::TWO.map(|uid| Actor::start_as(uid, &agent.runtime_dir()));
    assert_eq!(blue.ask("take order 5"), "taken 3 refused 2");
    assert_eq!(root.ask("take order 5"), "taken 3 refused 2");
    assert_eq!(green.ask("take order 5"), "taken 1 refused 4");
    for actor in [&mut root, &mut blue, &mut green] {
        assert_eq!(actor.ask("door"), "shm");
    }
    // A death gives back to its own tenant, and to it alone.
    blue.kill();
    let mut blue = Actor::start_as(BLUE, &agent.runtime_dir());
    until::holds("permits of the dead", SOON, || {
        blue.ask("try order 1") == "passed 1 refused 0 none"
    });
    assert_eq!(root.ask("try order 1"), "passed 0 refused 1 concurrency");
}

#[test]
fn rules_of_a_tenant_change_under_it_alone() {
    if !user::are_at_hand() {
        return;
    }
    let (agent, green_rules) = two_tenants("");
    let mut root = Actor::start(&agent.runtime_dir());
    let mut green = Actor::start_as(GREEN, &agent.runtime_dir());
    assert_eq!(root.ask("take order 5"), "taken 3 refused 2");
    assert_eq!(green.ask("take order 5"), "taken 1 refused 4");
    // With a fault nothing changes; without one it does.
    let file = green_rules.path().join("green.toml");
    fs::write(&file, STRICTER.replace("count = 1", "count = -1")).expect("the directory is ours");
    fs::write(&file, STRICTER.replace("count = 1", "count = 2")).expect("the directory is ours");
    until::holds("a rule of its own that changed", SOON, || {
        green.ask("try order 1") == "passed 1 refused 0 none"
    });
    assert_eq!(root.ask("try order 1"), "passed 0 refused 1 concurrency");
}

/// Two tenants of which one, and the default one, hold a permit of their own.
fn two_that_hold() -> (Agent, TempDir, [Actor; 2]) {
    let (agent, green_rules) = two_tenants("");
    let mut blue = Actor::start_as(BLUE, &agent.runtime_dir());
    let mut root = Actor::start(&agent.runtime_dir());
    assert_eq!(blue.ask("take blue-secret 1"), "taken 1 refused 0");
    assert_eq!(root.ask("take root-secret 1"), "taken 1 refused 0");
    (agent, green_rules, [blue, root])
}

#[test]
fn a_tenant_sees_itself_alone() {
    if !user::are_at_hand() {
        return;
    }
    let (agent, _green_rules, _actors) = two_that_hold();
    let of_blue = Program::Tidegate
        .command()
        .args(["status", "--json", "--runtime-dir"])
        .arg(agent.runtime_dir())
        .uid(BLUE)
        .output()
        .expect("the command runs");
    let status: Value = serde_json::from_slice(&of_blue.stdout).expect("the status is JSON");
    assert_eq!(named(&status, "clients", "blue").len(), 1, "{status}");
    let text = status.to_string();
    assert!(text.contains("blue-secret"), "{text}");
    assert!(!text.contains("root-secret"), "{text}");
    assert!(named(&status, "clients", "default").is_empty());
    for path in ["/metrics", "/v1/resources", "/v1/rules"] {
        let told = act_as(BLUE, || agent.ask_http("GET", path, ""));
        assert_eq!(told.status, 200, "{path}");
        for hidden in ["root-secret", "green", "default.toml"] {
            assert!(!told.body.contains(hidden), "{path}: {}", told.body);
        }
    }
}

#[test]
fn root_sees_all_tenants() {
    if !user::are_at_hand() {
        return;
    }
    let (agent, _green_rules, _actors) = two_that_hold();
    let all = agent.get("/v1/status");
    for tenant in ["blue", "default"] {
        assert_eq!(named(&all, "clients", tenant).len(), 1, "{all}");
    }
    let metrics = agent.ask_http("GET", "/metrics", "").body;
    for line in [
        "tidegate_resource_inflight{resource=\"root-secret\"} 1",
        "tidegate_resource_inflight{resource=\"blue-secret\",tenant=\"blue\"} 1",
        "tidegate_clients 1",
        "tidegate_clients{tenant=\"blue\"} 1",
        "tidegate_clients{tenant=\"green\"} 0",
    ] {
        assert!(
            metrics.lines().any(|told| told == line),
            "{line}: {metrics}"
        );
    }
}

#[test]
fn a_hostile_tenant_takes_neither_permits_nor_seats_of_another() {
    if !user::are_at_hand() {
        return;
    }
    let (agent, _green_rules) = two_tenants("[pages]\nmax_seats = 2\n");
    let enter = || agent.ask_http("POST", "/v1/enter", "{\"resource\":\"order\"}");
    let given: Value = serde_json::from_str(&enter().body).expect("the answer is JSON");
    let exit = json!({"permit": given["permit"], "outcome": "ok"}).to_string();
    let exit = || agent.ask_http("POST", "/v1/exit", &exit);
    for uid in user::TWO {
        let refused = act_as(uid, exit);
        assert_eq!(refused.status, 404, "{}", refused.body);
        assert!(
            refused.body.contains("none of this user is held"),
            "{}",
            refused.body
        );
    }
    assert_eq!(agent.inflight("order"), 1);
    // A tenant that takes all its seats leaves the others theirs.
    let mut blue = [0, 1].map(|_process| Actor::start_as(BLUE, &agent.runtime_dir()));
    assert_eq!(blue[0].ask("door"), "shm");
    assert_eq!(blue[1].ask("door"), "socket");
    let mut root = Actor::start(&agent.runtime_dir());
    assert_eq!(root.ask("door"), "shm");
    // What it holds over any door is its own: the permit above is not in its way.
    assert_eq!(blue[1].ask("take order 5"), "taken 3 refused 2");
    assert_eq!(exit().status, 200);
    assert_eq!(root.ask("take order 5"), "taken 3 refused 2");
}

#[test]
fn a_control_group_is_a_tenant() {
    let agent = Agent::start(
        RULE,
        &format!("{CALM}[[tenant]]\nname = \"grouped\"\ncgroup = \"/tidegate-test-tenant-*\"\n"),
    );
    // It waits until it has been put into the group, and then asks over the socket.
    let script = "until grep -q tidegate-test-tenant /proc/self/cgroup; do :; done
        exec \"$0\" enter order --hold 60 --runtime-dir \"$1\"";
    let mut command = Command::new("sh");
    command
        .args(["-c", script])
        .arg(Program::Tidegate.path())
        .arg(agent.runtime_dir());
    let Some(process) = ConfinedProcess::start("tenant", &mut command) else {
        return;
    };
    until::holds("a client of the group's tenant", SOON, || {
        let clients = named(&agent.get("/v1/status"), "clients", "grouped");
        let pids = clients.iter().filter_map(|client| client["pid"].as_u64());
        pids.eq([u64::from(process.pid())])
    });
    // The same rule, counted apart.
    let mut other = Actor::start(&agent.runtime_dir());
    assert_eq!(other.ask("take order 5"), "taken 3 refused 2");
}

#[test]
fn sockets_have_the_group_and_mode_of_the_configuration() {
    let own = rustix::process::getegid().as_raw();
    let group = fs::read_to_string("/etc/group").expect("the groups are readable");
    let wanted = |gid: u32| (gid == own) != rustix::process::geteuid().is_root();
    let found = group.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let gid = fields.nth(1)?.parse::<u32>().ok()?;
        wanted(gid).then(|| (name.to_owned(), gid))
    });
    let Some((name, gid)) = found else {
        return tidegate_tests::skip::skip("this user has no group of its own in /etc/group");
    };
    for mode in [0o620, 0o666] {
        let socket = format!("[socket]\ngroup = \"{name}\"\nmode = \"0{mode:o}\"\n");
        let agent = Agent::start("", &format!("{CALM}{socket}"));
        for file in ["gate.sock", "http.sock"] {
            let path = agent.runtime_dir().join(file);
            // An agent that already takes connections may have the mode still to set; until then it is stricter.
            until::holds(
                &format!("{file} of mode {mode:o} and group {gid}"),
                SOON,
                || {
                    let told = fs::metadata(&path).expect("the socket is there");
                    (told.mode() & 0o777, told.gid()) == (mode, gid)
                },
            );
        }
    }
}

#[test]
fn a_user_whom_the_sockets_do_not_let_in_is_told_so() {
    if !user::are_at_hand() {
        return;
    }
    let agent = Agent::start("", CALM);
    agent.open_directory();
    let command = ["enter", "order", "--runtime-dir"];
    let asked = Program::Tidegate
        .command()
        .args(command)
        .arg(agent.runtime_dir())
        .uid(BLUE)
        .gid(BLUE)
        .output()
        .expect("the command runs");
    let said = String::from_utf8_lossy(&asked.stderr);
    assert_eq!(asked.status.code(), Some(1));
    assert!(said.contains("this user may not connect"), "{said}");
}
