//! Puts the parts of an agent together.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidegate_segment::clock::monotonic_ns;

use super::begin_config::BegunConfig;
use super::keeper::Keeper;
use super::page_store::PageStore;
use super::rule_feed::RuleFeed;
use super::rule_keep::RuleKeep;
use super::serve::Sockets;
use super::taking::{self, LeftBehind, Taking};
use super::{RunEnd, RunOptions, begin_config, begin_rules, handed_over, system};
use crate::config::{Config, ConfigRequest, DEFAULT_TENANT, LoadedConfig};
use crate::control::{self, Driver, Handle, Plan, Ticking};
use crate::door::handed::HandedSockets;
use crate::door::{self, Doors, gate_socket};
use crate::ebpf::{self, Telemetry};
use crate::event::book::EventBook;
use crate::host::AgentState;
use crate::host::tenants::{Conditions, NamedTenant, Tenants};
use crate::procfs::Roots;
use crate::recording::{self, Recorder, Tap};
use crate::signal::{PressureTriggers, Sampler};
use crate::telemetry::config_warnings::ConfigWarnings;
use crate::telemetry::facts::{Facts, SourceFacts};
use crate::telemetry::reload::LastReading;
use crate::telemetry::scrape::Metrics;
use crate::tenant::{self, TakenUp, Tenant};

/// An agent whose sampler thread ticks and whose sockets are placed.
#[derive(Debug)]
pub(super) struct Assembly {
    pub(super) keeper: Box<Keeper>,
    pub(super) doors: Doors,
    pub(super) ticking: Ticking,
    pub(super) recorder: Option<Recorder>,
    pub(super) feed: RuleFeed,
    pub(super) sockets: Sockets,
}

/// Makes an agent. Runs inside the runtime.
pub(super) async fn assemble(
    options: RunOptions,
    events: Arc<EventBook>,
) -> Result<Assembly, RunEnd> {
    let started = Instant::now();
    let keep = RuleKeep::start(&options.state);
    let config = begin_config::begin(&options, &keep)?;
    let Opened {
        mut doors,
        handed,
        left,
    } = *open_doors(&config.loaded.config, &options.directory)?;
    let directory = options.directory.clone();
    let feed = Box::pin(RuleFeed::open(&config.loaded.config)).await;
    let start = Start {
        options,
        started,
        keep,
        events,
    };
    let begun = begin(start, config, &mut doors, &feed, left);
    let begun = Box::pin(begun).await;
    let sockets = Sockets { directory, handed };
    let (keeper, ticking, recorder) = begun.inspect_err(|_ended| sockets.remove())?;
    Ok(Assembly {
        keeper,
        doors,
        ticking,
        recorder,
        feed,
        sockets,
    })
}

/// What a start brings along.
struct Start {
    options: RunOptions,
    started: Instant,
    keep: RuleKeep,
    events: Arc<EventBook>,
}

/// The doors, and what was found on the way.
struct Opened {
    doors: Doors,
    handed: HandedSockets,
    left: Box<LeftBehind>,
}

/// Places the doors, on the sockets that the service manager hands over where it does.
fn open_doors(config: &Config, directory: &Path) -> Result<Box<Opened>, RunEnd> {
    let (handed, others) = HandedSockets::of(handed_over::take());
    let is_there = directory.join(gate_socket::FILE_NAME).exists();
    let settings = door::DoorSettings::of(config, directory.to_owned(), handed.clone());
    let doors = Doors::open(&settings)?;
    // One that the service manager has made says nothing of a life before.
    let sockets = is_there && !handed.has_taken(gate_socket::FILE_NAME);
    Ok(Box::new(Opened {
        doors,
        handed,
        left: Box::new(LeftBehind {
            sockets,
            store: PageStore::of(others),
        }),
    }))
}

