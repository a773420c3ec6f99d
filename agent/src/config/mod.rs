//! The agent's configuration: `tidegate.toml`.
//!
//! Each section is a table of options ([`crate::schema::settings`]); the typed values here, the checks and
//! the shipped file come from it. A [`Config`] that exists has passed every check.

mod cgroup_path;
mod door;
mod ebpf;
mod escalation;
mod given;
mod guard;
pub mod in_force;
pub mod law;
mod layers;
pub mod shipped;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use door::{HttpOptions, METRICS_HINT, PageOptions, RecordingOptions, SocketOptions};
pub use ebpf::EbpfOptions;
pub use escalation::EscalationOptions;
pub use given::{ConfigRequest, MetricsListen};
pub use guard::{
    AgentLossOptions, CpuAction, CpuOptions, DEFAULT_TENANT, HysteresisOptions, LoadOptions,
    RulesOptions, ScopeOptions, ServiceOptions, SignalOptions, TenantOptions, ThreadsOptions,
};
pub use law::{LawKind, LawMode, LawOptions};

use crate::schema::fault::{Fault, Sink};
use crate::schema::kind::{DurationRange, Groups, TableOf};
use crate::schema::layers::merged;
use crate::schema::settings::{OptionTable as _, Section, settings};
use crate::schema::source::Source;

/// Where an installed agent looks for its file.
pub const DEFAULT_PATH: &str = "/etc/tidegate/tidegate.toml";

/// Name of the scope of the whole machine.
const HOST: &str = "host";

/// Most tenants beside the default one.
pub const TENANTS_MAX: usize = 32;

settings! {
    /// Everything the operator can set.
    pub struct Config {
        /// Time between two samples. Each tick measures, judges and publishes.
        tick: Duration = Duration::from_millis(100), DurationRange::ms(10, 1_000);
        /// The Unix socket that services connect to.
        socket: SocketOptions = SocketOptions::default(), TableOf::<SocketOptions>::OF;
        /// The HTTP door. Its Unix socket is always there.
        http: HttpOptions = HttpOptions::default(), TableOf::<HttpOptions>::OF;
        /// Where the rules are.
        rules: RulesOptions = RulesOptions::default(), TableOf::<RulesOptions>::OF;
        /// What the clients do when the agent is silent. Static rules stay in force, always.
        agent_loss: AgentLossOptions = AgentLossOptions::default(), TableOf::<AgentLossOptions>::OF;
        /// Sizes of the shared pages. They are fixed when the pages are made.
        pages: PageOptions = PageOptions::default(), TableOf::<PageOptions>::OF;
        /// How the machine is measured.
        signals: SignalOptions = SignalOptions::default(), TableOf::<SignalOptions>::OF;
        /// CPU thresholds of every scope.
        cpu: CpuOptions = CpuOptions::default(), TableOf::<CpuOptions>::OF;
        /// Load thresholds of the host.
        load: LoadOptions = LoadOptions::default(), TableOf::<LoadOptions>::OF;
        /// Too many live threads of a group.
        threads: ThreadsOptions = ThreadsOptions::default(), TableOf::<ThreadsOptions>::OF;
        /// How slowly a state changes.
        hysteresis: HysteresisOptions = HysteresisOptions::default(), TableOf::<HysteresisOptions>::OF;
        /// The adaptive law.
        law: LawOptions = LawOptions::default(), TableOf::<LawOptions>::OF;
        /// A scope that stays in overload.
        escalation: EscalationOptions = EscalationOptions::default(), TableOf::<EscalationOptions>::OF;
        /// Programs in the kernel that measure waits for a CPU and pauses of JVMs.
        ebpf: EbpfOptions = EbpfOptions::default(), TableOf::<EbpfOptions>::OF;
        /// What every tick measured is kept on disk, for `tidegate replay`.
        recording: RecordingOptions = RecordingOptions::default(), TableOf::<RecordingOptions>::OF;
        /// A scope with its own settings. What it does not set is as above.
        scopes as "scope": Vec<ScopeOptions> = Vec::new(),
            Groups {
                template: ScopeOptions::over(cpu.clone(), hysteresis.clone(), threads.clone(), law.clone()),
            };
        /// A service with a weight of its own when it shares the limit of a scope with others.
        services as "service": Vec<ServiceOptions> = Vec::new(), Groups { template: ServiceOptions::default() };
        /// Services that share a ledger of their own and do not see the others.
        tenants as "tenant": Vec<TenantOptions> = Vec::new(), Groups { template: TenantOptions::default() };
    }
    check check_config;
}

