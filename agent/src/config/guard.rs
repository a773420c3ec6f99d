//! What is protected and when: rules, marks, scopes, tenants.

use std::path::PathBuf;
use std::time::Duration;

use tidegate_abi::decision::LossMode;

use super::cgroup_path::CgroupPath;
use super::law::{LawOptions, settings_of};
use crate::rule::QuirksOption;
use crate::schema::effect::{Effects, Idle, OptionEffect};
use crate::schema::kind::{
    DurationRange, Flag, Location, Maybe, NameText, Number, OneOf, RequiredOption, TableOf, Whole,
    words,
};
use crate::schema::settings::{Section, settings};

words! {
    /// What a CPU or load mark does when it is passed.
    pub enum CpuAction {
        /// In-flight limits, as the law has them.
        Shape = "shape",
        /// All inbound work is refused.
        Reject = "reject",
    }
}

settings! {
    /// Where the rules are.
    pub struct RulesOptions {
        /// Directory of rule files: *.toml in our form, *.json in Sentinel's. When it is gone the last rules stay
        /// in force; an empty one lifts them.
        dir: PathBuf = PathBuf::from("/etc/tidegate/rules.d"), Location;
        /// Whether the rules repeat the known defects of a version of Sentinel.
        quirks: QuirksOption = QuirksOption::None, OneOf::<QuirksOption>::ANY;
    }
}

settings! {
    /// What the clients do when the agent is silent.
    pub struct AgentLossOptions {
        /// What adaptive limits do after the grace time: go away, stay, or refuse all inbound work.
        mode: LossMode = LossMode::Open, OneOf::<LossMode>::ANY;
        /// A heartbeat older than this is a silent agent.
        time_to_live: Duration = Duration::from_secs(1), DurationRange::ms(20, 60_000);
        /// How long a silent agent's adaptive limits are kept as they were.
        grace: Duration = Duration::from_secs(10), DurationRange::ms(0, 3_600_000);
    }
}

settings! {
    /// How the machine is measured.
    pub struct SignalOptions {
        /// Whether the kernel is asked to say at once that tasks begin to wait for CPU, memory or disk. A tick then
        /// comes up to half a tick early.
        psi_triggers: bool = true, Flag;
    }
}

settings! {
    /// CPU marks of a scope.
    pub struct CpuOptions {
        /// Whether the thresholds count. The law looks at the CPU in any case.
        enabled: bool = true, Flag;
        /// Share of the effective CPUs in use at which the threshold is crossed.
        enter: f64 = 0.85, Number::RATIO;
        /// Share below which it is left again.
        leave: f64 = 0.75, Number::RATIO;
        /// How long the CPU must stay over the threshold before it counts.
        sustained: Duration = Duration::from_secs(2), DurationRange::ms(0, 600_000);
        /// What happens when the threshold is crossed: `shape` begins overload, `reject` refuses all inbound work.
        action: CpuAction = CpuAction::Shape, OneOf::<CpuAction>::ANY;
    }
    check check_cpu;
}

fn check_cpu(cpu: &CpuOptions, section: &mut Section<'_, '_>) {
    cpu.warn(section);
    refuse_crossed(section, ["leave", "enter"], cpu.leave, cpu.enter);
}

settings! {
    /// Load thresholds of the host.
    pub struct LoadOptions {
        /// Whether the marks count. Load alone says that tasks wait, not that requests do: a build machine is over
        /// the mark for hours. So it is off unless an operator wants it.
        enabled: bool = false, Flag;
        /// One-minute load average per effective CPU at which the threshold is crossed.
        enter_per_cpu: f64 = 1.0, Number { min: 0.0, max: 1_000.0 };
        /// Load per CPU below which it is left again.
        leave_per_cpu: f64 = 0.8, Number { min: 0.0, max: 1_000.0 };
    }
    check check_load;
}

