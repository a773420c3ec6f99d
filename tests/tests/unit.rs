//! The shipped unit under a real systemd, on a machine of its own, installed as docs/operations.md says.

#![cfg(test)]

use std::fs;
use std::time::Duration;

use tidegate_tests::machine::{CHECKOUT, Machine, checkout};
use tidegate_tests::program::Program;
use tidegate_tests::until;

/// The blocks of shell of a chapter of the page on operations.
fn blocks(chapter: &str) -> Vec<String> {
    let page = checkout().join("docs/operations.md");
    let page = fs::read_to_string(page).expect("the page is there");
    let after = page.split(&format!("\n## {chapter}\n")).nth(1);
    let text = after.expect("the chapter is there").split("\n## ").next();
    let pieces = text.unwrap_or_default().split("```sh\n").skip(1);
    pieces
        .map(|piece| piece.split("```").next().unwrap_or_default().to_owned())
        .collect()
}

/// The lines that install it, and those that take it away.
fn steps() -> [String; 2] {
    let [install, _question] = install();
    let [remove] = blocks("Remove").try_into().expect("one block");
    [install, remove]
}

fn install() -> [String; 2] {
    let blocks = blocks("Install");
    blocks.try_into().expect("two blocks: install, ask")
}

/// The line that asks for a decision.
fn first_question() -> String {
    let [_install, question] = install();
    assert!(question.starts_with("curl "), "{question}");
    question
}

/// A machine on which it is installed and runs.
fn installed() -> Option<Machine> {
    let machine = Machine::boot_with_checkout(&Program::Tidegate.path())?;
    let [install, _remove] = steps();
    machine.must(&format!("cd {CHECKOUT}\n{install}"));
    Some(machine)
}

fn property(machine: &Machine, name: &str) -> String {
    let value = machine.must(&format!("systemctl show -P {name} tidegate"));
    value.trim().to_owned()
}

#[test]
fn field_o2_the_steps_of_the_handbook_install_a_unit_that_runs_and_answers_and_take_it_away() {
    let Some(machine) = Machine::boot_with_checkout(&Program::Tidegate.path()) else {
        return;
    };
    assert!(!machine.path("/etc/sysusers.d").exists(), "as on Debian 12");
    let [install, remove] = steps();
    let install = format!("cd {CHECKOUT}\n{install}");
    machine.must(&install);
    assert_eq!(property(&machine, "ActiveState"), "active");
    let answer = machine.must(&first_question());
    assert!(answer.contains("\"admitted\":true"), "{answer}");
    // Again, as for an upgrade: what the operator has set stays.
    machine.write("/etc/tidegate/tidegate.toml", "[recording]\nsize_mib = 1\n");
    let before = property(&machine, "MainPID");
    machine.must(&install);
    machine.must("systemctl restart tidegate");
    assert_ne!(property(&machine, "MainPID"), before);
    let config = fs::read_to_string(machine.path("/etc/tidegate/tidegate.toml"));
    assert!(config.is_ok_and(|text| text.contains("size_mib = 1")));
    machine.must(&first_question());
    machine.must(&remove);
    for gone in [
        "/usr/bin/tidegate",
        "/run/tidegate",
        "/etc/sysusers.d/tidegate.conf",
    ] {
        assert!(!machine.path(gone).exists(), "{gone} is left");
    }
    let state = machine.run("systemctl is-active tidegate");
    assert!(!state.status.success(), "{state:?}");
}

#[test]
fn field_o1_the_shipped_unit_starts_decides_reloads_restarts_and_stops() {
    let Some(machine) = installed() else {
        return;
    };
    // Both doors, for a member of the group and not for others.
    machine.must("useradd -MU member && usermod -aG tidegate member && useradd -MU stranger");
    for as_user in ["", "setpriv --reuid=member --regid=member --init-groups "] {
        machine.must(&format!("{as_user}tidegate enter order-create"));
        machine.must(&format!("{as_user}tidegate status"));
    }
    let stranger =
        machine.run("setpriv --reuid=stranger --regid=stranger --init-groups tidegate status");
    assert!(!stranger.status.success(), "{stranger:?}");
    assert!(machine.path("/var/lib/tidegate/samples.jsonl").exists());
    assert!(!machine.path("/run/tidegate/samples.jsonl").exists());
    // A limit that comes with a reload.
    machine.write(
        "/etc/tidegate/rules.d/orders.toml",
        "[[flow]]\nresource = \"order-create\"\ncount = 0\n",
    );
    let before = property(&machine, "MainPID");
    machine.must("systemctl reload tidegate");
    let refused = machine.run("tidegate enter order-create");
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    assert_eq!(property(&machine, "MainPID"), before);
    // A crash and a restart lose the limit no more than the directory that containers have mounted.
    let inode = || machine.must("stat -c %i /run/tidegate");
    let directory = inode();
    machine.must("kill -KILL $(systemctl show -P MainPID tidegate)");
    machine.wait_for("tidegate enter order-create || echo $?", "3");
    machine.must("systemctl restart tidegate");
    let refused = machine.run("tidegate enter order-create");
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    assert_eq!(inode(), directory);
    machine.must("systemctl stop 'tidegate*'");
    assert_eq!(property(&machine, "Result"), "success");
    machine.must("[ ! -e /run/tidegate/gate.sock ] && [ ! -e /run/tidegate/http.sock ]");
    assert_eq!(property(&machine, "MemoryMax"), (256 << 20).to_string());
}

