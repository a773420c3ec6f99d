//! `tidegate run`.

use std::path::PathBuf;

use tidegate_segment::os::heap;

use super::output::Failure;
use super::place::Surroundings;
use crate::config::{ConfigRequest, MetricsListen};
use crate::procfs::Roots;
use crate::run::{self, RunEnd};

#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  tidegate run --config ./tidegate.toml --runtime-dir /tmp/tidegate
  TIDEGATE_LOG=debug tidegate run

SIGHUP reloads configuration and rules. SIGTERM and Ctrl-C stop the agent.
TIDEGATE_LOG sets the log level: error, warn, info (the default), debug or trace.")]
pub(super) struct Options {
    /// Configuration file [default: that of this user, else /etc/tidegate/tidegate.toml, else the built-in
    /// defaults]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Directory of rules; overrides the configuration
    #[arg(long, value_name = "DIR")]
    rules_dir: Option<PathBuf>,
    /// Loopback address of the metrics over TCP, or `off`; overrides the configuration
    #[arg(long, value_name = "ADDRESS")]
    metrics_listen: Option<MetricsListen>,
    /// Directory of the sockets [default: `$TIDEGATE_RUNTIME_DIR`, else `$RUNTIME_DIRECTORY`, else
    /// /run/tidegate as root and `$XDG_RUNTIME_DIR/tidegate` as another user]
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
    /// Directory of the recording, the last good rules and configuration [default: `$STATE_DIRECTORY`, else the directory
    /// of the sockets if that is given, else /var/lib/tidegate as root]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Exit with code 2 if configuration or rules have a fault; without this, start on the last good ones, else on the
    /// defaults and on no rules
    #[arg(long)]
    strict: bool,
    /// Directory to read in place of /proc
    #[arg(long, value_name = "DIR", default_value = "/proc")]
    proc_root: PathBuf,
    /// Directory to read in place of /sys/fs/cgroup
    #[arg(long, value_name = "DIR", default_value = "/sys/fs/cgroup")]
    cgroup_root: PathBuf,
}

pub(super) fn run(options: Options) -> Result<(), Failure> {
    heap::stay_small();
    let sockets = options.runtime_dir.as_deref();
    let here = Surroundings::here();
    let config = ConfigRequest {
        metrics: options.metrics_listen,
        ..here.config(options.config, options.rules_dir)
    };
    let directory = here.to_serve(sockets)?;
    let state = here.state(options.state_dir.as_deref(), sockets);
    let done = run::run(run::RunOptions {
        config,
        directory,
        state,
        strict: options.strict,
        roots: Roots {
            proc: options.proc_root,
            cgroup: options.cgroup_root,
        },
    });
    done.map_err(|error| match error {
        RunEnd::Invalid(_) => Failure::Invalid(error.to_string()),
        RunEnd::Sizes(_)
        | RunEnd::Pages(_)
        | RunEnd::OpenFiles(_)
        | RunEnd::Doors(_)
        | RunEnd::System { .. } => Failure::of(error),
    })
}