fn check_load(load: &LoadOptions, section: &mut Section<'_, '_>) {
    load.warn(section);
    let keys = ["leave_per_cpu", "enter_per_cpu"];
    refuse_crossed(section, keys, load.leave_per_cpu, load.enter_per_cpu);
}

fn warn_of_idle(threads: &ThreadsOptions, section: &mut Section<'_, '_>) {
    threads.warn(section);
}

/// An option that only counts with another.
fn only_with(counts: bool, with: &'static str) -> Option<Idle> {
    Idle::when(!counts, with, "without it nothing looks at this")
}

impl Effects for CpuOptions {
    const EFFECTS: &'static [OptionEffect<Self>] = &[
        OptionEffect::always("enabled"),
        OptionEffect::new("enter", |cpu| only_with(cpu.enabled, "with enabled = true")),
        OptionEffect::new("leave", |cpu| only_with(cpu.enabled, "with enabled = true")),
        OptionEffect::new("sustained", |cpu| {
            only_with(cpu.enabled, "with enabled = true")
        }),
        OptionEffect::always("action"),
    ];
}

impl Effects for LoadOptions {
    const EFFECTS: &'static [OptionEffect<Self>] = &[
        OptionEffect::always("enabled"),
        OptionEffect::new("enter_per_cpu", |load| {
            only_with(load.enabled, "with enabled = true")
        }),
        OptionEffect::new("leave_per_cpu", |load| {
            only_with(load.enabled, "with enabled = true")
        }),
    ];
}

impl Effects for ThreadsOptions {
    const EFFECTS: &'static [OptionEffect<Self>] = &[
        OptionEffect::always("watermark"),
        OptionEffect::new("leave_ratio", |threads| {
            only_with(threads.watermark.is_some(), "with a watermark")
        }),
        OptionEffect::new("cpu_shift_ratio", |threads| {
            only_with(threads.watermark.is_some(), "with a watermark")
        }),
        OptionEffect::new("hold", |threads| {
            only_with(threads.watermark.is_some(), "with a watermark")
        }),
    ];
}

/// Two marks need a gap: at the same value a state would change with every sample.
fn refuse_crossed(section: &mut Section<'_, '_>, keys: [&str; 2], leave: f64, enter: f64) {
    let [leave_key, enter_key] = keys;
    if leave >= enter {
        section.refuse(
            &keys,
            format!("`{leave_key}` below `{enter_key}`"),
            format!("now `{leave_key}` is {leave} and `{enter_key}` is {enter}"),
        );
    }
}

settings! {
    /// How slowly a state changes.
    pub struct HysteresisOptions {
        /// Healthy ticks in a row that end an overload.
        healthy_samples: u32 = 5, Whole { min: 1, max: 1_000 };
        /// Healthy ticks needed after quick re-entries; the number doubles up to this.
        healthy_samples_max: u32 = 20, Whole { min: 1, max: 10_000 };
        /// The same as a time, in the place of `healthy_samples`, whatever the tick is. Not set: by ticks.
        healthy_for: Option<Duration> = None, Maybe(DurationRange::ms(10, 600_000), "\"5s\"");
        /// The same in the place of `healthy_samples_max`. Not set: four times `healthy_for`.
        healthy_for_max: Option<Duration> = None, Maybe(DurationRange::ms(10, 3_600_000), "\"20s\"");
        /// An overload that comes back within this time is a quick re-entry.
        reentry_window: Duration = Duration::from_secs(30), DurationRange::ms(0, 3_600_000);
        /// Shortest time in a state.
        minimum_hold: Duration = Duration::from_millis(500), DurationRange::ms(0, 600_000);
        /// A threshold whose signal is not measured for this long counts as not crossed.
        blind_time: Duration = Duration::from_secs(5), DurationRange::ms(100, 600_000);
        /// Maximum number of state changes in any hour. A mark is then not passed again; an overload that has ended stays, with
        /// the entry limit.
        changes_per_hour_max: u32 = 12, Whole { min: 2, max: 32 };
    }
    check check_hysteresis;
}

