//! What a configuration would have done with what was recorded.
//!
//! The law of each scope gets the recorded samples one after the other, so the same configuration
//! comes to the same states. What is *not* replayed is the answer of the services to other
//! decisions: samples stay as they were measured. Shares of refusals are therefore reckoned from
//! the requests that were offered and the places that the replayed limits had (`tally`).

mod expectation;
mod report;
mod run;
mod tally;

use std::collections::BTreeMap;
use std::path::Path;

pub use report::{ReplayLimits, ReplayReport, ScopeReplayReport, Shares, Transition};
pub use run::{ReplayMoment, ScopeReplay};

use crate::config::Config;
use crate::control::Plan;
use crate::recording::line::{Expect, Line, ScopeLine, Start, TickLine};
use crate::recording::{ReadError, Reader, VERSION};
use crate::schema::fault::Fault;
use crate::schema::source::Source;

/// Most ticks of one replay: more than eleven days of a scope.
const TICKS_MAX: u64 = 10_000_000;
const NS_PER_S: u64 = 1_000_000_000;
/// Most places of scopes.
const PLACES_MAX: u32 = tidegate_abi::geometry::SCOPES_MAX;

/// Why a recording was not replayed to its end.
#[derive(Debug, thiserror::Error)]
pub enum ReplayStopped {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There is no tick.
    #[error("{file}: there is no tick in it{}; give a recording of the agent, or a script of samples", after(.first_odd.as_deref()))]
    NoTick {
        /// The file.
        file: String,
        /// Where the first line stands that is none of a recording, and what is wrong with it.
        first_odd: Option<String>,
    },
    /// The format is of another version.
    #[error(
        "{place}: version = {version}; this tidegate reads version {VERSION}, use the one that recorded it"
    )]
    Version {
        /// Where.
        place: String,
        /// The version found.
        version: u32,
    },
    /// A configuration in the file has faults.
    #[error("{place}: a configuration that is not valid\n{}", lines(.faults))]
    Config {
        /// Where.
        place: String,
        /// Its faults.
        faults: Vec<Fault>,
    },
    /// There are more ticks or places than are replayed.
    #[error("{place}: {what} = {value}; allowed are at most {max}: replay a part of the file")]
    TooMuch {
        /// Where.
        place: String,
        /// What there is too much of.
        what: &'static str,
        /// How much.
        value: u64,
        /// How much is allowed.
        max: u64,
    },
}

fn after(first_odd: Option<&str>) -> String {
    first_odd.map_or_else(String::new, |first| format!(" ({first})"))
}

