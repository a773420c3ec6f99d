//! `tidegate run`.

use std::path::PathBuf;

use tidegate_segment::os::heap;

use super::output::Failure;
use super::place::Surroundings;
use crate::run::{self, Ended};
use crate::signal::Roots;

#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  tidegate run --config ./tidegate.toml --runtime-dir /tmp/tidegate
  TIDEGATE_LOG=debug tidegate run

SIGHUP reads configuration and rules again; SIGTERM and Ctrl-C end the agent.
TIDEGATE_LOG says what is logged: error, warn, info (the default), debug or trace.")]
pub(super) struct Options {
    /// Configuration file; without one /etc/tidegate/tidegate.toml, else the built-in defaults
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Directory of the sockets; without one /run/tidegate as root, else `$XDG_RUNTIME_DIR/tidegate`
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
    /// Directory of what lasts, such as recorded ticks; without one the runtime directory if that
    /// is given, else `$STATE_DIRECTORY`, else /var/lib/tidegate as root
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Directory that stands for /proc
    #[arg(long, value_name = "DIR", default_value = "/proc")]
    proc_root: PathBuf,
    /// Directory that stands for /sys/fs/cgroup
    #[arg(long, value_name = "DIR", default_value = "/sys/fs/cgroup")]
    cgroup_root: PathBuf,
}

pub(super) fn run(options: Options) -> Result<(), Failure> {
    heap::stay_small();
    let sockets = options.runtime_dir.as_deref();
    let here = Surroundings::here();
    let directory = here.to_serve(sockets)?;
    let state = here.state(options.state_dir.as_deref(), sockets);
    let done = run::run(run::Options {
        config: options.config,
        directory,
        state,
        roots: Roots {
            proc: options.proc_root,
            cgroup: options.cgroup_root,
        },
    });
    done.map_err(|error| match error {
        Ended::Invalid(_) => Failure::Invalid(error.to_string()),
        Ended::Sizes(_)
        | Ended::Pages(_)
        | Ended::OpenFiles(_)
        | Ended::Doors(_)
        | Ended::System { .. } => Failure::of(error),
    })
}
