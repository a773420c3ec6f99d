//! What is kept while the agent runs: the configuration and rules in force, and what was shown.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_segment::clock::monotonic_ns;
use tracing::Instrument as _;

use super::awaited_file::AwaitedFile;
use super::bulkheads::BulkheadKeeper;
use super::escalation::Escalations;
use super::live::{self, LiveLine, print};
use super::rule_feed::RuleFeed;
use super::rule_keep::RuleKeep;
use super::state_line::state_line;
use super::{ready, reload, start_text, told};
use crate::config::{Config, ConfigRequest};
use crate::control::Snapshot;
use crate::door;
use crate::host::AgentState;
use crate::recording::Notes;
use crate::schema::fault::Fault;
use crate::schema::source::Source;
use crate::telemetry::reload::Instead;
use crate::tenant::breakers::BreakerWatch;

/// Ticks after which what is not measured yet is told as such.
const SETTLED_TICKS: u64 = 30;

/// How often the memory of the ledgers is looked at, s.
const TEND_EVERY_S: u32 = 10;

/// What is in force, and what the operator has been told.
#[derive(Debug)]
pub(super) struct Keeper {
    config: Box<Config>,
    /// Where the configuration is from.
    given: ConfigRequest,
    context: Arc<AgentState>,
    /// Rules in force.
    rules: usize,
    /// Faults that were told last, until a reload succeeds.
    complained: Vec<Fault>,
    /// Where good rules and the configuration are kept for the next start.
    keep: RuleKeep,
    /// The files of the configuration in force.
    files: Vec<Source>,
    /// Looks at a file that was at fault at the start.
    awaited: AwaitedFile,
    /// What the service manager was told last of how the agent is.
    told_state: String,
    live: LiveLine,
    /// By the names of the tenants.
    breakers: BTreeMap<Arc<str>, BreakerWatch>,
    busy: told::Busy,
    verdict: told::LastVerdict,
    lost: told::Lost,
    bulkheads: BulkheadKeeper,
    escalations: Escalations,
    /// Tenths of a second that were tended.
    tenths: u32,
    told_signals: bool,
    /// Ticks when the service manager was told last that the agent ticks.
    told_ticks: u64,
    /// Seconds that were shown.
    seconds: u32,
    /// Where the configuration in force is recorded.
    recording: Option<Arc<Notes>>,
}

impl Keeper {
    /// Keeps what was just put in force: a configuration, and so many rules.
    pub(super) fn new(
        config: Box<Config>,
        given: ConfigRequest,
        context: Arc<AgentState>,
        rules: usize,
        keep: RuleKeep,
    ) -> Self {
        Self {
            config,
            given,
            context,
            rules,
            complained: Vec::new(),
            keep,
            files: Vec::new(),
            awaited: AwaitedFile::default(),
            told_state: String::new(),
            live: LiveLine::new(),
            breakers: BTreeMap::new(),
            busy: told::Busy::default(),
            verdict: told::LastVerdict::default(),
            lost: told::Lost::default(),
            bulkheads: BulkheadKeeper::default(),
            escalations: Escalations::default(),
            tenths: 0,
            told_signals: false,
            told_ticks: 0,
            seconds: 0,
            recording: None,
        }
    }

    /// Records the configuration in force, now and after each reload.
    pub(super) fn record_config(&mut self, recording: Arc<Notes>) {
        self.recording = Some(recording);
        self.note_config();
    }

    fn note_config(&self) {
        if let (Some(recording), Some(file)) = (&self.recording, self.files.first()) {
            recording.tell_config(file.text().to_owned());
        }
    }

    /// The files of the configuration that the agent started with, and what was refused in their place.
    pub(super) fn begin_with(
        &mut self,
        files: Vec<Source>,
        refused: Option<(Instead, Vec<Fault>)>,
    ) {
        self.files = files;
        if let Some((instead, faults)) = refused {
            self.awaited = AwaitedFile::of(self.given.clone());
            self.complain(instead, &faults);
        } else {
            self.keep.keep_configuration(&self.files);
        }
    }

