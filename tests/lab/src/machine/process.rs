//! Processes that the lab starts. They end with it, however it ends.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Signal, set_parent_process_death_signal};

use super::{cpu, group};

/// Where a process runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    /// Its CPU.
    pub cpu: usize,
    /// The folders of its group; empty = the group of the lab.
    pub group: Vec<PathBuf>,
}

/// A running process; it is killed and waited for when it is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
}

impl Process {
    /// Starts a program at its place, with its standard output and error as given. Call it on the
    /// main thread: the kernel ends the process with the thread that started it.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn start<A: AsRef<OsStr>>(
        place: &Place,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = A>,
        [out, err]: [Stdio; 2],
    ) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("confine").arg(place.cpu.to_string());
        for dir in &place.group {
            command.arg("--group").arg(dir);
        }
        command.arg("--").arg(program).args(args);
        let child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()?;
        Ok(Self { child })
    }

    /// Starts a subcommand of the lab itself and returns with the first line it prints.
    ///
    /// # Errors
    /// It does not start, or ends without a line.
    pub(crate) fn of_lab(place: &Place, args: &[String]) -> io::Result<(Self, String)> {
        let program = std::env::current_exe()?;
        let mut process = Self::start(place, program, args, [Stdio::piped(), Stdio::inherit()])?;
        let mut line = String::new();
        if let Some(stdout) = process.child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        if line.is_empty() {
            return Err(io::Error::other(format!(
                "{args:?} ended before it was ready"
            )));
        }
        Ok((process, line.trim().to_owned()))
    }

    /// Whether it has ended.
    pub(crate) fn ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, and that is as good.
        let _ended = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// Becomes another program at a place: the subcommand `confine`.
///
/// # Errors
/// Always: it returns only if it could not.
pub(crate) fn confine(place: &Place, program: &[OsString]) -> io::Error {
    let Some((name, args)) = program.split_first() else {
        return io::Error::other("confine needs a program");
    };
    let placed = set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(io::Error::from)
        .and_then(|()| group::join(&place.group))
        .and_then(|()| cpu::pin(place.cpu));
    match placed {
        Ok(()) => Command::new(name).args(args).exec(),
        Err(error) => error,
    }
}
