//! A service in a process of its own that does what a test says, line by line.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::confined::ConfinedProcess;
use crate::machine::Machine;
use crate::program::Program;
use crate::until::SOON;

/// A running actor; it is killed when it is dropped. `src/bin/actor.rs` lists what it understands.
#[derive(Debug)]
pub struct Actor {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
}

impl Actor {
    /// Starts an actor that is connected to the agent with this runtime directory.
    ///
    /// # Panics
    /// If it does not start and connect.
    pub fn start(runtime_dir: &Path) -> Self {
        Self::run(Program::Actor.command().arg(runtime_dir))
    }

    /// The same, run by another command, such as one that takes it into a namespace.
    ///
    /// # Panics
    /// If it does not start and connect.
    pub fn start_by(mut command: Command, runtime_dir: &Path) -> Self {
        Self::run(command.arg(Program::Actor.path()).arg(runtime_dir))
    }

    /// The same on a machine of its own, whose agent has the usual runtime directory.
    ///
    /// # Panics
    /// If it does not start and connect.
    #[expect(clippy::expect_used, reason = "a test ends here")]
    pub fn start_on(machine: &Machine) -> Self {
        let program = "/usr/local/bin/actor";
        fs::copy(Program::Actor.path(), machine.path(program)).expect("there is room for it");
        Self::run(machine.command().arg(program).arg("/run/tidegate"))
    }

    /// The same as another user; the test must be root's.
    ///
    /// # Panics
    /// If it does not start and connect.
    pub fn start_as(uid: u32, runtime_dir: &Path) -> Self {
        Self::run(Program::Actor.command().arg(runtime_dir).uid(uid).gid(uid))
    }

    /// The same as a process of this name, which is the name of its service.
    ///
    /// # Panics
    /// If it does not start and connect.
    #[expect(clippy::expect_used, reason = "a test ends here")]
    pub fn start_named(name: &str, runtime_dir: &Path) -> Self {
        let program = runtime_dir.join(name);
        symlink(Program::Actor.path(), &program).expect("the directory is ours");
        Self::run(Command::new(program).arg(runtime_dir))
    }

    /// The same in a control group.
    ///
    /// # Panics
    /// If it does not start and connect.
    pub fn start_in(group: &ConfinedProcess, runtime_dir: &Path) -> Self {
        Self::run(group.command(Program::Actor).arg(runtime_dir))
    }

    #[expect(clippy::expect_used, reason = "a test ends here")]
    fn run(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("an actor starts");
        let stdin = child.stdin.take().expect("stdin is a pipe");
        let stdout = child.stdout.take().expect("stdout is a pipe");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let actor = Self {
            child,
            stdin,
            lines,
        };
        assert_eq!(actor.hear(), "ready");
        actor
    }

    /// Says a line to it, without waiting for the answer.
    ///
    /// # Panics
    /// If it is gone.
    #[expect(clippy::expect_used, reason = "a test ends here")]
    pub fn say(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").expect("the actor listens");
    }

    /// Its next line.
    ///
    /// # Panics
    /// If none comes soon.
    pub fn hear(&self) -> String {
        self.hear_within(SOON)
    }

    /// Its next line, which may take so long.
    ///
    /// # Panics
    /// If none comes in time.
    #[expect(clippy::expect_used, reason = "a test ends here")]
    pub fn hear_within(&self, limit: Duration) -> String {
        self.lines
            .recv_timeout(limit)
            .expect("the actor answers in time")
    }

    /// Says a line to it and waits for the answer.
    ///
    /// # Panics
    /// If it is gone or does not answer soon.
    pub fn ask(&mut self, line: &str) -> String {
        self.say(line);
        self.hear()
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it without a warning and waits until the kernel has cleaned up.
    ///
    /// # Panics
    /// If it cannot be killed.
    #[expect(clippy::expect_used, reason = "a test ends here")]
    pub fn kill(&mut self) {
        self.child.kill().expect("the actor can be killed");
        self.child.wait().expect("the actor can be waited for");
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Kills a process that an actor made, which the test is no parent of.
///
/// # Panics
/// If there is no such process.
#[expect(clippy::expect_used, reason = "a test ends here")]
pub fn kill_descendant(pid: &str) {
    let pid = pid
        .parse()
        .ok()
        .and_then(Pid::from_raw)
        .expect("a process id");
    kill_process(pid, Signal::KILL).expect("the process can be killed");
}