    /// What the doors serve from.
    pub(super) const fn context(&self) -> &Arc<AgentState> {
        &self.context
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    pub(super) fn config_file(&self) -> Option<&Path> {
        self.given.file.as_deref()
    }

    pub(super) const fn rules(&self) -> usize {
        self.rules
    }

    pub(super) fn rules_directory(&self) -> &Path {
        &self.config.rules.dir
    }

    /// Reads everything again: configuration, then the sources that it names.
    pub(super) async fn reload(&mut self, feed: &mut RuleFeed) {
        let span = tracing::info_span!("reload", of = "all");
        self.reload_all(feed).instrument(span).await;
    }

    async fn reload_all(&mut self, feed: &mut RuleFeed) {
        ready::reloading();
        // Who asks is told, also what was told before.
        self.complained.clear();
        match reload::config(&self.given, &mut self.config, &self.context.control) {
            Ok((warnings, files)) => {
                self.context.warnings.set(warnings);
                self.files = files;
                self.keep.keep_configuration(&self.files);
                self.awaited = AwaitedFile::default();
                self.note_config();
                self.context.reload.succeed_with_configuration();
                *feed = RuleFeed::open(&self.config).await;
                self.read_rules(feed).await;
            }
            Err(faults) => self.complain(Instead::Configuration, &faults),
        }
        ready::ready();
    }

    /// Puts in force what the sources gave last.
    pub(super) async fn reload_rules(&mut self, feed: &RuleFeed) {
        let span = tracing::info_span!("reload", of = "rules");
        self.read_rules(feed).instrument(span).await;
    }

    async fn read_rules(&mut self, feed: &RuleFeed) {
        self.context.facts.lock().sources = feed.facts();
        match reload::rules(feed, &self.context.tenants, &self.keep).await {
            Ok(rules) => {
                self.rules = rules;
                self.complained.clear();
                self.context.take_reload();
                let mut facts = self.context.facts.lock();
                facts.rules_directory.clone_from(&self.config.rules.dir);
                facts.rules = rules;
                facts.rules_read = Some(Instant::now());
                drop(facts);
                tracing::info!(event = "rules_in_force", rules, "rules are in force");
            }
            Err(faults) => self.complain(Instead::Rules, &faults),
        }
    }

    /// Waits until a rule ends, for a second at most: the clock of the calendar may be set meanwhile.
    pub(super) async fn next_end(&self) {
        let wait = reload::next_end(&self.context.tenants);
        match wait {
            // Rounded up, so that it has ended then.
            Some(wait) => {
                let wait = wait.saturating_add(Duration::from_millis(1));
                tokio::time::sleep(wait.min(Duration::from_secs(1))).await;
            }
            None => std::future::pending().await,
        }
    }

    /// Takes the rules out of force that have ended.
    pub(super) async fn end_rules(&mut self) {
        if let Err(faults) = reload::end_rules(&self.context.tenants).await {
            self.complain(Instead::Ended, &faults);
        }
    }

    /// Says what is wrong, and what is in force instead.
    pub(super) fn complain(&mut self, instead: Instead, faults: &[Fault]) {
        let first = faults.first().map(|fault| fault.place.to_string());
        let reload = &self.context.reload;
        reload.refuse(instead, faults.len(), first.unwrap_or_default());
        // A file that goes on changing is tried again and again.
        if self.complained == faults {
            return;
        }
        faults.clone_into(&mut self.complained);
        for fault in faults {
            tracing::error!(event = "config_fault", "{fault}");
        }
        tracing::error!(
            event = "reload_refused",
            faults = faults.len(),
            "{}",
            instead.text()
        );
    }

    /// Says where the agent is.
    pub(super) fn tell_start(&self, directory: &Path) {
        if self.live.on_terminal() {
            print(&start_text::places(self, directory));
            let version = env!("CARGO_PKG_VERSION");
            tracing::debug!(
                event = "started",
                kept = true,
                version,
                rules = self.rules,
                "serves"
            );
        } else {
            tracing::info!(
                event = "started",
                version = env!("CARGO_PKG_VERSION"),
                directory = %directory.display(),
                rules = self.rules,
                "serves"
            );
        }
    }

    /// Shows the second that has passed.
    pub(super) fn show(&mut self) {
        let snapshot = self.context.control.snapshot();
        if !self.told_signals {
            self.tell_signals(&snapshot);
        }
        for event in self.context.control.events() {
            told::scope(&mut self.busy, &event, &snapshot);
        }
        self.busy.tell(&snapshot);
        self.lost.tell(&snapshot);
        self.verdict.tell(&snapshot);
        let (now_ns, idle) = (monotonic_ns(), self.config.pages.idle_time);
        for named in self.context.tenants.iter() {
            let tenant = &named.tenant;
            tenant
                .directory()
                .give_back_idle(tenant.seats(), now_ns, idle);
            let watch = self.breakers.entry(Arc::clone(&named.name)).or_default();
            for change in watch.look(&named.tenant, monotonic_ns()) {
                told::breaker(tenant, &named.name, &change);
            }
        }
        let directory = self.context.facts.lock().directory.clone();
        self.escalations
            .look(&snapshot, &self.config.escalation, &directory);
        self.tend_ledgers();
        self.live.show(&snapshot);
        self.tell_state(&snapshot);
    }

    /// Looks after the memory of the ledgers now and then, beside everything else.
    fn tend_ledgers(&mut self) {
        self.seconds = self.seconds.wrapping_add(1);
        if !self.seconds.is_multiple_of(TEND_EVERY_S) {
            return;
        }
        for named in self.context.tenants.iter() {
            let tenant = Arc::clone(&named.tenant);
            drop(tokio::task::spawn_blocking(move || tenant.tend_ledger()));
        }
    }

    /// Tells the service manager how the agent is, when that has changed.
    fn tell_state(&mut self, snapshot: &Snapshot) {
        let tenants = self.context.tenants.iter();
        let clients = tenants.map(|named| named.tenant.clients().count()).sum();
        let refused = self.context.reload.refused();
        let mut facts = self.context.facts.lock();
        let missing = door::missing_socket(&facts.directory);
        facts.missing_socket = missing;
        drop(facts);
        let line = state_line(self.rules, clients, snapshot, refused.as_ref(), missing);
        if line != self.told_state {
            ready::state(&line);
            self.told_state = line;
        }
    }

    /// Puts the counts in force that rules have for a strained machine, while some scope is.
    async fn strain_rules(&mut self) {
        let snapshot = self.context.control.snapshot();
        let scope = snapshot
            .scopes
            .iter()
            .find(|scope| scope.published.strain.is_some());
        let strained = scope.is_some();
        match reload::strain_rules(&self.context.tenants, strained).await {
            Ok(0) => {}
            Ok(_tenants) => {
                let scope = scope.map_or("none", |scope| &scope.name);
                tracing::warn!(
                    event = "rules_strained",
                    scope,
                    strained,
                    "rules with a strained_count change their limits"
                );
            }
            Err(faults) => self.complain(Instead::Rules, &faults),
        }
    }

    /// What is done ten times a second, and once a second.
    pub(super) async fn tend(&mut self, feed: &mut RuleFeed) {
        if self.tenths.is_multiple_of(10) {
            self.show();
            Box::pin(self.strain_rules()).await;
            if self.awaited.is_right() {
                Box::pin(self.reload(feed)).await;
            }
        }
        self.tenths = self.tenths.wrapping_add(1);
        Box::pin(self.look_at_resources()).await;
    }

    /// Holds resources that fill a scope whose CPU is idle, and lets them go again.
    async fn look_at_resources(&mut self) {
        let AgentState {
            control, tenants, ..
        } = &*self.context;
        if let Err(faults) = self.bulkheads.look(control, tenants).await {
            self.complain(Instead::Rules, &faults);
        }
    }

    /// Says what is measured, once that is known.
    fn tell_signals(&mut self, snapshot: &Snapshot) {
        if start_text::is_settling(snapshot) && snapshot.ticks < SETTLED_TICKS {
            return;
        }
        self.told_signals = true;
        if self.live.on_terminal() {
            live::clear();
            print(&start_text::signals(snapshot));
        } else {
            start_text::log_signals(snapshot);
        }
    }

    /// Tells the service manager that the agent ticks, if it does.
    pub(super) fn tell_alive(&mut self) {
        let ticks = self.context.control.snapshot().ticks;
        if ticks != self.told_ticks {
            self.told_ticks = ticks;
            ready::alive();
        }
    }

    /// Says that the agent ends.
    pub(super) fn tell_end(self: Box<Self>) {
        self.live.end();
        tracing::info!(event = "ended", "the agent stops");
        self.keep.end();
    }
}
