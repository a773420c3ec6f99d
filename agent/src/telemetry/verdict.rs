//! The verdict: how this host is, in one sentence, said the same way by every report.
//!
//! It names the scope that is worst, since when, why, who is refused and what helps. Rules that refuse are no part of it:
//! they do what their owners wrote.

use std::fmt;

use tidegate_abi::decision::{Cause, ScopeState};

use crate::words::{many, span};

/// Share of the limit in flight from which on a healthy scope is worth a look.
const NEAR: f64 = 0.7;

/// A scope as the verdict looks at it.
#[derive(Debug, Clone, Copy)]
pub struct VerdictFacts<'f> {
    /// Its name.
    pub name: &'f str,
    /// Its state.
    pub state: ScopeState,
    /// For how long it has been in it, s.
    pub for_s: f64,
    /// What the state is because of.
    pub cause: Cause,
    /// The same in words, with figures; empty without a cause.
    pub why: &'f str,
    /// What says that the CPU is short now.
    pub evidence: &'f [&'f str],
    /// Whether a request that comes now may be refused.
    pub refuses: bool,
    /// Whether it refuses nothing, whatever it finds.
    pub observes: bool,
    /// Requests in flight.
    pub inflight: u64,
    /// The limit in flight that holds now; `None` is no limit.
    pub limit: Option<u32>,
}

/// How a scope is, from the best on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum VerdictLevel {
    /// Healthy, and far from its limits.
    Calm,
    /// Healthy, and near its limit or with evidence that the CPU is short.
    Watch,
    /// It has no history yet.
    Cold,
    /// Its mark is passed, and nobody is refused.
    Busy,
    /// It refuses what is too much.
    Overload,
    /// It refuses all inbound work.
    Reject,
}

impl VerdictLevel {
    /// Its word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::Watch => "watch",
            Self::Cold => "cold",
            Self::Busy => "busy",
            Self::Overload => "overload",
            Self::Reject => "reject",
        }
    }
}

/// The verdict on all scopes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostVerdict {
    /// How the worst scope is.
    pub level: VerdictLevel,
    /// Its name; `None` where all are calm.
    pub scope: Option<String>,
    /// What its state is because of.
    pub cause: Cause,
    sentence: String,
}

impl fmt::Display for HostVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.level.name(), self.sentence)
    }
}

impl HostVerdict {
    /// Whether both say the same but for figures.
    pub fn is_like(&self, other: &Self) -> bool {
        let key = |verdict: &Self| (verdict.level, verdict.scope.clone(), verdict.cause);
        key(self) == key(other)
    }
}