fn check_hysteresis(hysteresis: &HysteresisOptions, section: &mut Section<'_, '_>) {
    hysteresis.warn(section);
    let samples = hysteresis.healthy_samples;
    if hysteresis.healthy_samples_max < samples && hysteresis.healthy_for.is_none() {
        section.refuse(
            &["healthy_samples_max", "healthy_samples"],
            format!("`healthy_samples_max` at least `healthy_samples`, {samples}"),
            "repeated overloads take longer to end, up to `healthy_samples_max`: set it as well, or use `healthy_for`",
        );
    }
    let (Some(time), Some(most)) = (hysteresis.healthy_for, hysteresis.healthy_for_max) else {
        return;
    };
    if most < time {
        section.refuse(
            &["healthy_for_max", "healthy_for"],
            format!(
                "`healthy_for_max` at least `healthy_for`, \"{}\"",
                humantime::format_duration(time)
            ),
            "repeated overloads take longer to end, up to `healthy_for_max`",
        );
    }
}

fn by_ticks(hysteresis: &HysteresisOptions) -> Option<Idle> {
    Idle::when(
        hysteresis.healthy_for.is_some(),
        "without healthy_for",
        "`healthy_for` is in its place",
    )
}

impl Effects for HysteresisOptions {
    const EFFECTS: &'static [OptionEffect<Self>] = &[
        OptionEffect::new("healthy_samples", by_ticks),
        OptionEffect::new("healthy_samples_max", by_ticks),
        OptionEffect::always("healthy_for"),
        OptionEffect::new("healthy_for_max", |hysteresis| {
            only_with(hysteresis.healthy_for.is_some(), "with healthy_for")
        }),
        OptionEffect::always("reentry_window"),
        OptionEffect::always("minimum_hold"),
        OptionEffect::always("blind_time"),
        OptionEffect::always("changes_per_hour_max"),
    ];
}

settings! {
    /// Too many live threads of a group lower its requests in flight for a while.
    pub struct ThreadsOptions {
        /// Live threads over which the limit is lowered. Not set: never.
        watermark: Option<u32> = None, Maybe(Whole { min: 1, max: 4_194_304 }, "500");
        /// Share of the requests then in flight that is left; at least one for each CPU.
        leave_ratio: f64 = 0.5, Number::RATIO;
        /// How far the group's CPU thresholds are lowered meanwhile. Rules with a `strained_count` take it then.
        cpu_shift_ratio: f64 = 0.0, Number::RATIO;
        /// How long. It ends by itself, and comes again only after the threads were fewer.
        hold: Duration = Duration::from_secs(30), DurationRange::ms(1_000, 3_600_000);
    }
    check warn_of_idle;
}

settings! {
    /// A scope with its own settings.
    pub struct ScopeOptions {
        /// Name in status, metrics and refusals.
        name: String = String::new(), RequiredOption(NameText, "\"orders\"");
        /// Its cgroup: a path below the cpu controller's mount. Each match of a glob is a scope.
        cgroup: String = String::new(), RequiredOption(CgroupPath, "\"/system.slice/orders.service\"");
        /// CPUs that it may use, whatever its quota and its CPU set say. Not set: as measured.
        cpus: Option<f64> = None, Maybe(Number { min: 0.01, max: 4_096.0 }, "1.5");
        /// Its CPU thresholds; options as in `[cpu]`.
        cpu: CpuOptions = CpuOptions::default(), TableOf::<CpuOptions>::OF;
        /// How slowly its state changes; options as in `[hysteresis]`.
        hysteresis: HysteresisOptions = HysteresisOptions::default(), TableOf::<HysteresisOptions>::OF;
        /// Its threads; options as in `[threads]`.
        threads: ThreadsOptions = ThreadsOptions::default(), TableOf::<ThreadsOptions>::OF;
        /// Its law; options as in `[law]`.
        law: LawOptions = LawOptions::default(), TableOf::<LawOptions>::OF;
    }
    check check_scope;
}