/// An agent that ended is back by then, also when the host has much to do.
const RESTARTED: Duration = Duration::from_mins(1);

/// Lines of shell that ask over HTTP again and again while a file is there, and write down who got no answer. A connection
/// that the agent had taken when it ended closes, and its question is asked once more.
const ASKING: &str = r#"touch /root/asking /root/unanswered
( while [ -e /root/asking ]; do
    curl -sS --retry 1 --retry-all-errors --retry-delay 0 --max-time 20 --unix-socket /run/tidegate/http.sock \
      -d '{"resource":"orders"}' http://tidegate/v1/enter || echo "rc $?" >>/root/unanswered; echo
  done; touch /root/asked ) >/root/answers 2>/root/retried &"#;

#[test]
fn field_o1_a_service_that_starts_before_the_agent_waits_for_it_and_so_does_one_that_asks_during_a_restart()
 {
    let Some(machine) = installed() else {
        return;
    };
    let sockets = "tidegate-gate.socket tidegate-http.socket";
    machine.must(&format!("systemctl is-enabled {sockets}"));
    // As at boot: the sockets are there, the agent is not.
    machine.must("systemctl stop 'tidegate*'; [ ! -e /run/tidegate/http.sock ]");
    machine.must(&format!("systemctl start {sockets}"));
    assert_eq!(property(&machine, "ActiveState"), "inactive");
    for socket in ["gate.sock", "http.sock"] {
        let access = machine.must(&format!("stat -c '%U %G %a' /run/tidegate/{socket}"));
        assert_eq!(access.trim(), "tidegate tidegate 660", "{socket}");
    }
    let answer = machine.must(&first_question());
    assert!(answer.contains("\"admitted\":true"), "{answer}");
    machine.must("tidegate enter order-create");
    // Nobody who asks is told that there is no agent, whatever becomes of it.
    let inodes = || machine.must("stat -c %i /run/tidegate/gate.sock /run/tidegate/http.sock");
    let before = inodes();
    machine.must(ASKING);
    let answers = || {
        machine
            .must("wc -l </root/answers")
            .trim()
            .parse()
            .unwrap_or(0_u32)
    };
    for end in [
        "systemctl restart tidegate",
        "kill -KILL $(systemctl show -P MainPID tidegate)",
        "systemctl restart tidegate",
    ] {
        let (pid, asked) = (property(&machine, "MainPID"), answers());
        machine.must(end);
        until::holds("another agent that answers", RESTARTED, || {
            property(&machine, "MainPID") != pid && answers() > asked + 20
        });
    }
    machine.must("rm /root/asking");
    machine.wait_for("ls /root", "asked");
    assert_eq!(machine.must("cat /root/unanswered"), "");
    assert_eq!(
        machine
            .must("grep -v '\"admitted\":true' /root/answers | grep -c . || true")
            .trim(),
        "0"
    );
    assert_eq!(inodes(), before, "the sockets are the same all the time");
    let journal = machine.must("journalctl -q -o cat -u tidegate");
    assert!(!journal.contains("handed_"), "{journal}");
    machine.must("systemctl stop 'tidegate*'");
    machine.must("[ ! -e /run/tidegate/gate.sock ] && [ ! -e /run/tidegate/http.sock ]");
    let state = machine.run(&format!("systemctl is-active {sockets}"));
    assert!(!state.status.success(), "{state:?}");
}