/// A configuration and what is odd about it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LoadedConfig {
    /// The configuration.
    pub config: Box<Config>,
    /// Odd, but taken.
    pub warnings: Vec<Fault>,
    /// The files that say so, the first one first; none for the defaults.
    pub files: Vec<Source>,
}

impl Config {
    /// Reads a file and what the files `conf.d/*.toml` beside it say over it, in the order of their names; without a
    /// file the defaults are in force.
    ///
    /// Relative paths in the files count from the directory of the first.
    ///
    /// # Errors
    /// Every fault of the files.
    pub fn load(path: Option<&Path>) -> Result<LoadedConfig, Vec<Fault>> {
        Self::load_over(path, Self::default())
    }

    /// The same; what the file does not set is as in `usual`.
    fn load_over(path: Option<&Path>, usual: Self) -> Result<LoadedConfig, Vec<Fault>> {
        let Some(path) = path else {
            return Ok(LoadedConfig {
                config: Box::new(usual),
                ..LoadedConfig::default()
            });
        };
        let first = Source::read(path).map_err(|fault| vec![*fault])?;
        let layers = layers::beside(path)?;
        let files = std::iter::once(first).chain(layers.files).collect();
        let mut loaded = Self::of_files(path, files, &usual)?;
        loaded.warnings.extend(layers.warnings);
        Ok(loaded)
    }

    /// The same of files that were read: the one at `path` and those beside it.
    fn of_files(path: &Path, files: Vec<Source>, usual: &Self) -> Result<LoadedConfig, Vec<Fault>> {
        let mut loaded = match &*files {
            [] => Self::parse_over(&Source::new("", ""), usual)?,
            [only] => Self::parse_over(only, usual)?,
            [first, others @ ..] => {
                let (source, root) = merged(first.clone(), others)?;
                let mut sink = Sink::new(&source);
                let config = Self::take(&root, usual, "", &mut sink).map(Box::new);
                let (faults, warnings) = sink.finish();
                Self::loaded(config, faults, warnings)?
            }
        };
        loaded.config.settle(path.parent().unwrap_or(Path::new("")));
        loaded.files = files;
        Ok(loaded)
    }

    /// Reads a text.
    ///
    /// # Errors
    /// Every fault of the text.
    pub fn parse(source: &Source) -> Result<LoadedConfig, Vec<Fault>> {
        Self::parse_over(source, &Self::default())
    }

    fn parse_over(source: &Source, usual: &Self) -> Result<LoadedConfig, Vec<Fault>> {
        let (config, faults, warnings) = Self::read_over(source, usual);
        Self::loaded(config, faults, warnings)
    }

    /// A configuration that was read, if nothing in it is at fault.
    fn loaded(
        config: Option<Box<Self>>,
        faults: Vec<Fault>,
        warnings: Vec<Fault>,
    ) -> Result<LoadedConfig, Vec<Fault>> {
        match config {
            Some(config) if faults.is_empty() => Ok(LoadedConfig {
                config,
                warnings,
                files: Vec::new(),
            }),
            _ => Err(faults),
        }
    }

    /// What can be read, every fault and every warning.
    fn read_over(source: &Source, usual: &Self) -> (Option<Box<Self>>, Vec<Fault>, Vec<Fault>) {
        let mut sink = Sink::new(source);
        let config = crate::schema::toml::read(&mut sink, |root, sink| {
            Self::take(root, usual, "", sink).map(Box::new)
        });
        let (faults, warnings) = sink.finish();
        (config, faults, warnings)
    }

