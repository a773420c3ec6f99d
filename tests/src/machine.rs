//! A machine of its own: systemd as process 1 of namespaces, on the host's programs and a fresh `/etc`, `/var` and `/run`.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::until;
use crate::{skip, user};

/// A machine has its services within this time, also when the host has much to do.
const BOOT_WITHIN: Duration = Duration::from_secs(30);

/// Where the product's files lie in it.
pub const CHECKOUT: &str = "/root/tidegate";

/// A booted machine. It ends, with all that runs in it, when it is dropped or when the test dies.
#[derive(Debug)]
pub struct Machine {
    _folder: TempDir,
    /// Lives until its standard input ends.
    boot: Child,
    pid: u32,
}

impl Machine {
    /// Boots one. `None`, after saying so, where this user or host cannot.
    ///
    /// # Panics
    /// If it begins and does not come up.
    #[expect(clippy::expect_used, reason = "a test ends here")]
    pub fn boot() -> Option<Self> {
        if !user::is_root("to boot a machine in namespaces")
            || ["curl", "setpriv"]
                .iter()
                .any(|tool| skip::tool(tool, "--version").is_none())
        {
            return None;
        }
        if !Path::new("/lib/systemd/systemd").exists() {
            skip::skip("systemd is missing; tests/run installs it");
            return None;
        }
        let folder = tempfile::tempdir().expect("there is room for a directory");
        let script = checkout().join("tests/machine");
        let script = script
            .canonicalize()
            .expect("the script is in the checkout");
        let mut boot = Command::new(script)
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the script starts");
        let mut line = String::new();
        let said = boot.stdout.take().expect("it is piped");
        BufReader::new(said)
            .read_line(&mut line)
            .expect("it is text");
        let Ok(pid) = line.trim().parse() else {
            drop(boot.stdin.take());
            let said = boot.wait_with_output().expect("it ends");
            skip::skip(&format!(
                "no namespaces to boot a machine in: {}",
                text(&said.stderr).trim()
            ));
            return None;
        };
        let machine = Self {
            _folder: folder,
            boot,
            pid,
        };
        machine.wait_until_up();
        Some(machine)
    }

    /// Boots one with a checkout in it that is built already: `cargo` there only says so. `sudo` does what it is told.
    ///
    /// # Panics
    /// As [`Self::boot`], or if there is no room.
    #[expect(clippy::expect_used, reason = "a test ends here")]
    pub fn boot_with_checkout(program: &Path) -> Option<Self> {
        let machine = Self::boot()?;
        machine.must(&format!("mkdir -p {CHECKOUT}/target/release"));
        let built = machine.path(&format!("{CHECKOUT}/target/release/tidegate"));
        fs::copy(program, built).expect("there is room for the program");
        for folder in ["config", "systemd"] {
            let from = checkout().join(folder);
            let to = machine.path(CHECKOUT);
            let copied = Command::new("cp").arg("-r").arg(from).arg(to).status();
            assert!(copied.is_ok_and(|copied| copied.success()), "{folder}");
        }
        machine.write_program("cargo", "[ \"$*\" = 'build --release' ]");
        machine.write_program("sudo", "exec \"$@\"");
        Some(machine)
    }

    fn write_program(&self, name: &str, script: &str) {
        self.write(
            &format!("/usr/local/bin/{name}"),
            &format!("#!/bin/sh\n{script}\n"),
        );
        self.must(&format!("chmod 755 /usr/local/bin/{name}"));
    }

    fn wait_until_up(&self) {
        until::holds("a machine that is up", BOOT_WITHIN, || {
            text(&self.run("systemctl is-system-running").stdout).trim() == "running"
        });
    }

    /// Where a path of the machine is for this process.
    pub fn path(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.pid))
    }

    /// Writes a file, with the directories above it.
    ///
    /// # Panics
    /// If it cannot be written.
    #[expect(clippy::expect_used, reason = "a test ends here")]
    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        let above = path.parent().expect("it has a directory");
        fs::create_dir_all(above).expect("it can be made");
        fs::write(path, text).expect("it can be written");
    }

    /// A command that runs the program that its further arguments name in it, as root.
    pub fn command(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.pid.to_string(), "--all", "--"]);
        command
    }

    /// Runs lines of shell in it, as root.
    ///
    /// # Panics
    /// If the shell does not start.
    #[expect(clippy::expect_used, reason = "a test ends here")]
    pub fn run(&self, script: &str) -> Output {
        self.command()
            .args([
                "env",
                "-i",
                "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            ])
            .args(["HOME=/root", "USER=root", "sh", "-euc", script])
            .stdin(Stdio::null())
            .output()
            .expect("nsenter is there")
    }

    /// Runs lines of shell that must go well, and returns what they said.
    ///
    /// # Panics
    /// If one does not.
    pub fn must(&self, script: &str) -> String {
        let done = self.run(script);
        let said = text(&done.stdout);
        assert!(
            done.status.success(),
            "{script}\n{said}{}\n{}",
            text(&done.stderr),
            text(&self.run("journalctl --no-pager -n 50 -u tidegate").stdout),
        );
        said
    }

    /// Waits until lines of shell say what is looked for, and returns what they said.
    ///
    /// # Panics
    /// If they do not within half a minute.
    pub fn wait_for(&self, script: &str, looked_for: &str) -> String {
        let what = format!("{looked_for:?} of {script}");
        let found = until::found(&what, BOOT_WITHIN, || {
            let said = text(&self.run(script).stdout);
            said.contains(looked_for).then_some(said)
        });
        found.0
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(self.boot.stdin.take());
        let ended = self.boot.wait();
        assert!(
            std::thread::panicking() || ended.is_ok_and(|ended| ended.success()),
            "the machine does not end"
        );
    }
}

/// The checkout that the test is of.
pub fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What a program said.
pub fn text(said: &[u8]) -> String {
    String::from_utf8_lossy(said).into_owned()
}
