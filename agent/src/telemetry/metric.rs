//! The table of metrics: one row for each name that `GET /metrics` shows.
//!
//! A new metric is a row here and a call of [`super::scrape::Scrape::set`] where its value is known.
//! Names have the prefix `tidegate_` (or `process_` for the two that every exporter has), base units,
//! and `_total` on counters alone. Label values are words of an enum or names from a bounded table.

/// How a value moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Sum and number of values.
    Summary,
    /// Values sorted into buckets.
    Histogram,
}

/// Unit of a value; the name ends with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricUnit {
    /// A number of things, a flag, or the unit that a label names.
    None,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Requests a second.
    Qps,
}

impl MetricUnit {
    /// What a name with this unit holds.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Seconds => "_seconds",
            Self::Bytes => "_bytes",
            Self::Qps => "_qps",
        }
    }
}

/// What a label tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// Version of the agent.
    Version,
    /// Name of a scope; the board's table bounds them.
    Scope,
    /// Name of a signal, see [`tidegate_abi::signal::SignalId`].
    Signal,
    /// Name of a state, see [`tidegate_abi::decision::ScopeState`] and [`tidegate_limits::breaker::BreakerState`].
    State,
    /// `entry` or `tight`.
    Limit,
    /// Name of a tenant; the configuration bounds them. That of the default tenant is empty.
    Tenant,
    /// Name of a resource; the scrape bounds them.
    Resource,
    /// Id of a rule; the scrape bounds those of [`MetricId::RuleRefused`] and [`MetricId::RuleObserved`].
    Rule,
    /// Kind of a rule, see [`tidegate_abi::decision::RefusalKind`].
    RuleKind,
    /// Resource of a rule as the rule has it: a name or a pattern.
    RuleResource,
    /// What tasks wait for, see [`crate::signal::Pressure`].
    Pressure,
    /// Kind of reason for a missing value, see [`crate::procfs::NoValue::cause`], or for turning somebody away, see
    /// [`super::turned::Why`].
    Cause,
    /// Who refused, see [`tidegate_abi::decision::RefusalKind`], or why pages are not taken, see
    /// [`crate::tenant::past_life::NotCounted`].
    Reason,
    /// What has better and worse steps: `sampler`, `clock`, or `trigger` with a pressure.
    Ladder,
    /// Step of a ladder, such as [`crate::ebpf::Rung`].
    Rung,
    /// What there is a bounded number of, see [`crate::host::bounds::Bounds`].
    Bound,
    /// Whose share of it was full, see [`crate::places::Full`].
    Share,
    /// Name of a line of the log, see [`crate::event::kind::EventKind`].
    Event,
    /// What was lost: `wait`, `pause`, or a pause that is `unpaired`.
    Lost,
}