    /// The warnings of a file, whatever faults it has.
    pub fn warnings_of(path: &Path) -> Vec<Fault> {
        let read = |source: &Source| Self::read_over(source, &Self::default()).2;
        Source::read(path).map_or_else(|_unread| Vec::new(), |source| read(&source))
    }

    /// Settings of the host's scope as the law takes them.
    pub fn host_settings(&self) -> tidegate_limits::law::LawSettings {
        let load = Some(&self.load);
        let guards = (&self.law, &self.cpu, &self.hysteresis);
        law::settings_of(self.tick, guards, load, None)
    }

    /// Settings of the scopes without a table of their own.
    pub fn scope_settings(&self) -> tidegate_limits::law::LawSettings {
        let threads = Some(&self.threads);
        let guards = (&self.law, &self.cpu, &self.hysteresis);
        law::settings_of(self.tick, guards, None, threads)
    }

    /// Makes the relative paths absolute or relative to the working directory.
    fn settle(&mut self, directory: &Path) {
        let settle = |path: &mut PathBuf| *path = directory.join(&*path);
        settle(&mut self.rules.dir);
        for tenant in &mut self.tenants {
            tenant.rules_dir.as_mut().map(settle).unwrap_or_default();
        }
    }
}

fn check_config(config: &Config, section: &mut Section<'_, '_>) {
    let ticks = config.tick.saturating_mul(2);
    if config.agent_loss.time_to_live < ticks {
        section.refuse(
            &["agent_loss.time_to_live", "tick"],
            format!(
                "`agent_loss.time_to_live` at least two ticks, \"{}\"",
                humantime::format_duration(ticks)
            ),
            "a single late tick would count as a lost agent: set `agent_loss.time_to_live` as well, or a shorter `tick`",
        );
    }
    let scopes: Vec<&str> = config
        .scopes
        .iter()
        .map(|scope| scope.name.as_str())
        .collect();
    refuse_repeats(section, "scope", &scopes);
    if let Some(index) = scopes.iter().position(|name| *name == HOST) {
        section.refuse(
            &[&format!("scope[{index}].name")],
            "any other name",
            "it stands for the whole machine, whose marks are in [cpu] and [load]",
        );
    }
    let services: Vec<&str> = config
        .services
        .iter()
        .map(|service| service.name.as_str())
        .collect();
    refuse_repeats(section, "service", &services);
    let tenants: Vec<&str> = config
        .tenants
        .iter()
        .map(|tenant| tenant.name.as_str())
        .collect();
    refuse_repeats(section, "tenant", &tenants);
    check_tenants(section, &tenants);
}

fn check_tenants(section: &mut Section<'_, '_>, names: &[&str]) {
    if let Some(index) = names.iter().position(|name| *name == DEFAULT_TENANT) {
        section.refuse(
            &[&format!("tenant[{index}].name")],
            "any other name",
            "it stands for all services that belong to no tenant",
        );
    }
    if names.len() > TENANTS_MAX {
        section.refuse(
            &[&format!("tenant[{TENANTS_MAX}].name")],
            format!("at most {TENANTS_MAX} tenants"),
            "each has pages of its own, which every tick writes",
        );
    }
}

/// Refuses a second table `[[key]]` with the same name.
fn refuse_repeats(section: &mut Section<'_, '_>, key: &str, names: &[&str]) {
    let mut seen: Vec<&str> = Vec::new();
    for (index, name) in names.iter().enumerate() {
        // A table without its name has a fault already.
        if name.is_empty() {
            continue;
        }
        if let Some(first) = seen.iter().position(|other| other == name) {
            section.refuse(
                &[&format!("{key}[{index}].name")],
                "a name that no other has",
                format!("{key}[{first}] has it"),
            );
        }
        seen.push(name);
    }
}

#[cfg(test)]
mod effect_tests;
