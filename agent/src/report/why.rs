//! Why a scope is in its state, and what it does about it, in a sentence.

use tidegate_abi::board::ScopeWord;
use tidegate_abi::decision::{Cause, ScopeState};
use tidegate_abi::signal::SignalId;

use crate::control::ScopeSnapshot;
use crate::words::{many, number, percent, signal};

/// Share of the quota periods that were throttled from which on it is told beside another cause.
const THROTTLED: f64 = 0.05;

/// The sentence of a scope; `None` while nothing is wrong.
pub fn why(scope: &ScopeSnapshot) -> Option<String> {
    let cause = cause(scope)?;
    Some(match effect(scope) {
        Some(effect) => format!("{cause}; {effect}"),
        None => cause,
    })
}

/// What is wrong, with the figures that say so.
pub fn cause(scope: &ScopeSnapshot) -> Option<String> {
    let value = |id: SignalId| scope.readings.value(id);
    let figures = |ids: &[(SignalId, &str)]| {
        let told = ids.iter().filter_map(|(id, word)| {
            let value = signal(value(*id)?, id.unit().name());
            Some(format!("{word} {value}"))
        });
        let told: Vec<String> = told.collect();
        if told.is_empty() {
            String::new()
        } else {
            format!(" ({})", told.join(", "))
        }
    };
    let told = match scope.published.cause {
        Cause::None => return None,
        Cause::Cpu => format!("its own work uses up the CPU{}", cpu_figures(scope)),
        Cause::Quota => format!("its quota holds it back{}", throttled(scope)),
        Cause::Neighbour => format!("other work takes the CPU{}", figures(pushed_aside(scope))),
        Cause::Gc => {
            let figures = figures(&[
                (SignalId::GcCpu, "of its CPU time"),
                (SignalId::GcShare, "stopped"),
                (SignalId::FullGc, "full collections in 10 s"),
            ]);
            let quota = throttled(scope);
            let quota = if quota.is_empty() {
                quota
            } else {
                format!(", and its quota holds it back{quota}")
            };
            format!("garbage collection takes its time{figures}{quota}")
        }
        Cause::Steal => format!(
            "the hypervisor takes the CPU{}",
            figures(&[(SignalId::Steal, "steal")])
        ),
        Cause::Load => format!("load is high{}", load_figures(scope)),
        Cause::InFlight => "far more is in flight than its services can do".to_owned(),
        Cause::RunQueue => format!(
            "tasks wait for a CPU{}",
            figures(&[(SignalId::RunqueueWait, "tasks"), (SignalId::Cpu, "cpu")])
        ),
        Cause::Pressure => format!(
            "tasks wait for a CPU{}",
            figures(&[(SignalId::PsiCpu, "pressure"), (SignalId::Cpu, "cpu")])
        ),
        Cause::Threads => format!(
            "too many threads are alive{}",
            figures(&[(SignalId::Threads, "threads")])
        ),
    };
    Some(told)
}

/// What shows that others take the CPU. Nobody has to push a task aside for it to wait.
fn pushed_aside(scope: &ScopeSnapshot) -> &'static [(SignalId, &'static str)] {
    let often = scope.readings.value(SignalId::PreemptedBy);
    if often.is_some_and(|often| often >= 1.0) {
        &[(SignalId::PreemptedBy, "its tasks pushed aside")]
    } else {
        &[
            (SignalId::RunqueueWaitShare, "its tasks wait"),
            (SignalId::Cpu, "its cpu"),
        ]
    }
}

fn load_figures(scope: &ScopeSnapshot) -> String {
    match (scope.readings.value(SignalId::Load1), scope.load_mark) {
        (Some(load), Some(mark)) => format!(" (load1 {}, mark {})", number(load), number(mark)),
        (Some(load), None) => format!(" (load1 {})", number(load)),
        (None, _) => String::new(),
    }
}

fn cpu_figures(scope: &ScopeSnapshot) -> String {
    let mark = scope.published.cpu_mark.map(percent);
    match (scope.readings.value(SignalId::Cpu).map(percent), mark) {
        (Some(cpu), Some(mark)) => format!(" (cpu {cpu}, mark {mark})"),
        (Some(cpu), None) => format!(" (cpu {cpu})"),
        (None, _) => String::new(),
    }
}

fn throttled(scope: &ScopeSnapshot) -> String {
    let share = scope.readings.value(SignalId::Throttle);
    share
        .filter(|share| *share >= THROTTLED)
        .map_or_else(String::new, |share| {
            format!(" (throttled in {} of its periods)", percent(share))
        })
}

/// Whom it refuses.
fn effect(scope: &ScopeSnapshot) -> Option<String> {
    let (inflight, limit) = (scope.counts.inflight, inflight_limit(scope));
    if scope.published.observes() {
        return match scope.published.state {
            ScopeState::Healthy | ScopeState::Cold => None,
            ScopeState::Overload | ScopeState::Reject => Some(format!(
                "it only observes: {} found its limits reached so far, nobody is refused",
                many(scope.observed, "request")
            )),
        };
    }
    match scope.published.state {
        ScopeState::Healthy | ScopeState::Cold => None,
        ScopeState::Reject => Some("all inbound work is refused".to_owned()),
        ScopeState::Overload => {
            let limit = limit?;
            Some(if refuses(scope) {
                format!(
                    "what is over {} in flight is refused",
                    many(limit.into(), "request")
                )
            } else {
                format!("nobody is refused: {inflight} of {limit} in flight")
            })
        }
    }
}

