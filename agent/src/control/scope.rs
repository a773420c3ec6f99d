//! One scope: what the control loop keeps of it between ticks.

use std::path::Path;
use std::sync::Arc;

use tidegate_abi::board::{ScopeWord, SurgeWord};
use tidegate_abi::decision::ScopeState;
use tidegate_abi::signal::SignalId;
use tidegate_limits::law::{Law, LawChoice, LawSettings, Sample};
use tidegate_segment::board::PublishedScope;
use tidegate_segment::ledger::ScopeCounts;

use super::configured::DeclaredCpus;
use super::declared_cpus;
use super::group_path::is_below;
use super::mailbox::Mailbox;
use super::measure::Tick;
use super::plan::Planned;
use super::request::Event;
use super::snapshot::ScopeSnapshot;
use super::tick_time::ColdTime;
use crate::procfs::NoValue;
use crate::recording::{TickRecord, line};
use crate::signal::{GroupKey, Neighbour, PatternKey, Readings, TopThreads};

/// The group of a scope.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub key: GroupKey,
    pub path: Arc<Path>,
    /// The pattern it was found to fit when its settings were chosen.
    pub pattern: Option<PatternKey>,
    /// CPUs that the operator declares for it.
    pub cpus: Option<f64>,
}

/// Place of the scope whose group is the nearest one above a path. The group at the top is the host in another guise.
pub(super) fn nearest_above(scopes: &[Option<Scope>], path: &Path) -> Option<usize> {
    let path_of = |scope: &Option<Scope>| Some(Arc::clone(&scope.as_ref()?.group.as_ref()?.path));
    let groups = scopes.iter().enumerate();
    let groups = groups.filter_map(|(place, scope)| Some((place, path_of(scope)?)));
    groups
        .filter(|(_place, group)| is_below(path, group) && **group != *Path::new("/"))
        .max_by_key(|(_place, group)| group.as_os_str().len())
        .map(|(place, _group)| place)
}

/// A scope.
#[derive(Debug)]
pub(super) struct Scope {
    pub name: Arc<str>,
    /// Its group; `None` is the host.
    pub group: Option<Place>,
    pub settings: Arc<LawSettings>,
    /// Which of its threads used most CPU.
    pub threads: TopThreads,
    /// Its weight as a service of the host.
    pub weight: f64,
    /// What holds its CPUs down, for people.
    pub limiter: Option<&'static str>,
    /// What the last tick measured, with the CPUs that are declared.
    readings: Box<Readings>,
    /// CPUs that are declared for it.
    declared: Option<DeclaredCpus>,
    /// Whether it uses more CPUs than were found.
    is_doubted: bool,
    /// The declaration that was told last.
    told: Option<(f64, bool)>,
    /// The sample of the last tick.
    sample: Sample,
    law: Box<Law>,
    /// Number of the scope among all that there ever were.
    birth: u64,
    /// Since it became a scope.
    counts: ScopeCounts,
    /// Of the last change of state, or of the first tick; `None` before it.
    since_ns: Option<u64>,
    changes: u64,
    cold: ColdTime,
    ineffective_times: u64,
    /// Callers without a permit that were admitted.
    one_shots: u64,
    /// Requests that it would have refused if it had not only observed, and how many there were at the last change of
    /// state.
    observed: u64,
    observed_before: u64,
    /// Who takes the CPU from it most often.
    pub neighbour: Option<Neighbour>,
}

impl Scope {
    /// A scope without history.
    pub(super) fn new(name: Arc<str>, group: Option<Place>, settings: Arc<LawSettings>) -> Self {
        Self {
            name,
            group,
            settings,
            threads: TopThreads::default(),
            weight: 1.0,
            limiter: None,
            readings: Box::default(),
            declared: None,
            is_doubted: false,
            told: None,
            sample: Sample::default(),
            law: Box::default(),
            birth: 0,
            counts: ScopeCounts::default(),
            since_ns: None,
            changes: 0,
            cold: ColdTime::default(),
            ineffective_times: 0,
            one_shots: 0,
            observed: 0,
            observed_before: 0,
            neighbour: None,
        }
    }