impl Label {
    /// The label's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Scope => "scope",
            Self::Signal => "signal",
            Self::State => "state",
            Self::Limit => "limit",
            Self::Tenant => "tenant",
            Self::Resource | Self::RuleResource => "resource",
            Self::Rule => "rule",
            Self::RuleKind => "kind",
            Self::Reason => "reason",
            Self::Ladder => "ladder",
            Self::Rung => "rung",
            Self::Bound => "bound",
            Self::Share => "share",
            Self::Event => "event",
            Self::Lost => "what",
            Self::Pressure => "pressure",
            Self::Cause => "cause",
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricRow {
    /// Name on the wire.
    pub name: &'static str,
    /// How the value moves.
    pub kind: MetricKind,
    /// Unit of the value.
    pub unit: MetricUnit,
    /// Labels, in the order in which values are given.
    pub labels: &'static [Label],
    /// What the value says.
    pub help: &'static str,
}

/// Makes the ids and their rows from one list.
macro_rules! metric_table {
    ($($id:ident: $name:literal $kind:ident $unit:ident [$($label:ident)*] $help:literal;)+) => {
        /// A metric; the order is the order of the scrape.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum MetricId { $(#[doc = $help] $id,)+ }

        impl MetricId {
            /// Every metric.
            pub const ALL: &'static [Self] = &[$(Self::$id,)+];

            /// The metric's row.
            pub const fn row(self) -> MetricRow {
                match self {
                    $(Self::$id => MetricRow {
                        name: $name,
                        kind: MetricKind::$kind,
                        unit: MetricUnit::$unit,
                        labels: &[$(Label::$label,)*],
                        help: $help,
                    },)+
                }
            }
        }
    };
}

metric_table! {
    BuildInfo: "tidegate_build_info" Gauge None [Version]
        "Version of the agent; the value is always 1.";
    Uptime: "tidegate_uptime_seconds" Gauge Seconds []
        "Time since the agent started.";

    Signal: "tidegate_signal" Gauge None [Scope Signal]
        "Last value of a signal, in the signal's own unit; absent while it is not measured.";
    SignalMeasured: "tidegate_signal_measured" Gauge None [Scope Signal]
        "1 if the signal was measured in the last tick, else 0.";
    SignalMissing: "tidegate_signal_missing" Gauge None [Scope Signal Cause]
        "1 for the kind of reason why a signal was not measured in the last tick; absent while it is measured.";
    ScopeState: "tidegate_scope_state" Gauge None [Scope State]
        "1 for the state that the scope is in, else 0; busy is overload in which nobody is refused now.";
    ScopeStateTime: "tidegate_scope_state_seconds" Gauge Seconds [Scope State]
        "How long the scope has been in the state that it is in; absent for the others.";
    ScopeIncident: "tidegate_scope_incident_seconds" Gauge Seconds [Scope]
        "How long its successes have taken over ten times the base response time, which is frozen meanwhile; 0 while they do not.";
    ScopeInflight: "tidegate_scope_inflight" Gauge None [Scope]
        "Inbound requests in flight in the scope.";
    ScopeInflightLimit: "tidegate_scope_inflight_limit" Gauge None [Scope Limit]
        "In-flight limit of the scope: entry begins overload, tight holds in overload; absent without limit.";
    ScopeChanges: "tidegate_scope_state_changes_total" Counter None [Scope]
        "Changes of the scope's state.";
    ScopeOneShots: "tidegate_scope_one_shots_total" Counter None [Scope]
        "Requests admitted of callers that hold no permit.";
    ScopeObserved: "tidegate_scope_observed_total" Counter None [Scope]
        "Requests that found the scope's limits reached while it only observed (law.mode), and were admitted.";
    ScopeIneffective: "tidegate_scope_ineffective_total" Counter None [Scope]
        "Times that shedding was found not to lower the pressure on the scope.";
    ScopeCutoff: "tidegate_scope_cutoff_level" Gauge None [Scope]
        "Level from which requests are cut: 0 to 127 critical, 128 to 255 normal, 256 to 383 sheddable; absent while none is.";
    ConfiguredScopeGroups: "tidegate_configured_scope_groups" Gauge None [Scope]
        "Control groups that fit the scope of the configuration; 0 is none, so that the scope protects nothing.";
    ScopeDeclaredCpus: "tidegate_scope_declared_cpus" Gauge None [Scope]
        "CPUs that the configuration declares for the scope in place of those that its group may use; absent without.";
    ScopeCpusConflict: "tidegate_scope_declared_cpus_conflict" Gauge None [Scope]
        "1 if the group may not use the CPUs that are declared for it, or may use more; absent without declared CPUs.";
    AllowedQps: "tidegate_allowed_qps" Gauge Qps [Scope]
        "Requests a second that the scope can take now; absent without limit.";

    ResourcePassed: "tidegate_resource_passed_total" Counter None [Resource Tenant]
        "Requests admitted.";
    ResourceRefused: "tidegate_resource_refused_total" Counter None [Resource Reason Tenant]
        "Requests refused, by the kind of rule that refused.";
    ResourceObserved: "tidegate_resource_observed_total" Counter None [Resource Tenant]
        "Requests that rules in observe mode would have refused.";
    ResourceFailed: "tidegate_resource_failed_total" Counter None [Resource Tenant]
        "Requests that ended with an error.";
    ResourceInflight: "tidegate_resource_inflight" Gauge None [Resource Tenant]
        "Requests in flight.";
    ResourceBulkhead: "tidegate_resource_bulkhead_limit" Gauge None [Resource Tenant]
        "Requests in flight that a bulkhead holds the resource to; absent while none does.";
    ResourceWaits: "tidegate_resource_waits_total" Counter None [Resource Tenant]
        "How often a rule let a request wait for its turn.";
    ResourceRt: "tidegate_resource_rt_seconds" Histogram Seconds [Resource Tenant]
        "Response times of the requests that ended well; the first 200 resources have buckets.";
    RuleRefused: "tidegate_rule_refused_total" Counter None [Rule RuleKind RuleResource Tenant]
        "Requests that the rule refused; rules over the bound on label values are the rule __other__.";
    RuleObserved: "tidegate_rule_observed_total" Counter None [Rule RuleKind RuleResource Tenant]
        "Requests that the rule would have refused if it did not only observe.";
    BreakerState: "tidegate_breaker_state" Gauge None [Resource Rule State Tenant]
        "1 for the state that the breaker is in (closed, open or half-open), else 0.";
    BreakerChanges: "tidegate_breaker_changes_total" Counter None [Resource Rule State Tenant]
        "How often the breaker came into the state.";
    OtherResources: "tidegate_other_resources" Gauge None []
        "Resources over the bound on label values; together they are the resource __other__.";

    Ticks: "tidegate_ticks_total" Counter None []
        "Ticks of the sampler.";
    EarlyTicks: "tidegate_pressure_triggers_total" Counter None [Pressure]
        "How often a pressure trigger made a tick come before it was due.";
    TickLate: "tidegate_tick_late_seconds" Histogram Seconds []
        "How much later than planned a tick began.";
    PortTurnedAway: "tidegate_metrics_port_turned_away_total" Counter None [Cause]
        "Connections and requests that the TCP port of the metrics did not serve, by the reason.";
    RecordingBegunAnew: "tidegate_recording_begun_anew_total" Counter None []
        "Times that the recording was found deleted or cut off, and was begun anew.";
    RecordingLost: "tidegate_recording_lost_ticks_total" Counter None []
        "Ticks of scopes that were measured and could not be recorded.";
    PermitsExpired: "tidegate_permits_expired_total" Counter None [Tenant]
        "Permits given over HTTP that were not given back and ended by the clock.";
    TurnedAway: "tidegate_turned_away_total" Counter None [Bound Share]
        "Callers that found no place, by what they asked for and whose share was full (all, user or process).";
    SeatsRefused: "tidegate_seats_refused_total" Counter None [Share Tenant]
        "Processes that got no seat and are served over the socket, by whose share was full (all, user or process).";
    SeatsTaken: "tidegate_seats_taken" Gauge None [Tenant]
        "Seats that processes may have and that are taken; one that rests after its process ended counts.";
    SeatsMax: "tidegate_seats_max" Gauge None [Tenant]
        "Seats that processes may have now, without those that are the agent's or kept for it.";
    Clients: "tidegate_clients" Gauge None [Tenant]
        "Processes connected to the gate socket.";
    DecisionsWithoutAgent: "tidegate_decisions_without_agent_total" Counter None [Tenant]
        "Decisions that services made while the agent's heartbeat was too old.";
    LedgerMemory: "tidegate_ledger_memory_bytes" Gauge Bytes [Tenant]
        "Memory that the tenant's ledger took at the last look.";
    LedgerExplained: "tidegate_ledger_explained_bytes" Gauge Bytes [Tenant]
        "Most memory that seats, slots and rules in use explain; what a service has written beyond it is given back.";
    HandBacksRefused: "tidegate_hand_backs_refused_total" Counter None [Reason Tenant]
        "Pages of an earlier life that a process handed back and that count for nothing, by why.";
    EarlierInflight: "tidegate_earlier_pages_inflight" Gauge None [Tenant]
        "Requests in flight on pages of an earlier life that this one does not go on with; they count until they end.";
    LedgerGivenBack: "tidegate_ledger_given_back_bytes_total" Counter Bytes [Tenant]
        "Memory of the ledger that nothing explained and that was given back.";
    RulesGeneration: "tidegate_rules_generation" Gauge None [Tenant]
        "Number of the rule set in force.";
    ConfigReloadSuccessful: "tidegate_config_last_reload_successful" Gauge None []
        "1 if the last reload of configuration and rules was taken over, 0 if it was refused.";
    ConfigRefusedAtStart: "tidegate_config_refused_at_start" Gauge None []
        "1 while what was faulty at the start is not mended: the last good configuration or rules are in force, or none; else 0.";

    ConfigReloadTime: "tidegate_config_last_reload_success_timestamp_seconds" Gauge Seconds []
        "When configuration and rules were last taken over, Unix time; the start counts.";

    Events: "tidegate_events_total" Counter None [Event]
        "How often it happened, by the name that it has in the log; absent for what has not happened.";
    Rung: "tidegate_rung" Gauge None [Ladder Rung]
        "The step of a ladder that is in use; the value is always 1.";
    WaitersRung: "tidegate_waiters_rung" Gauge None [Scope Rung]
        "Where the number of tasks of a scope that wait for a CPU comes from; the value is always 1.";
    KernelRung: "tidegate_kernel_rung" Gauge None [Rung]
        "1 for the step of the ladder by which the kernel's scheduler is watched, else 0.";
    KernelOverhead: "tidegate_kernel_overhead" Gauge None []
        "Share of one CPU that programs in the kernel took in the last second.";
    KernelRuns: "tidegate_kernel_runs_total" Counter None []
        "Runs of programs on scheduler events since they were loaded.";
    KernelLost: "tidegate_kernel_lost_total" Counter None [Lost]
        "Waits and pauses that programs in the kernel saw and could not tell.";
    KernelGroups: "tidegate_kernel_groups" Gauge None []
        "Control groups that programs in the kernel count for a scope.";
    KernelGroupsLeftOut: "tidegate_kernel_groups_left_out" Gauge None []
        "Control groups in a scope that found no place in the kernel's table.";
    KernelSlots: "tidegate_kernel_slots" Gauge None []
        "Scopes that programs in the kernel can keep apart.";
    GcPause: "tidegate_gc_pause_seconds" Summary Seconds [Scope]
        "Stops of the scope's JVMs for garbage collection.";
    Safepoint: "tidegate_safepoint_seconds" Summary Seconds [Scope]
        "Stops of the scope's JVMs for any reason.";

    ProcessCpu: "process_cpu_seconds_total" Counter Seconds []
        "CPU time that the agent used.";
    ProcessResidentMemory: "process_resident_memory_bytes" Gauge Bytes []
        "Resident memory of the agent.";
}

impl MetricId {
    /// Whether it counts since the agent started. What others count may be older, as the pages of a service are, or
    /// younger, as a scope is.
    pub const fn counts_since_start(self) -> bool {
        matches!(
            self,
            Self::Ticks
                | Self::EarlyTicks
                | Self::TickLate
                | Self::PortTurnedAway
                | Self::RecordingBegunAnew
                | Self::RecordingLost
                | Self::TurnedAway
                | Self::ProcessCpu
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules() {
        for row in MetricId::ALL.iter().map(|id| id.row()) {
            let name = row.name;
            assert!(
                name.starts_with("tidegate_") || name.starts_with("process_"),
                "{name}"
            );
            let base = name.strip_suffix("_total");
            assert_eq!(base.is_some(), row.kind == MetricKind::Counter, "{name}");
            assert!(base.unwrap_or(name).ends_with(row.unit.suffix()), "{name}");
            assert!(row.help.ends_with('.'), "{name}");
        }
    }

    #[test]
    fn names_are_different() {
        let mut names: Vec<_> = MetricId::ALL.iter().map(|id| id.row().name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), MetricId::ALL.len());
    }
}
