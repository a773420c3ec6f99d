//! Puts the parts of an agent together.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_segment::board::TickWriter;
use tidegate_segment::clock::monotonic_ns;
use tidegate_segment::sync::Word;

use super::keeper::Keeper;
use super::{Ended, Options, reload, system};
use crate::config::{Config, DEFAULT_PATH, Loaded};
use crate::control::{self, Driver, Handle, Plan, Ticking};
use crate::door::{self, Doors};
use crate::recording::{self, Recorder, Tap};
use crate::signal::{Roots, Sampler};
use crate::telemetry::scrape::Metrics;
use crate::tenant::{self, Tenant};

/// An agent whose sampler thread ticks and whose sockets are placed.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) keeper: Box<Keeper>,
    pub(super) doors: Doors,
    pub(super) ticking: Ticking,
    pub(super) recorder: Option<Recorder>,
    pub(super) directory: PathBuf,
}

/// Makes an agent. Runs inside the runtime.
pub(super) async fn assemble(options: Options) -> Result<Agent, Ended> {
    let started = Instant::now();
    let config_file = options.config.or_else(installed);
    let config = load(config_file.as_deref())?;
    let (tenant, writer) = make_tenant(&config)?;
    let rules = reload::rules(&config, &tenant).await;
    let rules = rules.map_err(Ended::Invalid)?;
    let doors = Doors::open(&door::Settings::of(&config, options.directory.clone()))?;
    let metrics = Arc::new(make_metrics()?);
    let pages = control::Pages {
        writer,
        ledger: *tenant.ledger(),
    };
    let Begun {
        handle,
        ticking,
        recorder,
    } = begin_ticks(&config, options.roots, &options.state, pages, &metrics)?;
    let context = door::Context {
        tenant,
        scopes: Arc::new(handle.scope_finder()),
        control: Arc::new(handle),
        metrics,
        started,
        tick: config.tick,
        permit_time_to_live: config.http.permit_time_to_live,
        reload_failed: Word::new(0),
    };
    let mut keeper = Box::new(Keeper::new(config, config_file, Arc::new(context), rules));
    if let Some(recorder) = &recorder {
        keeper.record_config(recorder.notes());
    }
    Ok(Agent {
        keeper,
        doors,
        ticking,
        recorder,
        directory: options.directory,
    })
}

fn installed() -> Option<PathBuf> {
    let installed = Path::new(DEFAULT_PATH);
    installed.exists().then(|| installed.to_owned())
}

fn load(file: Option<&Path>) -> Result<Box<Config>, Ended> {
    let Loaded { config, warnings } = Config::load(file).map_err(Ended::Invalid)?;
    for warning in &warnings {
        tracing::warn!("{warning}");
    }
    if !config.tenants.is_empty() {
        tracing::warn!("[[tenant]] is not in force in this version: all services share one ledger");
    }
    Ok(config)
}

fn make_tenant(config: &Config) -> Result<(Arc<Tenant>, TickWriter), Ended> {
    let settings = tenant::Settings {
        geometry: config.pages.geometry().map_err(Ended::Sizes)?,
        time_to_live_ns: ns(config.agent_loss.time_to_live),
        grace_ns: ns(config.agent_loss.grace),
        loss_mode: config.agent_loss.mode,
    };
    let (tenant, mut writer) = Tenant::create(&settings)?;
    // Nobody is to think that the agent is silent before its first tick.
    writer.beat(monotonic_ns());
    Ok((Arc::new(tenant), writer))
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn make_metrics() -> Result<Metrics, Ended> {
    Metrics::new()
        .map_err(io::Error::other)
        .map_err(system("cannot make the metrics"))
}

/// Begins to record; an agent that cannot record does everything else.
fn record(config: &Config, directory: &Path) -> (Tap, Option<Recorder>) {
    if !config.recording.enabled {
        return (Tap::default(), None);
    }
    let (tap, waiting) = recording::tap();
    let size_max = config.recording.size_mib.saturating_mul(1 << 20);
    match Recorder::start(waiting, directory, size_max) {
        Ok(recorder) => (tap, Some(recorder)),
        Err(error) => {
            let directory = directory.display();
            tracing::warn!(%error, %directory, "the ticks are not recorded");
            (Tap::default(), None)
        }
    }
}

/// What begins with the ticks.
struct Begun {
    handle: Handle,
    ticking: Ticking,
    recorder: Option<Recorder>,
}

fn begin_ticks(
    config: &Config,
    roots: Roots,
    state: &Path,
    pages: control::Pages,
    metrics: &Arc<Metrics>,
) -> Result<Begun, Ended> {
    let (mut driver, handle) = Driver::new(Sampler::new(roots), vec![pages], Plan::of(config));
    let (tap, recorder) = record(config, state);
    driver.record_to(tap);
    let metrics = Arc::clone(metrics);
    let on_late = move |late| metrics.observe_tick_late(late);
    let ticking = control::start(driver, config.tick, on_late)
        .map_err(system("cannot start the sampler thread"))?;
    Ok(Begun {
        handle,
        ticking,
        recorder,
    })
}