    /// The same scope with its number among all that there ever were.
    pub(super) fn born(self, birth: u64) -> Self {
        Self { birth, ..self }
    }

    /// The last tick, for a recording.
    pub(super) fn record(&self, place: u32) -> TickRecord {
        TickRecord {
            place,
            birth: self.birth,
            name: Arc::clone(&self.name),
            cgroup: self.group.as_ref().map(|place| Arc::clone(&place.path)),
            sample: self.sample,
            state: self.law.published().state,
        }
    }

    /// Whether anything was asked of it in the last tick, or is in flight.
    pub(super) const fn has_traffic(&self) -> bool {
        self.sample.passed > 0 || self.sample.shed > 0 || self.sample.inflight > 0
    }

    /// Whether the ticks after the one at `now_ns` should be short: it is cold with traffic, or has just gone into
    /// overload.
    pub(super) fn hurries(&mut self, now_ns: u64, length_ns: u64) -> bool {
        let state = self.law.published().state;
        let is_cold = state == ScopeState::Cold;
        let steps = state == ScopeState::Overload && self.since_ns == Some(now_ns);
        self.cold.step(is_cold, self.has_traffic(), length_ns) || steps
    }

    /// What the last tick measured, as the law had it.
    pub(super) const fn sample(&self) -> &Sample {
        &self.sample
    }

    /// Capacity, requests per second; `None` before there is history.
    pub(super) fn capacity_qps(&self) -> Option<f64> {
        self.law.published().capacity_qps
    }

    /// Load average and CPU share as Sentinel samples them; `None` where it does not judge.
    pub(super) fn sentinel_samples(&self) -> Option<(Option<f64>, Option<f64>)> {
        (self.settings.kind == LawChoice::Sentinel).then(|| self.law.sentinel_samples())
    }

    /// What decisions measure a surge from.
    pub(super) fn surge(&self) -> SurgeWord {
        self.law.published().surge()
    }

    /// Takes name and settings from the plan.
    pub(super) fn follow(&mut self, plan: &Planned) {
        match &mut self.group {
            Some(place) => {
                let terms = plan.of_group(&place.path, place.pattern);
                place.cpus = terms.cpus;
                (self.name, self.settings) = (terms.name, terms.settings);
            }
            None => self.settings = plan.host(),
        }
        self.weight = plan.weights().of_name(&self.name);
    }

    /// Its group fits this pattern; another than before brings other settings.
    pub(super) fn fits(&mut self, pattern: Option<PatternKey>, plan: &Planned) {
        if let Some(place) = &mut self.group
            && place.pattern != pattern
        {
            place.pattern = pattern;
            self.follow(plan);
        }
    }

    /// Steps the law and tells what changed; returns what is to be published.
    pub(super) fn step(
        &mut self,
        tick: &Tick<'_>,
        now_ns: u64,
        mail: &mut Mailbox,
    ) -> PublishedScope {
        let before = *self.law.published();
        self.sample = line::as_recorded(&self.measure(tick));
        self.tell_doubt(mail);
        self.tell_declared(mail);
        let after = self.law.step(&self.sample, &self.settings);
        self.counts.keep(&tick.counts);
        self.counts.inflight = tick.counts.inflight;
        self.one_shots = self.one_shots.saturating_add(self.sample.one_shot);
        self.observed = self.observed.saturating_add(tick.observed);
        self.since_ns.get_or_insert(now_ns);
        if after.state != before.state {
            self.since_ns = Some(now_ns);
            self.changes = self.changes.saturating_add(1);
            mail.tell(Event::State {
                scope: Arc::clone(&self.name),
                from: before.state,
                to: after.state,
                cause: after.cause,
                observed: after
                    .observes()
                    .then(|| self.observed.saturating_sub(self.observed_before)),
            });
            self.observed_before = self.observed;
        }
        if after.ineffective && !before.ineffective {
            self.ineffective_times = self.ineffective_times.saturating_add(1);
            mail.tell(Event::Ineffective {
                scope: Arc::clone(&self.name),
                cause: after.cause,
            });
        }
        // Sentinel's check of the host is a system rule, which decisions ask event by event: what the law says
        // of it is for people.
        let by_rule = self.group.is_none() && self.settings.kind == LawChoice::Sentinel;
        let (word, allowed_qps_milli) = if by_rule {
            (ScopeWord::OPEN, u64::MAX)
        } else {
            (after.word(), after.allowed_qps_milli())
        };
        PublishedScope {
            word,
            allowed_qps_milli,
            cause: after.cause,
            since_ns: self.since_ns.unwrap_or(now_ns),
            inflight: self.counts.inflight,
        }
    }

