//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

use crate::law::{Law, Proxy};
use crate::scene;
use crate::service;

/// Measures what laws against overload do: a real agent, a real HTTP service with a fixed CPU time
/// for each request on one CPU, and an open-loop load on another.
#[derive(Debug, Parser)]
#[command(name = "tidegate-lab", args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub part: Option<Part>,
    #[command(flatten)]
    pub measure: Measure,
}

/// What to measure.
#[derive(Debug, Clone, clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub(crate) struct Measure {
    /// Laws, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "adaptive")]
    pub law: Vec<Law>,
    /// Scenes, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "steady")]
    pub scene: Vec<scene::Name>,
    /// Offered loads as times of the capacity, separated by commas [default: those of the scene].
    #[arg(long, value_delimiter = ',', value_parser = offered)]
    pub offered: Vec<f64>,
    /// Length of the judged part of each run.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=300))]
    pub seconds: u64,
    /// Runs with different seeds; their medians are told.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=15))]
    pub seeds: u64,
    /// CPU time of a request.
    #[arg(long, default_value_t = 5.0, value_parser = work_ms)]
    pub work_ms: f64,
    /// An answer after this is too late.
    #[arg(long, default_value_t = 250, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub deadline_ms: u64,
    /// A whole set of runs, with the figures that are promised; overrides laws, scenes and loads.
    #[arg(long, value_name = "SET")]
    pub figures: Option<Set>,
    /// Real programs in front of an unguarded service, separated by commas; one that cannot be had is left out, and that is said.
    #[arg(long, value_delimiter = ',')]
    pub rival: Vec<Proxy>,
    /// Ends with an error if a promise is missed.
    #[arg(long)]
    pub check: bool,
    /// JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// Also draws goodput against offered load of the steady scene.
    #[arg(long, value_name = "FILE.svg")]
    pub svg: Option<PathBuf>,
    /// Also writes the table, the promises and the plot into a folder: `figures.md` and `goodput.svg`.
    #[arg(long, value_name = "FOLDER")]
    pub into: Option<PathBuf>,
    /// Writes each look at the agent's scopes to standard error.
    #[arg(long)]
    pub trace: bool,
    /// Leaves the host's scope without limits: for machines that do other work beside.
    #[arg(long)]
    pub own_scope: bool,
    /// The agent [default: `tidegate` beside the lab, built if cargo started the lab].
    #[arg(long, value_name = "PROGRAM")]
    pub agent: Option<PathBuf>,
}

/// A set of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Set {
    /// Tidegate's law, three seeds, and the strongest rivals at 5 times: under 10 minutes.
    Short,
    /// Everything that README.md tells: all laws and scenes, five seeds of the steady one and of the cold start: about half an hour.
    Full,
}

/// Parts of the lab that it starts itself.
#[derive(Debug, Subcommand)]
pub(crate) enum Part {
    /// The service under load.
    #[command(hide = true)]
    Service(service::Options),
    /// Becomes another program on a CPU and in a group.
    #[command(hide = true)]
    Confine {
        cpu: usize,
        #[arg(long)]
        group: Vec<PathBuf>,
        #[arg(last = true)]
        program: Vec<OsString>,
    },
    /// Keeps a CPU busy.
    #[command(hide = true)]
    Spin {
        /// Part of it, in slices of 10 ms.
        #[arg(long, default_value_t = 1.0, value_parser = share)]
        share: f64,
    },
}

impl Measure {
    /// CPU time of a request.
    pub(crate) fn work(&self) -> Duration {
        Duration::from_secs_f64(self.work_ms / 1e3)
    }
}

fn offered(text: &str) -> Result<f64, String> {
    within(text, 0.05, 50.0)
}

fn work_ms(text: &str) -> Result<f64, String> {
    within(text, 0.1, 1000.0)
}

fn share(text: &str) -> Result<f64, String> {
    within(text, 0.01, 1.0)
}

fn within(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    Err(format!("a number from {least} to {most} is allowed"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound_and_has_the_promised_options() {
        Options::command().debug_assert();
        let words = "tidegate-lab --law adaptive --offered 0.5,1,2,5,10 --seconds 20 --json";
        let options = Options::try_parse_from(words.split(' ')).expect("these are allowed");
        assert_eq!(options.measure.offered, [0.5, 1.0, 2.0, 5.0, 10.0]);
        assert_eq!(options.measure.law, [Law::Adaptive]);
        assert_eq!(options.measure.scene, [scene::Name::Steady]);
        assert!(options.measure.json && options.part.is_none());
    }

    #[test]
    fn absurd_loads_are_refused_with_what_is_allowed() {
        assert_eq!(offered("0.8"), Ok(0.8));
        assert!(offered("1e9").unwrap_err().contains("0.05 to 50"));
        assert!(work_ms("0").is_err() && work_ms("NaN").is_err());
    }
}
