//! What a replay comes to.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use serde::Serialize;

use crate::words::{many, number, span};

/// The result of a replay.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayReport {
    /// Ticks of all scopes.
    pub ticks: u64,
    /// Ticks that were measured and not recorded.
    pub lost_ticks: u64,
    /// Lines that are no lines of a recording, such as one that was cut off.
    pub odd_lines: u64,
    /// Where the first of them stands, and what is wrong with it.
    pub first_odd_line: Option<String>,
    /// The scopes, in the order of their places.
    pub scopes: Vec<ScopeReplayReport>,
    /// Expectations of the file that were met.
    pub expectations_met: u64,
    /// Expectations that were not: where, and what was found.
    pub expectations_missed: Vec<String>,
}

/// The result for one scope.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScopeReplayReport {
    /// Its name.
    pub name: String,
    /// Its group; null is the host.
    pub cgroup: Option<String>,
    /// Time that was replayed.
    pub seconds: f64,
    /// Ticks of it.
    pub ticks: u64,
    /// When it ended, seconds since 1970; null where the file does not say it.
    pub until_unix_s: Option<u64>,
    /// Requests that were offered.
    pub offered: u64,
    /// Those that were refused when it was recorded.
    pub refused_recorded: u64,
    /// Those that would have been refused.
    pub refused_replayed: u64,
    /// Share of the time in each state.
    pub time_in: Shares,
    /// Ticks after which the recorded state is another one.
    pub ticks_other_than_recorded: u64,
    /// Ticks in which shedding was known to be ineffective.
    pub ineffective_ticks: u64,
    /// Changes of state.
    pub changes: u64,
    /// The first ten thousand of them.
    pub transitions: Vec<Transition>,
    /// Limits at the end.
    pub limits: ReplayLimits,
}

/// Share of the time in each state.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Shares {
    /// Healthy.
    pub healthy: f64,
    /// Cold.
    pub cold: f64,
    /// In overload.
    pub overload: f64,
    /// Rejecting.
    pub reject: f64,
}

/// A change of state.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Transition {
    /// Time since the beginning, s.
    pub at_s: f64,
    /// The time of the clock, seconds since 1970; null where the file does not say it.
    pub at_unix_s: Option<u64>,
    /// State before.
    pub from: &'static str,
    /// State after.
    pub to: &'static str,
    /// Why.
    pub cause: &'static str,
}

/// Limits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ReplayLimits {
    /// Entry limit at the end.
    pub entry: u32,
    /// Tight limit at the end.
    pub tight: u32,
    /// Least tight limit in overload.
    pub tight_least: Option<u32>,
    /// Most tight limit in overload.
    pub tight_most: Option<u32>,
    /// Allowed QPS at the end.
    pub allowed_qps: Option<f64>,
    /// Capacity at the end, requests per second.
    pub capacity_qps: Option<f64>,
    /// Response time at rest at the end, ms.
    pub base_rt_ms: Option<f64>,
}

/// A time of the clock.
fn clock(unix_s: u64) -> String {
    let time = UNIX_EPOCH.checked_add(Duration::from_secs(unix_s));
    time.map_or_else(
        || format!("{unix_s} s after 1970"),
        |time| {
            let time = humantime::format_rfc3339_seconds(time).to_string();
            time.replace('T', " ").replace('Z', " UTC")
        },
    )
}

/// Transitions that the text shows of each scope.
const SHOWN: usize = 20;

impl fmt::Display for ReplayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scopes = u64::try_from(self.scopes.len()).unwrap_or(u64::MAX);
        write!(f, "{} replayed", many(scopes, "scope"))?;
        if self.lost_ticks > 0 {
            write!(
                f,
                "; {} of them not recorded",
                many(self.lost_ticks, "tick")
            )?;
        }
        if let Some(first) = &self.first_odd_line {
            let lines = many(self.odd_lines, "line");
            write!(f, "; {lines} passed over (first {first})")?;
        }
        writeln!(
            f,
            "\nRefusals are those of scopes; what rules refuse is not replayed."
        )?;
        for scope in &self.scopes {
            writeln!(f, "\n{scope}")?;
        }
        let missed = self.expectations_missed.len();
        if self.expectations_met > 0 || missed > 0 {
            writeln!(
                f,
                "\nexpectations: {} met, {missed} missed",
                self.expectations_met
            )?;
        }
        for missed in &self.expectations_missed {
            writeln!(f, "  {missed}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ScopeReplayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |part: u64| super::run::ratio(part, self.offered) * 100.0;
        write!(f, "scope {}: {}", self.name, many(self.ticks, "tick"))?;
        write!(f, " in {}", span(self.seconds))?;
        match self.until_unix_s {
            Some(end) => writeln!(f, ", until {}", clock(end))?,
            None => writeln!(f)?,
        }
        writeln!(
            f,
            "  offered {}, refused then {} ({:.2} %), refused now {} ({:.2} %)",
            self.offered,
            self.refused_recorded,
            percent(self.refused_recorded),
            self.refused_replayed,
            percent(self.refused_replayed),
        )?;
        writeln!(
            f,
            "  time: healthy {:.1} %, cold {:.1} %, overload {:.1} %, reject {:.1} %",
            self.time_in.healthy * 100.0,
            self.time_in.cold * 100.0,
            self.time_in.overload * 100.0,
            self.time_in.reject * 100.0,
        )?;
        match self.ticks_other_than_recorded {
            0 => writeln!(f, "  in each tick the state that was recorded")?,
            other => writeln!(
                f,
                "  in {} another state than was recorded",
                many(other, "tick")
            )?,
        }
        write!(f, "  limits at the end: {}", self.limits)?;
        if self.ineffective_ticks > 0 {
            let ticks = self.ineffective_ticks;
            write!(f, "\n  shedding was ineffective in {ticks} ticks")?;
        }
        for change in self.transitions.iter().take(SHOWN) {
            let Transition {
                at_s,
                at_unix_s,
                from,
                to,
                cause,
            } = change;
            match at_unix_s {
                Some(at) => write!(f, "\n  {}  {from} -> {to} ({cause})", clock(*at))?,
                None => write!(f, "\n  {at_s:>10.1} s  {from} -> {to} ({cause})")?,
            }
        }
        let shown = u64::try_from(self.transitions.len().min(SHOWN)).unwrap_or(u64::MAX);
        let more = self.changes.saturating_sub(shown);
        if more > 0 {
            write!(f, "\n  and {more} changes more; --json tells them")?;
        }
        Ok(())
    }
}

impl fmt::Display for ReplayLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {}, tight {}", self.entry, self.tight)?;
        if let (Some(least), Some(most)) = (self.tight_least, self.tight_most) {
            write!(f, " ({least} to {most} in overload)")?;
        }
        if let Some(allowed) = self.allowed_qps {
            write!(f, ", {} a second without a permit", number(allowed))?;
        }
        match (self.capacity_qps, self.base_rt_ms) {
            (Some(capacity), Some(rest)) => write!(
                f,
                "\n  capacity {} a second, {} ms each at rest",
                number(capacity),
                number(rest)
            ),
            (Some(capacity), None) => write!(f, "\n  capacity {} a second", number(capacity)),
            (None, _) => write!(f, "\n  too little work to know the capacity"),
        }
    }
}