    /// Keeps what was measured and turns it into a sample of the law.
    fn measure(&mut self, tick: &Tick<'_>) -> Sample {
        let measured = tick.group.map_or(tick.host, |(measured, _busy)| measured);
        (*self.readings).clone_from(measured);
        let accept_queue = tick.accept_queue.map(f64::from);
        self.readings.set(SignalId::AcceptQueue, accept_queue);
        let cpus = self.group.as_ref().and_then(|place| place.cpus);
        self.declared = cpus.map(|cpus| DeclaredCpus {
            cpus,
            allowed: self
                .readings
                .value(SignalId::EffectiveCpus)
                .zip(self.limiter),
        });
        if let Some(cpus) = cpus {
            declared_cpus::put(&mut self.readings, cpus);
        }
        let group = tick.group.map(|(_measured, busy)| (&*self.readings, busy));
        Tick { group, ..*tick }.sample()
    }

    /// Tells when it begins to use more CPUs than were found for its group.
    fn tell_doubt(&mut self, mail: &mut Mailbox) {
        let cpus = self.readings.get(SignalId::EffectiveCpus).get();
        let is_doubted = cpus.is_err_and(|missing| missing.fault == NoValue::OverCpus);
        if is_doubted && !self.is_doubted {
            mail.tell(Event::CpusDoubted {
                scope: Arc::clone(&self.name),
            });
        }
        self.is_doubted = is_doubted;
    }

    /// Tells of CPUs that are declared, and again when they begin to conflict or cease to.
    fn tell_declared(&mut self, mail: &mut Mailbox) {
        let now = self.declared;
        let now = now.map(|declared| (declared.cpus, declared.conflicts()));
        if now == self.told {
            return;
        }
        self.told = now;
        if let Some(declared) = self.declared {
            mail.tell(Event::DeclaredCpus {
                scope: Arc::clone(&self.name),
                declared,
            });
        }
    }

    /// The mark on the load average is for each CPU; none of a group has one.
    fn load_mark(&self) -> Option<f64> {
        let mark = self.settings.marks.load?.enter;
        let cpus = self.readings.value(SignalId::EffectiveCpus)?;
        self.group.is_none().then_some(mark * cpus)
    }

    /// The scope as its readers see it.
    pub(super) fn snapshot(&self, index: u32, now_ns: u64) -> ScopeSnapshot {
        ScopeSnapshot {
            index,
            name: Arc::clone(&self.name),
            cgroup: self.group.as_ref().map(|place| Arc::clone(&place.path)),
            threads: self.threads,
            bulkhead: self.settings.bulkhead,
            readings: (*self.readings).clone(),
            declared_cpus: self.declared,
            load_mark: self.load_mark(),
            published: *self.law.published(),
            since_ns: self.since_ns.unwrap_or(now_ns),
            changes: self.changes,
            cutoff: None,
            ineffective_times: self.ineffective_times,
            one_shots: self.one_shots,
            observed: self.observed,
            counts: self.counts,
            kernel_slot: self
                .group
                .as_ref()
                .and_then(|place| place.key.kernel_slot()),
            neighbour: self.neighbour,
        }
    }
}
