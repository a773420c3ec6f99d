//! One decision through the doors of an agent that runs for the bench.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tidegate_abi::decision::Outcome;
use tidegate_abi::message::{EnterAnswer, EnterRequest};

use crate::echo::trip_p50_us;
use crate::figure::{Figure, NoFigure};
use tidegate_agent::caller::{GateConnection, HttpConnection};
use tidegate_agent::door::gate_socket;

/// The resource that is asked for; one flow rule far above what is asked.
const RULE: &str = "[[flow]]\nresource = \"bench\"\ngrade = \"qps\"\ncount = 10000000\n";

/// Away from the port of an agent that may run here already.
const CONFIG: &str = "[http]\nmetrics_enabled = false\n[rules]\ndir = \"rules.d\"\n";

/// Longest time until a new agent answers.
const START: Duration = Duration::from_secs(10);

/// Measures both doors.
pub(crate) fn figures() -> [Figure; 2] {
    let (socket, http) = match Agent::start() {
        Ok(agent) => (
            socket_p50_us(agent.directory()),
            http_p50_us(agent.directory()),
        ),
        Err(error) => {
            let again = NoFigure::Wrong(error.to_string());
            (Err(error), Err(again))
        }
    };
    [
        Figure {
            name: "socket_p50_us",
            how: "one decision over gate.sock of an agent in another process, median",
            value: socket,
        },
        Figure {
            name: "http_p50_us",
            how: "one decision over http.sock, the connection kept open, median",
            value: http,
        },
    ]
}

fn socket_p50_us(directory: &Path) -> Result<f64, NoFigure> {
    let mut caller = GateConnection::connect(directory).map_err(wrong)?;
    let ask = EnterRequest::of("bench");
    trip_p50_us(|| {
        let start = Instant::now();
        let answer = caller.enter(ask).map_err(wrong)?;
        let time = start.elapsed().as_secs_f64();
        if let EnterAnswer::Admitted { token, .. } = answer {
            caller.exit(token, Outcome::Ok).map_err(wrong)?;
        }
        Ok(time)
    })
}

fn http_p50_us(directory: &Path) -> Result<f64, NoFigure> {
    let mut caller = HttpConnection::connect(directory).map_err(wrong)?;
    trip_p50_us(|| {
        let start = Instant::now();
        caller.get("/v1/admit?resource=bench").map_err(wrong)?;
        Ok(start.elapsed().as_secs_f64())
    })
}

fn wrong(error: impl std::fmt::Display) -> NoFigure {
    NoFigure::Wrong(error.to_string())
}

/// The agent's program: of the same build, in the same folder.
fn beside() -> Result<PathBuf, NoFigure> {
    let own = std::env::current_exe().map_err(NoFigure::kernel("current_exe"))?;
    let agent = own.with_file_name("tidegate");
    if agent.exists() {
        return Ok(agent);
    }
    let missing = format!(
        "no {}: build both with cargo build --release",
        agent.display()
    );
    Err(NoFigure::Wrong(missing))
}

/// An agent in another process, with sockets and rules of its own.
#[derive(Debug)]
struct Agent {
    process: Child,
    home: TempDir,
}

impl Agent {
    fn start() -> Result<Self, NoFigure> {
        let home = tempfile::tempdir().map_err(NoFigure::kernel("a temporary directory"))?;
        let write = |name: &str, text: &str| {
            fs::write(home.path().join(name), text).map_err(NoFigure::kernel("a file of the bench"))
        };
        fs::create_dir(home.path().join("rules.d"))
            .map_err(NoFigure::kernel("a directory of the bench"))?;
        write("tidegate.toml", CONFIG)?;
        write("rules.d/bench.toml", RULE)?;
        let program = beside()?;
        let process = Command::new(program)
            .args(["run", "--config"])
            .arg(home.path().join("tidegate.toml"))
            .arg("--runtime-dir")
            .arg(home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(NoFigure::kernel("starting an agent"))?;
        let agent = Self { process, home };
        agent.wait_until_it_answers()?;
        Ok(agent)
    }

    fn directory(&self) -> &Path {
        self.home.path()
    }

    fn wait_until_it_answers(&self) -> Result<(), NoFigure> {
        let begun = Instant::now();
        loop {
            let socket = self.directory().join(gate_socket::FILE_NAME);
            let answer = if socket.exists() {
                GateConnection::connect(self.directory()).map_err(wrong)
            } else {
                Err(NoFigure::Wrong("the agent did not start".to_owned()))
            };
            match answer {
                Ok(_connection) => return Ok(()),
                Err(error) if begun.elapsed() > START => return Err(error),
                Err(_not_yet) => std::thread::park_timeout(Duration::from_millis(5)),
            }
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Ok(pid) = i32::try_from(self.process.id()) {
            // Already gone is as good.
            let _gone: nix::Result<()> = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        let _status: std::io::Result<std::process::ExitStatus> = self.process.wait();
    }
}
