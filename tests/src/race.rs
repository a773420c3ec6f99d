//! Processes that meet at a barrier and then ask for one resource at the same time.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::{Duration, Instant};

use tidegate_abi::decision::RefusalKind;
use tidegate_client::{Permit, Resource};
use tidegate_segment::clock::monotonic_ns;
use tidegate_segment::gate::Arg;

use crate::actor::Actor;
use crate::agent::Agent;
use crate::shared_count::SharedCount;

/// Processes of a race.
pub const RACERS: usize = 8;

/// What each process does in a race. As text: `KEY=VALUE` words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Race {
    /// Most tries.
    pub tries: u32,
    /// Most passes; it stops then.
    pub passes: u32,
    /// How long it goes on, ms.
    pub for_ms: u64,
    /// Requests of one try.
    pub count: u32,
    /// The first argument, a whole number.
    pub value: Option<i64>,
    /// Whether it may borrow from the next half second.
    pub prioritized: bool,
    /// What becomes of a permit.
    pub then: Then,
}

/// What becomes of a permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// It is kept until the actor is told to give it back.
    Keep,
    /// It is given back at once, and all went well.
    Ok,
    /// It is given back at once, and the request failed.
    Error,
}

impl Default for Race {
    /// So many tries that any limit of a test is met, at one moment.
    fn default() -> Self {
        Self {
            tries: 100,
            passes: u32::MAX,
            for_ms: 5_000,
            count: 1,
            value: None,
            prioritized: false,
            then: Then::Ok,
        }
    }
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            tries,
            passes,
            for_ms,
            count,
            value,
            prioritized,
            then,
        } = self;
        let then = match then {
            Then::Keep => "keep",
            Then::Ok => "ok",
            Then::Error => "error",
        };
        write!(f, "tries={tries} passes={passes} for_ms={for_ms}")?;
        write!(f, " count={count} prioritized={prioritized} then={then}")?;
        value.map_or(Ok(()), |value| write!(f, " value={value}"))
    }
}

impl FromStr for Race {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut race = Self::default();
        for word in text.split_whitespace() {
            let (key, value) = word.split_once('=').ok_or("not KEY=VALUE")?;
            race.set(key, value)
                .map_err(|why| format!("{word}: {why}"))?;
        }
        Ok(race)
    }
}

impl Race {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        fn parsed<T: FromStr<Err: fmt::Display>>(value: &str) -> Result<T, String> {
            value.parse().map_err(|error: T::Err| error.to_string())
        }
        match key {
            "tries" => self.tries = parsed(value)?,
            "passes" => self.passes = parsed(value)?,
            "for_ms" => self.for_ms = parsed(value)?,
            "count" => self.count = parsed(value)?,
            "value" => self.value = Some(parsed(value)?),
            "prioritized" => self.prioritized = parsed(value)?,
            "then" => {
                self.then = match value {
                    "keep" => Then::Keep,
                    "ok" => Then::Ok,
                    "error" => Then::Error,
                    _other => return Err("keep, ok or error".to_owned()),
                }
            }
            _other => return Err("no such key".to_owned()),
        }
        Ok(())
    }

    /// Runs it in the calling process, and gives what it passed and the permits it keeps.
    pub fn run(&self, resource: &Resource) -> (Passes, Vec<Permit>) {
        let end = Instant::now() + Duration::from_millis(self.for_ms);
        let args = self.value.map(|value| Arg::One(hash(value)));
        let (mut passes, mut kept) = (Passes::default(), Vec::new());
        for _try in 0..self.tries {
            if Instant::now() >= end || passes.len() >= self.passes as usize {
                break;
            }
            let before_ns = monotonic_ns();
            let ask = resource.ask().prioritized(self.prioritized);
            let ask = ask.count(NonZeroU32::new(self.count).unwrap_or(NonZeroU32::MIN));
            let permit = match ask.args(args.as_slice()).enter() {
                Ok(permit) => permit,
                Err(refused) => {
                    if refused.kind == RefusalKind::Flow {
                        passes.refuse(before_ns, monotonic_ns());
                    }
                    std::thread::yield_now();
                    continue;
                }
            };
            passes.add(before_ns, permit.waited(), monotonic_ns());
            match self.then {
                Then::Keep => kept.push(permit),
                Then::Ok => permit.ok(),
                Then::Error => permit.error(),
            }
        }
        (passes, kept)
    }
}

fn hash(value: i64) -> u64 {
    tidegate_client::argument::natural_hash(value)
}

/// When requests were let in: for each the earliest and the latest time that it can have been,
/// monotonic ns. As text: `EARLIEST:LATEST` words, those of refusals with a `!` before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Passes {
    /// When requests were let in.
    pub times: Vec<(u64, u64)>,
    /// When flow rules refused requests: of each process one in some ms.
    pub refused: Vec<(u64, u64)>,
}