#[test]
fn field_o1_another_runtime_directory_leaves_what_lasts_where_it_is() {
    let Some(machine) = installed() else {
        return;
    };
    machine.must("systemctl stop tidegate; rm -rf /var/lib/tidegate/*");
    machine.write(
        "/etc/systemd/system/tidegate.service.d/place.conf",
        "[Service]\nRuntimeDirectory=tidegate-other\nExecStart=\n\
         ExecStart=/usr/bin/tidegate run --runtime-dir /run/tidegate-other\n",
    );
    machine.must("systemctl daemon-reload; systemctl start tidegate");
    machine.must("TIDEGATE_RUNTIME_DIR=/run/tidegate-other tidegate enter order-create");
    assert!(machine.path("/var/lib/tidegate/samples.jsonl").exists());
    assert!(!machine.path("/run/tidegate-other/samples.jsonl").exists());
}

#[test]
fn field_o8_what_is_wrong_is_in_the_journal_by_priority_and_in_systemctl_status() {
    let Some(machine) = installed() else {
        return;
    };
    let status = "systemctl show -P StatusText tidegate";
    machine.wait_for(status, "0 rules, 0 clients, host ");
    machine.write(
        "/etc/tidegate/rules.d/a.toml",
        "[[flow]]\nresource = \"a\"\ncount = 0\n",
    );
    machine.wait_for(status, "1 rule, 0 clients, host ");
    // What is for the record is below a warning.
    let warnings = machine.must("journalctl -q -o cat -p warning -u tidegate");
    assert!(!warnings.contains("serves"), "{warnings}");
    machine.must("journalctl -q -o cat -p info -u tidegate | grep -q serves");
    machine.write(
        "/etc/tidegate/rules.d/b.toml",
        "[[flow]]\nresource = \"b\"\ncount = \n",
    );
    let told = machine.wait_for(status, "last reload refused ");
    assert!(
        told.contains(": 1 fault, /etc/tidegate/rules.d/b.toml:3:"),
        "{told}"
    );
    assert!(
        told.contains("the rules before stay in force; 1 rule, 0 clients, host "),
        "{told}"
    );
    machine.must("tidegate status | head -n 5 | grep -q '! last reload refused '");
    let journal = "journalctl -q -o cat -p err -u tidegate";
    let told = machine.wait_for(journal, "the rules before stay in force");
    assert!(told.contains("b.toml") && !told.contains("<3>"), "{told}");
    assert!(!told.contains("serves"), "{told}");
    // What a command of the unit says has its priority too, and a reload that is refused fails.
    assert!(!machine.run("systemctl reload tidegate").status.success());
}

#[test]
fn field_b12_the_unit_starts_with_a_fault_in_its_rules_and_on_a_state_directory_that_takes_nothing()
{
    let Some(machine) = installed() else {
        return;
    };
    let rules = "/etc/tidegate/rules.d/a.toml";
    machine.write(rules, "[[flow]]\nresource = \"shut\"\ncount = 0\n");
    machine.wait_for("cat /var/lib/tidegate/last-good/*", "shut");
    machine.write(rules, "[[flow]]\nresource = \"shut\"\ncount = \n");
    machine.must("systemctl restart tidegate");
    let refused = machine.run("tidegate enter shut");
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    let status = "systemctl show -P StatusText tidegate";
    let told = machine.wait_for(status, "rules refused at the start ");
    assert!(told.contains("the last good rules are in force"), "{told}");
    machine.write(rules, "[[flow]]\nresource = \"shut\"\ncount = 0\n");
    machine.wait_for(&format!("{status} | grep -c refused || true"), "0");
    // The same in its configuration.
    machine.must(
        "cp /etc/tidegate/tidegate.toml /root/; echo '[nothing]' >>/etc/tidegate/tidegate.toml",
    );
    machine.must("systemctl restart tidegate");
    let told = machine.wait_for(status, "configuration refused at the start ");
    let instead = "the last good configuration is in force";
    assert!(told.contains(instead), "{told}");
    machine.must("cp /root/tidegate.toml /etc/tidegate/");
    machine.wait_for(&format!("{status} | grep -c refused || true"), "0");
    // Read-only, then full.
    for option in ["ro,size=1m", "size=4k,nr_inodes=2"] {
        machine.must(&format!(
            "systemctl stop tidegate\nmount -t tmpfs -o {option},mode=700,uid=$(id -u tidegate),gid=$(id -g tidegate) \
             state /var/lib/tidegate\nsystemctl start tidegate"
        ));
        let refused = machine.run("tidegate enter shut");
        assert_eq!(refused.status.code(), Some(3), "{option}: {refused:?}");
        let warnings = "journalctl -q -o cat -p warning -u tidegate";
        machine.wait_for(warnings, "what is in force is not kept");
        machine.must("systemctl stop tidegate; umount /var/lib/tidegate; journalctl --rotate --vacuum-size=1 -q");
    }
}