/// Begins with pages, rules and ticks.
async fn begin(
    start: Start,
    begun_config: Box<BegunConfig>,
    doors: &mut Doors,
    feed: &RuleFeed,
    left: Box<LeftBehind>,
) -> Result<(Box<Keeper>, Ticking, Option<Recorder>), RunEnd> {
    let Start {
        options,
        started,
        keep,
        events,
    } = start;
    let BegunConfig { loaded, refused } = *begun_config;
    let LoadedConfig {
        config,
        warnings,
        files,
    } = loaded;
    let (tenants, pages, taking) = Box::pin(tenants(&options, &config, doors, left)).await?;
    let begun = Box::pin(begin_rules(feed, &tenants, keep, options.strict)).await?;
    taking.count_others(&tenants);
    let metrics = make_metrics()?;
    let TickParts {
        handle,
        ticking,
        recorder,
        kernel,
    } = *begin_ticks(&config, options.roots, &options.state, pages, &metrics)?;
    let facts = facts(
        &options.directory,
        options.config.file.as_deref(),
        &config,
        begun.0.rules,
        feed.facts(),
    );
    let context = Arc::new(AgentState {
        tenants,
        bounds: Arc::clone(doors.bounds()),
        scopes: Arc::new(handle.scope_finder()),
        control: Arc::new(handle),
        kernel,
        metrics,
        events,
        started,
        tick: config.tick,
        permit_time_to_live: config.http.permit_time_to_live,
        max_wait: config.http.max_wait,
        warnings: ConfigWarnings::default(),
        facts,
        reload: LastReading::default(),
    });
    context.warnings.set(warnings);
    let mut keeper = keeper(config, options.config, context, begun);
    keeper.begin_with(files, refused);
    if let Some(recorder) = &recorder {
        keeper.record_config(recorder.notes());
    }
    Ok((keeper, ticking, recorder))
}

/// The tenants, with the pages that their services hand back where there are any.
async fn tenants(
    options: &RunOptions,
    config: &Config,
    doors: &mut Doors,
    left: Box<LeftBehind>,
) -> Result<(Tenants, Vec<control::TenantPages>, Taking), RunEnd> {
    let geometry = config.pages.geometry().map_err(RunEnd::Sizes)?;
    let names = tenant_names(config);
    let places = (&*options.directory, &*left);
    let mut taking = Taking::back(doors, places, names, geometry).await;
    let (tenants, pages) = make_tenants(config, options, &mut taking)?;
    left.store.keep(&tenants);
    Ok((tenants, pages, taking))
}

fn tenant_names(config: &Config) -> impl Iterator<Item = Arc<str>> {
    let others = config.tenants.iter().map(|tenant| &*tenant.name);
    std::iter::once(DEFAULT_TENANT).chain(others).map(Arc::from)
}

/// Puts the rules in force that there are.
async fn begin_rules(
    feed: &RuleFeed,
    tenants: &Tenants,
    keep: RuleKeep,
    strict: bool,
) -> Result<Box<(begin_rules::FirstRules, RuleKeep)>, RunEnd> {
    let begun = Box::pin(begin_rules::begin(feed, tenants, &keep)).await;
    if strict && !begun.faults.is_empty() {
        return Err(RunEnd::Invalid(begun.faults));
    }
    Ok(Box::new((begun, keep)))
}

/// Keeps what was put in force, and complains of what was not.
#[expect(
    clippy::boxed_local,
    reason = "the caller's stack frame has no room for it"
)]
fn keeper(
    config: Box<Config>,
    given: ConfigRequest,
    context: Arc<AgentState>,
    begun: Box<(begin_rules::FirstRules, RuleKeep)>,
) -> Box<Keeper> {
    let (begun, keep) = *begun;
    let mut keeper = Box::new(Keeper::new(config, given, context, begun.rules, keep));
    if let Some(instead) = begun.instead {
        keeper.complain(instead, &begun.faults);
    }
    keeper
}

/// What is told of an agent with a configuration and so many rules in force.
fn facts(
    directory: &Path,
    config_file: Option<&Path>,
    config: &Config,
    rules: usize,
    sources: Vec<SourceFacts>,
) -> Box<Mutex<Facts>> {
    Box::new(Mutex::new(Facts {
        directory: directory.to_owned(),
        config_file: config_file.map(Path::to_owned),
        rules_directory: config.rules.dir.clone(),
        rules,
        rules_read: Some(Instant::now()),
        sources,
        metrics_listen: config
            .http
            .metrics_enabled
            .then_some(config.http.metrics_listen),
        missing_socket: None,
    }))
}