/// The verdict; `None` before the first tick. Of scopes that are as bad as each other the first one is told.
pub fn verdict(scopes: &[VerdictFacts<'_>]) -> Option<HostVerdict> {
    let mut worst = scopes.first()?;
    for scope in scopes {
        if level(scope) > level(worst) {
            worst = scope;
        }
    }
    let level_now = level(worst);
    if level_now == VerdictLevel::Calm {
        return Some(HostVerdict {
            level: level_now,
            scope: None,
            cause: Cause::None,
            sentence: calm(scopes.len()),
        });
    }
    let as_bad = scopes
        .iter()
        .filter(|scope| level(scope) == level_now)
        .count();
    let mut sentence = said(worst, level_now);
    if as_bad > 1 {
        let others = u64::try_from(as_bad).unwrap_or(u64::MAX).saturating_sub(1);
        sentence = format!("{sentence} ({} more as bad)", many(others, "scope"));
    }
    Some(HostVerdict {
        level: level_now,
        scope: Some(worst.name.to_owned()),
        cause: worst.cause,
        sentence,
    })
}

fn level(scope: &VerdictFacts<'_>) -> VerdictLevel {
    match scope.state {
        ScopeState::Healthy if is_near(scope) || !scope.evidence.is_empty() => VerdictLevel::Watch,
        ScopeState::Healthy => VerdictLevel::Calm,
        ScopeState::Cold => VerdictLevel::Cold,
        ScopeState::Overload | ScopeState::Reject if !scope.refuses => VerdictLevel::Busy,
        ScopeState::Overload => VerdictLevel::Overload,
        ScopeState::Reject => VerdictLevel::Reject,
    }
}

fn is_near(scope: &VerdictFacts<'_>) -> bool {
    let limit = scope.limit.map(f64::from);
    limit.is_some_and(|limit| tidegate_limits::number::double(scope.inflight) > NEAR * limit)
}

fn calm(scopes: usize) -> String {
    match scopes {
        1 => "the host is far from its limits and refuses nobody".to_owned(),
        _ => format!("all {scopes} scopes are far from their limits and refuse nobody"),
    }
}

/// The sentence of a scope that is not calm.
fn said(scope: &VerdictFacts<'_>, level: VerdictLevel) -> String {
    let (name, since) = (scope.name, span(scope.for_s));
    match level {
        VerdictLevel::Calm => String::new(),
        VerdictLevel::Watch if is_near(scope) => {
            format!(
                "{name} is near its limit; nobody is refused yet: {}",
                flight(scope)
            )
        }
        VerdictLevel::Watch => {
            let evidence = scope.evidence.join(", ");
            format!(
                "{name} is short of CPU ({evidence}); nobody is refused: {}",
                flight(scope)
            )
        }
        VerdictLevel::Cold => format!(
            "{name} has learnt for {since} what it can do; nobody is refused: {}",
            flight(scope)
        ),
        VerdictLevel::Busy if scope.observes => format!(
            "{name} for {since}{}; it only observes and refuses nobody: {}",
            because(scope),
            flight(scope)
        ),
        VerdictLevel::Busy => format!(
            "{name} for {since}{}; nobody is refused: {}",
            because(scope),
            flight(scope)
        ),
        VerdictLevel::Overload => {
            let who = match scope.limit {
                Some(limit) if scope.inflight >= u64::from(limit) => {
                    format!(
                        "what is over {} in flight is refused",
                        many(limit.into(), "request")
                    )
                }
                Some(_) | None => "work of low priority is refused".to_owned(),
            };
            format!(
                "{name} for {since}{}; {who}; {}",
                because(scope),
                help(scope.cause)
            )
        }
        VerdictLevel::Reject => format!(
            "{name} for {since}{}; all inbound work is refused; {}",
            because(scope),
            help(scope.cause)
        ),
    }
}

fn because(scope: &VerdictFacts<'_>) -> String {
    if scope.why.is_empty() {
        String::new()
    } else {
        format!(", {}", scope.why)
    }
}

/// What is in flight, of what may be.
fn flight(scope: &VerdictFacts<'_>) -> String {
    match scope.limit {
        Some(limit) => format!("{} of {limit} in flight", scope.inflight),
        None => format!("{} in flight", scope.inflight),
    }
}

/// What helps against a cause.
const fn help(cause: Cause) -> &'static str {
    match cause {
        Cause::None => "`tidegate events` tells how it began",
        Cause::Cpu => "add CPUs or instances, or send it less",
        Cause::Quota => "raise the CPU quota of its cgroup",
        Cause::Neighbour => "find who uses the CPU (`systemd-cgtop`)",
        Cause::Gc => "look at heap size and allocation of its JVMs",
        Cause::Steal => "ask whoever runs the hypervisor for the CPUs",
        Cause::Load => "find what runs or waits for the disk (`top`), or raise the mark ([load])",
        Cause::InFlight => "look at what its requests wait for",
        Cause::RunQueue | Cause::Pressure => "add CPUs, or find who uses them (`systemd-cgtop`)",
        Cause::Threads => "look at what its threads wait for (`tidegate status -v`)",
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;

    use super::*;

    const FACTS: VerdictFacts<'static> = VerdictFacts {
        name: "orders",
        state: ScopeState::Healthy,
        for_s: 125.0,
        cause: Cause::None,
        why: "",
        evidence: &[],
        refuses: false,
        observes: false,
        inflight: 5,
        limit: Some(64),
    };

    fn write(text: &mut String, facts: &VerdictFacts<'_>) {
        writeln!(text, "{}", verdict(&[*facts]).unwrap()).unwrap();
    }

    fn write_unstrained(text: &mut String) {
        for evidence in [&[][..], &["cpu"], &["run_queue", "quota", "pressure"]] {
            for inflight in [5, 60] {
                write(
                    text,
                    &VerdictFacts {
                        evidence,
                        inflight,
                        ..FACTS
                    },
                );
            }
            let cold = ScopeState::Cold;
            write(
                text,
                &VerdictFacts {
                    state: cold,
                    evidence,
                    ..FACTS
                },
            );
        }
        write(
            text,
            &VerdictFacts {
                limit: None,
                evidence: &["cpu"],
                ..FACTS
            },
        );
    }

    fn write_strained(text: &mut String) {
        for state in [ScopeState::Overload, ScopeState::Reject] {
            for cause in Cause::ALL.iter().copied() {
                let why = format!("WHY {}", cause.name());
                let why = if cause == Cause::None { "" } else { &why };
                let facts = VerdictFacts {
                    state,
                    cause,
                    why,
                    ..FACTS
                };
                write(text, &facts);
                write(
                    text,
                    &VerdictFacts {
                        observes: true,
                        ..facts
                    },
                );
                write(
                    text,
                    &VerdictFacts {
                        refuses: true,
                        ..facts
                    },
                );
                write(
                    text,
                    &VerdictFacts {
                        refuses: true,
                        inflight: 64,
                        ..facts
                    },
                );
            }
        }
    }

    /// States × causes × evidence, and whether anybody is refused.
    #[test]
    fn every_sentence_is_pinned() {
        let mut text = String::new();
        write_unstrained(&mut text);
        write_strained(&mut text);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/telemetry/verdict.golden");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            text,
            golden,
            "UPDATE_GOLDEN=1 writes {} anew",
            path.display()
        );
    }

    #[test]
    fn the_worst_scope_is_told_and_how_many_are_as_bad() {
        assert_eq!(verdict(&[]), None);
        let host = VerdictFacts {
            name: "host",
            ..FACTS
        };
        let text = |scopes: &[VerdictFacts<'_>]| verdict(scopes).unwrap().to_string();
        assert_eq!(
            text(&[host, FACTS]),
            "calm: all 2 scopes are far from their limits and refuse nobody"
        );
        let refuses = VerdictFacts {
            state: ScopeState::Overload,
            cause: Cause::Quota,
            why: "its quota holds it back",
            refuses: true,
            inflight: 64,
            ..FACTS
        };
        let cold = VerdictFacts {
            state: ScopeState::Cold,
            ..host
        };
        assert_eq!(
            text(&[cold, refuses, refuses]),
            "overload: orders for 2 min 5 s, its quota holds it back; what is over 64 requests in flight is refused; \
             raise the CPU quota of its cgroup (1 scope more as bad)"
        );
        let [one, other] = [&[refuses][..], &[cold, refuses]].map(|all| verdict(all).unwrap());
        assert!(one.is_like(&other));
        assert!(!one.is_like(&verdict(&[cold]).unwrap()));
    }
}