impl Effects for ScopeOptions {
    const EFFECTS: &'static [OptionEffect<Self>] = &[
        OptionEffect::always("name"),
        OptionEffect::always("cgroup"),
        OptionEffect::always("cpus"),
        // What is in these tables answers for itself.
        OptionEffect::always("cpu"),
        OptionEffect::always("hysteresis"),
        OptionEffect::always("threads"),
        OptionEffect::always("law"),
    ];
}

fn check_scope(scope: &ScopeOptions, section: &mut Section<'_, '_>) {
    scope.warn(section);
    warn_of_escape(section);
}

/// systemd writes odd bytes of a unit's name as `\x2d`, and the group's name has that as it stands.
fn warn_of_escape(section: &mut Section<'_, '_>) {
    let written = section.written("cgroup").unwrap_or_default();
    let written = written.replace(r"\\", "");
    if written.starts_with('"') && written.contains(r"\x") {
        let hint = r"in double quotes `\x2d` is another way to write `-`; names of systemd's groups have it as it stands";
        section.warn("cgroup", "the path in single quotes", hint);
    }
}

impl ScopeOptions {
    /// A scope that has the settings of all scopes.
    pub fn over(
        cpu: CpuOptions,
        hysteresis: HysteresisOptions,
        threads: ThreadsOptions,
        law: LawOptions,
    ) -> Self {
        Self {
            name: String::new(),
            cgroup: String::new(),
            cpus: None,
            cpu,
            hysteresis,
            threads,
            law,
        }
    }

    /// Its settings as the law takes them. Load is a matter of the host, threads of groups.
    pub fn law_settings(&self, tick: Duration) -> tidegate_limits::law::LawSettings {
        let threads = Some(&self.threads);
        settings_of(
            tick,
            (&self.law, &self.cpu, &self.hysteresis),
            None,
            threads,
        )
    }
}

/// Name of the tenant of all services that belong to no other.
pub const DEFAULT_TENANT: &str = "default";

settings! {
    /// How much of a limit a service may hold that it shares with others.
    pub struct ServiceOptions {
        /// Name of its processes, or of its scope.
        name: String = String::new(), RequiredOption(NameText, "\"orders\"");
        /// Its part against those of the others, which have 1.
        weight: f64 = 1.0, Number { min: 0.01, max: 100.0 };
    }
}

settings! {
    /// Services that share a ledger of their own.
    pub struct TenantOptions {
        /// Name in status and metrics. "default" is that of all services that belong to no tenant.
        name: String = String::new(), RequiredOption(NameText, "\"shop\"");
        /// User id of its processes. Of `uid`, `gid` and `cgroup` all that are set must hold.
        uid: Option<u32> = None, Maybe(Whole { min: 0, max: u32::MAX - 1 }, "1000");
        /// Primary group id of its processes.
        gid: Option<u32> = None, Maybe(Whole { min: 0, max: u32::MAX - 1 }, "1000");
        /// Cgroup of its processes, which may be in groups below it; globs are allowed.
        cgroup: Option<String> = None, Maybe(CgroupPath, "\"/system.slice/shop-*\"");
        /// Directory of its own rules. Not set: the rules of all.
        rules_dir: Option<PathBuf> = None, Maybe(Location, "\"/etc/tidegate/shop.d\"");
        /// Whose verdicts its rules give. Not set: as for all.
        quirks: Option<QuirksOption> = None, Maybe(OneOf::<QuirksOption>::ANY, "\"sentinel-1.8.9\"");
    }
    check check_tenant;
}

fn check_tenant(tenant: &TenantOptions, section: &mut Section<'_, '_>) {
    warn_of_escape(section);
    if tenant.uid.is_none() && tenant.gid.is_none() && tenant.cgroup.is_none() {
        section.refuse(
            &["uid", "gid", "cgroup"],
            "at least one of `uid`, `gid`, `cgroup`",
            "a process belongs to the first tenant whose conditions it meets, all of them",
        );
    }
}