/// Whether a request that comes now may be refused by the scope: it has reached its limit, or cuts levels off.
pub fn refuses(scope: &ScopeSnapshot) -> bool {
    let is_full = inflight_limit(scope).is_some_and(|limit| scope.counts.inflight >= limit.into());
    match scope.published.state {
        _ if scope.published.observes() => false,
        ScopeState::Healthy | ScopeState::Cold => false,
        ScopeState::Reject => true,
        ScopeState::Overload => is_full || scope.cutoff.is_some(),
    }
}

/// The limit that holds now; `None` is no limit.
pub(super) fn inflight_limit(scope: &ScopeSnapshot) -> Option<u32> {
    let word = scope.published.word();
    let limit = match word.state {
        ScopeState::Healthy | ScopeState::Cold => word.entry,
        ScopeState::Overload => word.tight,
        ScopeState::Reject => 0,
    };
    (limit < ScopeWord::LIMIT_MAX).then_some(limit)
}

/// The word for a scope whose mark is passed while nobody is refused, which is no overload to an operator.
pub const BUSY: &str = "busy";

/// A state in the word that people read: in status, log, metrics and the line for the service manager.
pub fn state_word(state: ScopeState, refuses: bool) -> &'static str {
    if state == ScopeState::Overload && !refuses {
        BUSY
    } else {
        state.name()
    }
}

/// The state of a scope, in that word.
pub fn state_of(scope: &ScopeSnapshot) -> &'static str {
    state_word(scope.published.state, refuses(scope))
}

#[cfg(test)]
pub(crate) mod tests {
    use tidegate_limits::law::{Enforcement, PublishedLimits};
    use tidegate_segment::ledger::ScopeCounts;

    use super::*;
    use crate::signal::{Readings, TopThreads};

    /// A scope in overload.
    pub(crate) fn scope(cause: Cause, signals: &[(SignalId, f64)]) -> ScopeSnapshot {
        let mut readings = Readings::default();
        for (id, value) in signals {
            readings.set(*id, Ok(*value));
        }
        ScopeSnapshot {
            index: 0,
            name: "host".into(),
            cgroup: None,
            threads: TopThreads::default(),
            bulkhead: None,
            readings,
            declared_cpus: None,
            load_mark: Some(2.0),
            published: PublishedLimits {
                state: ScopeState::Overload,
                cause,
                entry: 32,
                tight: 32,
                ..PublishedLimits::START
            },
            since_ns: 0,
            changes: 0,
            cutoff: None,
            ineffective_times: 0,
            one_shots: 0,
            observed: 0,
            counts: ScopeCounts::default(),
            kernel_slot: None,
            neighbour: None,
        }
    }

    #[test]
    fn who_is_not_pushed_aside_is_shown_by_how_its_tasks_wait() {
        let told = |often| {
            let signals = [
                (SignalId::PreemptedBy, often),
                (SignalId::RunqueueWaitShare, 0.4),
                (SignalId::Cpu, 0.125),
            ];
            cause(&scope(Cause::Neighbour, &signals)).unwrap()
        };
        assert_eq!(
            told(120.0),
            "other work takes the CPU (its tasks pushed aside 120/s)"
        );
        assert_eq!(
            told(0.0),
            "other work takes the CPU (its tasks wait 40 %, its cpu 12.5 %)"
        );
    }

    #[test]
    fn field_o5_high_load_alone_says_that_nobody_is_refused() {
        let mut host = scope(Cause::Load, &[(SignalId::Load1, 4.6)]);
        assert_eq!(
            why(&host).unwrap(),
            "load is high (load1 4.6, mark 2); nobody is refused: 0 of 32 in flight"
        );
        assert_eq!(state_of(&host), "busy");
        host.counts.inflight = 40;
        assert_eq!(state_of(&host), "overload");
        assert_eq!(
            why(&host).unwrap(),
            "load is high (load1 4.6, mark 2); what is over 32 requests in flight is refused"
        );
        host.published.enforcement = Enforcement::Observe;
        host.observed = 3;
        assert_eq!(
            why(&host).unwrap(),
            "load is high (load1 4.6, mark 2); it only observes: 3 requests found its limits reached so far, \
             nobody is refused"
        );
        assert!(!refuses(&host));
        host.published = PublishedLimits::START;
        assert_eq!(why(&host), None);
    }

    #[test]
    fn field_o11_a_quota_is_named_beside_garbage_collection() {
        let signals = [(SignalId::GcShare, 0.47), (SignalId::Throttle, 1.0)];
        let told = why(&scope(Cause::Gc, &signals)).unwrap();
        assert_eq!(
            told,
            "garbage collection takes its time (stopped 47 %), and its quota holds it back \
             (throttled in 100 % of its periods); nobody is refused: 0 of 32 in flight"
        );
    }
}