fn lines(faults: &[Fault]) -> String {
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// A replay under way.
#[derive(Debug)]
pub struct Replay {
    plan: Plan,
    /// Whether configurations in the file count.
    takes_config: bool,
    runs: BTreeMap<u32, ScopeReplay>,
    ticks: u64,
    lost: u64,
    met: u64,
    missed: Vec<String>,
    /// Time of the clock of the present life of the agent, ns since 1970; `None` where the file does not say it.
    clock_ns: Option<u64>,
    /// Figures are of what came from this time on, ns since 1970.
    since_ns: Option<u64>,
}

impl Replay {
    /// A replay with this configuration; without one with that of the file, where it has one.
    pub fn new(config: Option<&Config>) -> Self {
        Self {
            plan: config.map_or_else(|| Plan::of(&Config::default()), Plan::of),
            takes_config: config.is_none(),
            runs: BTreeMap::new(),
            ticks: 0,
            lost: 0,
            met: 0,
            missed: Vec::new(),
            clock_ns: None,
            since_ns: None,
        }
    }

    /// The same with figures of what came from a time on, seconds since 1970. The law learns from what was before,
    /// too. What has no time counts.
    #[must_use]
    pub fn since(self, unix_s: Option<u64>) -> Self {
        Self {
            since_ns: unix_s.map(|seconds| seconds.saturating_mul(NS_PER_S)),
            ..self
        }
    }

    /// Replays a file, or both files of a directory. `each` is told of every tick.
    ///
    /// # Errors
    /// The file cannot be read, is of another version, holds too much, or no tick at all.
    pub fn run(
        mut self,
        path: &Path,
        each: &mut dyn FnMut(&ReplayMoment<'_>),
    ) -> Result<ReplayReport, ReplayStopped> {
        let mut reader = Reader::open(path)?;
        while let Some(line) = reader.next_line()? {
            self.take(line, &reader, each)?;
        }
        if self.ticks == 0 {
            return Err(ReplayStopped::NoTick {
                file: path.display().to_string(),
                first_odd: reader.odd().1.map(str::to_owned),
            });
        }
        Ok(self.report(&reader))
    }

    fn take(
        &mut self,
        line: Line,
        reader: &Reader,
        each: &mut dyn FnMut(&ReplayMoment<'_>),
    ) -> Result<(), ReplayStopped> {
        match line {
            Line::About(_) => {}
            Line::Start(start) => self.take_start(&start, reader)?,
            Line::Config(text) => self.take_config(&text, reader)?,
            Line::Scope(scope) => self.take_scope(scope, reader)?,
            Line::Tick(tick) => self.take_tick(&tick, reader, each)?,
            Line::Repeat(repeat) => {
                for _time in 0..repeat.times {
                    for tick in &repeat.ticks {
                        self.take_tick(tick, reader, each)?;
                    }
                    if repeat.ticks.is_empty() {
                        break;
                    }
                }
            }
            Line::Lost(ticks) => self.lost = self.lost.saturating_add(ticks),
            Line::Expect(expect) => self.take_expect(&expect, reader),
        }
        Ok(())
    }

    /// A new life of the agent knows nothing of the one before.
    fn take_start(&mut self, start: &Start, reader: &Reader) -> Result<(), ReplayStopped> {
        if start.version != VERSION {
            return Err(ReplayStopped::Version {
                place: reader.place(),
                version: start.version,
            });
        }
        if start.unix_s > 0 {
            let now_ns = start.unix_s.saturating_mul(NS_PER_S);
            self.clock_ns = Some(now_ns);
            for run in self.runs.values_mut() {
                run.clock_ns = Some(now_ns);
            }
        }
        if start.part == 0 {
            for run in self.runs.values_mut() {
                run.forget();
            }
        }
        Ok(())
    }

    fn take_expect(&mut self, expect: &Expect, reader: &Reader) {
        let run = self.runs.get_mut(&expect.scope);
        let missed = expectation::missed(expect, run);
        if missed.is_empty() {
            self.met = self.met.saturating_add(1);
        }
        let place = reader.place();
        self.missed
            .extend(missed.into_iter().map(|what| format!("{place}: {what}")));
    }

    fn take_config(&mut self, text: &str, reader: &Reader) -> Result<(), ReplayStopped> {
        if !self.takes_config {
            return Ok(());
        }
        let source = Source::new("config", text);
        let loaded = Config::parse(&source).map_err(|faults| ReplayStopped::Config {
            place: reader.place(),
            faults,
        })?;
        self.plan = Plan::of(&loaded.config);
        for run in self.runs.values_mut() {
            run.follow(&self.plan);
        }
        Ok(())
    }

    fn take_scope(&mut self, scope: ScopeLine, reader: &Reader) -> Result<(), ReplayStopped> {
        check(reader, "place", scope.place.into(), PLACES_MAX.into())?;
        if let Some(run) = self.runs.get_mut(&scope.place) {
            run.is_now(scope, &self.plan);
        } else {
            let place = scope.place;
            let run = ScopeReplay::of(scope, &self.plan).at(self.now_ns());
            self.runs.insert(place, run);
        }
        Ok(())
    }

    fn take_tick(
        &mut self,
        tick: &TickLine,
        reader: &Reader,
        each: &mut dyn FnMut(&ReplayMoment<'_>),
    ) -> Result<(), ReplayStopped> {
        check(reader, "scope", tick.scope.into(), PLACES_MAX.into())?;
        self.ticks = self.ticks.saturating_add(tick.times.max(1));
        check(reader, "ticks", self.ticks, TICKS_MAX)?;
        let (plan, since_ns, now_ns) = (&self.plan, self.since_ns, self.now_ns());
        let run = self
            .runs
            .entry(tick.scope)
            .or_insert_with(|| ScopeReplay::of(unnamed(tick.scope), plan).at(now_ns));
        for _time in 0..tick.times {
            let moment = run.step(tick, since_ns);
            if moment.counts {
                each(&moment);
            }
        }
        Ok(())
    }

    /// The time of the clock that the scopes have come to.
    fn now_ns(&self) -> Option<u64> {
        let latest = self.runs.values().filter_map(|run| run.clock_ns).max();
        latest.or(self.clock_ns)
    }

    fn report(self, reader: &Reader) -> ReplayReport {
        let (odd_lines, first_odd) = reader.odd();
        ReplayReport {
            ticks: self.ticks,
            lost_ticks: self.lost,
            odd_lines,
            first_odd_line: first_odd.map(str::to_owned),
            scopes: self.runs.into_values().map(ScopeReplay::report).collect(),
            expectations_met: self.met,
            expectations_missed: self.missed,
        }
    }
}

fn check(reader: &Reader, what: &'static str, value: u64, max: u64) -> Result<(), ReplayStopped> {
    if value <= max {
        return Ok(());
    }
    Err(ReplayStopped::TooMuch {
        place: reader.place(),
        what,
        value,
        max,
    })
}

/// A scope that no line has named.
fn unnamed(place: u32) -> ScopeLine {
    ScopeLine {
        place,
        name: if place == 0 {
            "host".to_owned()
        } else {
            format!("scope {place}")
        },
        cgroup: (place != 0).then(|| format!("/{place}")),
        new: false,
    }
}