/// The default tenant and those of the configuration, with the role of the tick on each one's pages.
fn make_tenants(
    config: &Config,
    options: &RunOptions,
    taking: &mut Taking,
) -> Result<(Tenants, Vec<control::TenantPages>), RunEnd> {
    let mut make = |name: &str| make_tenant(config, name, &options.directory, taking);
    let (default, first) = make(DEFAULT_TENANT)?;
    let mut pages = vec![first];
    let mut tenants = Tenants::one(default);
    for settings in &config.tenants {
        let (tenant, own) = make(&settings.name)?;
        pages.push(own);
        if settings.uid.is_some() {
            tenant.seats().serve_one_user();
            tenant.directory().serve_one_user();
        }
        let conditions = Conditions::of(settings).map_err(|fault| {
            system("the cgroup of a tenant")(io::Error::new(io::ErrorKind::InvalidInput, fault))
        })?;
        tenants.add(
            NamedTenant::new(&settings.name, tenant),
            conditions,
            &options.roots,
        );
    }
    Ok((tenants, pages))
}

fn make_tenant(
    config: &Config,
    name: &str,
    directory: &Path,
    taking: &mut Taking,
) -> Result<(Arc<Tenant>, control::TenantPages), RunEnd> {
    let settings = tenant::TenantSettings {
        geometry: config.pages.geometry().map_err(RunEnd::Sizes)?,
        time_to_live_ns: ns(config.agent_loss.time_to_live),
        grace_ns: ns(config.agent_loss.grace),
        loss_mode: config.agent_loss.mode,
    };
    let TakenUp {
        tenant,
        tick: mut writer,
        living,
    } = *taking::begin(name, &settings, taking)?;
    taking::keep(&tenant, living);
    tenant.record_in(directory, name);
    // Nobody is to think that the agent is silent before its first tick.
    writer.beat(monotonic_ns());
    let ledger = *tenant.ledger();
    Ok((tenant, control::TenantPages { writer, ledger }))
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn make_metrics() -> Result<Arc<Metrics>, RunEnd> {
    Metrics::new()
        .map(Arc::new)
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
            tracing::warn!(
                event = "recording_off",
                %error,
                %directory,
                "ticks are not recorded; give a writable directory with --state-dir, or set recording.enabled = false"
            );
            (Tap::default(), None)
        }
    }
}

/// What begins with the ticks.
struct TickParts {
    handle: Handle,
    ticking: Ticking,
    recorder: Option<Recorder>,
    kernel: Option<Telemetry>,
}

fn begin_ticks(
    config: &Config,
    roots: Roots,
    state: &Path,
    pages: Vec<control::TenantPages>,
    metrics: &Arc<Metrics>,
) -> Result<Box<TickParts>, RunEnd> {
    let triggers = PressureTriggers::arm(config.signals.psi_triggers, &roots);
    let settings = config.ebpf.settings(config.pages.max_scopes);
    let begun = ebpf::start(settings, &roots);
    let begun = begun.inspect_err(
        |error| tracing::warn!(event = "ebpf_off", %error, "no thread for eBPF programs"),
    );
    let (kernel, tick_end) = begun.ok().unzip();
    let mut sampler = Sampler::new(roots);
    if let Some(tick_end) = tick_end {
        sampler.take_kernel(tick_end);
    }
    let (mut driver, handle) = Driver::new(sampler, pages, Plan::of(config));
    let (tap, recorder) = record(config, state);
    driver.record_to(tap);
    let metrics = Arc::clone(metrics);
    let on_late = move |late| metrics.observe_tick_late(late);
    let ticking = control::start(driver, triggers, config.tick, on_late)
        .map_err(system("cannot start the sampler thread"))?;
    Ok(Box::new(TickParts {
        handle,
        ticking,
        recorder,
        kernel,
    }))
}