/// Time in which one refusal is noted, ns.
const ONE_REFUSAL_NS: u64 = 5_000_000;

impl Passes {
    /// The gate reads its clock after `before_ns` and lets the request in after it `waited`; the
    /// caller knows of it at `after_ns`.
    fn add(&mut self, before_ns: u64, waited: Duration, after_ns: u64) {
        let waited_ns = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        let earliest = before_ns.saturating_add(waited_ns);
        self.times.push((earliest, after_ns));
    }

    fn refuse(&mut self, before_ns: u64, after_ns: u64) {
        let last = self.refused.last().map_or(0, |(before, _after)| *before);
        if before_ns.saturating_sub(last) >= ONE_REFUSAL_NS {
            self.refused.push((before_ns, after_ns));
        }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Whether they can have been such that every `many` that follow one are at least `many × apart_ns`
    /// after it, and where not, how many followed how soon.
    ///
    /// The k-th earliest time and the k-th latest time enclose the k-th pass, so what is found here
    /// is sure.
    pub fn too_close(&self, many: usize, apart_ns: u64) -> Option<String> {
        let (mut earliest, mut latest): (Vec<u64>, Vec<u64>) = self.times.iter().copied().unzip();
        earliest.sort_unstable();
        latest.sort_unstable();
        let needed_ns = apart_ns.saturating_mul(many as u64);
        let pairs = earliest.iter().zip(latest.iter().skip(many)).enumerate();
        let mut close = pairs.filter(|(_pass, (from, to))| to.saturating_sub(**from) < needed_ns);
        close.next().map(|(pass, (from, to))| {
            let within_ns = to.saturating_sub(*from);
            format!("pass {pass} and the {many} after it within {within_ns} ns")
        })
    }
}

impl fmt::Display for Passes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (earliest, latest) in &self.times {
            write!(f, "{earliest}:{latest} ")?;
        }
        for (earliest, latest) in &self.refused {
            write!(f, "!{earliest}:{latest} ")?;
        }
        Ok(())
    }
}

impl FromStr for Passes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let times = |word: &str| {
            let (earliest, latest) = word.split_once(':')?;
            Some((earliest.parse().ok()?, latest.parse().ok()?))
        };
        let mut passes = Self::default();
        for word in text.split_whitespace() {
            let (list, word) = match word.strip_prefix('!') {
                Some(refused) => (&mut passes.refused, refused),
                None => (&mut passes.times, word),
            };
            list.push(times(word).ok_or_else(|| format!("no passes: {text}"))?);
        }
        Ok(passes)
    }
}

/// Eight processes that are connected to one agent.
#[derive(Debug)]
pub struct Racers {
    /// The processes.
    pub actors: Vec<Actor>,
}

impl Racers {
    /// Starts them.
    ///
    /// # Panics
    /// If one does not start and connect.
    pub fn start(agent: &Agent) -> Self {
        let start = |_racer| Actor::start(&agent.runtime_dir());
        Self {
            actors: (0..RACERS).map(start).collect(),
        }
    }

    /// Lets all of them race for a resource; gives the passes of each.
    ///
    /// # Panics
    /// If one does not answer soon.
    #[expect(clippy::expect_used, reason = "a test ends here")]
    pub fn race(&mut self, resource: &str, race: &Race) -> Vec<Passes> {
        let barrier = SharedCount::create().expect("there is memory for a barrier");
        let (parties, path) = (self.actors.len(), barrier.path());
        for actor in &mut self.actors {
            actor.say(&format!("race {resource} {path} {parties} {race}"));
        }
        let answers = self.actors.iter().map(Actor::hear);
        answers
            .map(|answer| answer.parse().expect("passes"))
            .collect()
    }

    /// The same, with the passes of all together.
    ///
    /// # Panics
    /// If one does not answer soon.
    pub fn race_as_one(&mut self, resource: &str, race: &Race) -> Passes {
        let mut all = Passes::default();
        for passes in self.race(resource, race) {
            all.times.extend(passes.times);
            all.refused.extend(passes.refused);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_race_is_read_as_it_was_written() {
        let race = Race {
            tries: 3,
            value: Some(-7),
            then: Then::Keep,
            prioritized: true,
            ..Race::default()
        };
        assert_eq!(race.to_string().parse(), Ok(race));
        assert!("tries=x".parse::<Race>().is_err() && "then=so".parse::<Race>().is_err());
    }

    #[test]
    fn passes_that_must_have_been_too_close_are_found() {
        let passes = Passes {
            times: vec![(10, 11), (22, 29), (30, 31)],
            refused: vec![(15, 16)],
        };
        assert_eq!(passes.too_close(1, 9), None);
        assert!(passes.too_close(1, 10).is_some(), "22 to 31 at most");
        assert_eq!(passes.too_close(2, 10), None);
        assert_eq!(passes.to_string().parse(), Ok(passes));
    }
}
