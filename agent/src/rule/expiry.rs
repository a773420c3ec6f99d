//! Rules that end by themselves: after a time, or at a time of the calendar.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value as Json, json};
use tidegate_segment::clock::monotonic_ns;

use super::RuleSet;
use super::set::Fate;
use crate::calendar::unix_now;
use crate::schema::Value;
use crate::schema::kind::Scalar;

/// Longest time that a rule may have.
const LONGEST: Duration = Duration::from_hours(24 * 366);

/// When a rule ends, as the file says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expires {
    /// So long after it came into force.
    After(Duration),
    /// At this time since 1970, whenever it came into force.
    At(Duration),
}

/// A duration such as "30s", or a time such as "2026-12-24T18:00:00Z".
#[derive(Debug, Clone, Copy)]
pub struct Ending;

impl Scalar for Ending {
    type Output = Expires;
    fn allowed(&self) -> String {
        "a duration such as \"30s\", of at most a year, or a time such as \"2026-12-24T18:00:00Z\""
            .to_owned()
    }
    fn parse(&self, value: &Value) -> Result<Expires, String> {
        let text = value.text().ok_or("write it in quotes")?;
        if let Ok(time) = humantime::parse_rfc3339(text) {
            let since_1970 = time.duration_since(UNIX_EPOCH);
            return Ok(Expires::At(since_1970.unwrap_or_default()));
        }
        let after = humantime::parse_duration(text).map_err(|error| error.to_string())?;
        if after.is_zero() || after > LONGEST {
            return Err("it is too short or too long".to_owned());
        }
        Ok(Expires::After(after))
    }
    fn written(&self, value: &Expires) -> String {
        match value {
            Expires::After(time) => format!("\"{}\"", humantime::format_duration(*time)),
            Expires::At(time) => {
                let time = UNIX_EPOCH.checked_add(*time).unwrap_or(UNIX_EPOCH);
                format!("\"{}\"", humantime::format_rfc3339(time))
            }
        }
    }
    fn json_schema(&self) -> Json {
        json!({"type": "string", "pattern": "^[0-9]"})
    }
}

/// A point in time on both clocks.
#[derive(Debug, Clone, Copy)]
pub struct ClockMoment {
    /// Monotonic, ns.
    pub ns: u64,
    /// Of the calendar, since 1970.
    pub unix: Duration,
}

impl ClockMoment {
    /// Now.
    pub fn now() -> Self {
        Self {
            ns: monotonic_ns(),
            unix: unix_now(),
        }
    }
}

/// The end of a rule of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// As the file says it.
    pub expires: Expires,
    /// When the rule came into force; `None` before that.
    begun_ns: Option<u64>,
    /// Whether it has ended. It stays so until the rule is written anew.
    pub over: bool,
}

impl End {
    /// The end of a rule that is not in force yet.
    pub(super) const fn new(expires: Expires) -> Self {
        Self {
            expires,
            begun_ns: None,
            over: false,
        }
    }

    /// How long the rule goes on; nothing once it has ended.
    pub fn left(&self, now: ClockMoment) -> Duration {
        if self.over {
            return Duration::ZERO;
        }
        match self.expires {
            Expires::At(time) => time.saturating_sub(now.unix),
            Expires::After(time) => {
                let begun_ns = self.begun_ns.unwrap_or(now.ns);
                time.saturating_sub(Duration::from_nanos(now.ns.saturating_sub(begun_ns)))
            }
        }
    }
}

impl RuleSet {
    /// Lets the time of its rules begin. A rule that the set before has with the same end, and that says the same,
    /// goes on in its time, and one that has ended stays so.
    pub fn begin(&mut self, before: &Self, now: ClockMoment) {
        self.strain(before.is_strained());
        self.keep_bulkheads(before);
        let fates = self.diff(before).fates;
        for (rule, fate) in self.rules_mut().iter_mut().zip(fates) {
            let Some(end) = &mut rule.end else { continue };
            let same = match fate {
                Fate::Unchanged(index) => before.rules().get(index).and_then(|old| old.end),
                Fate::Retuned(_) | Fate::New => None,
            };
            match same.filter(|old| old.expires == end.expires) {
                Some(old) => *end = old,
                None => end.begun_ns = Some(now.ns),
            }
            end.over = end.left(now).is_zero();
        }
    }

    /// The same set with the rules marked that have ended by now; `None` if none has since.
    pub fn ended_by(&self, now: ClockMoment) -> Option<Self> {
        let ends = |end: &Option<End>| end.is_some_and(|end| !end.over && end.left(now).is_zero());
        if !self.rules().iter().any(|rule| ends(&rule.end)) {
            return None;
        }
        let mut next = self.clone();
        for rule in next.rules_mut() {
            if let Some(end) = &mut rule.end {
                end.over = end.left(now).is_zero();
            }
        }
        Some(next)
    }

    /// How long until the next of its rules ends.
    pub fn next_end(&self, now: ClockMoment) -> Option<Duration> {
        let ends = self.rules().iter().filter_map(|rule| rule.end);
        ends.filter(|end| !end.over).map(|end| end.left(now)).min()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rule::QuirksOption;
    use crate::rule_source::form::read;
    use crate::schema::source::Source;

    fn set(count: u32, expires: &str) -> RuleSet {
        let text = format!(
            "[[flow]]\nresource = \"a\"\ncount = {count}\nexpires = \"{expires}\"\n\
             [[flow]]\nresource = \"b\"\ncount = 1\n"
        );
        let read = read("a.toml".as_ref(), &Source::new("a.toml", text));
        assert_eq!(read.faults, []);
        RuleSet::build(read.rules, QuirksOption::None).unwrap()
    }

    fn at(ms: u64) -> ClockMoment {
        ClockMoment {
            ns: ms * 1_000_000,
            unix: Duration::from_millis(ms),
        }
    }

    fn begun(mut set: RuleSet, before: &RuleSet, ms: u64) -> RuleSet {
        set.begin(before, at(ms));
        set
    }

    fn over(set: &RuleSet) -> Vec<bool> {
        let rules = set.rules().iter();
        rules
            .map(|rule| rule.end.is_some_and(|end| end.over))
            .collect()
    }

    #[test]
    fn field_r13_a_rule_ends_after_its_time_and_the_others_stay() {
        let set = begun(set(5, "30s"), &RuleSet::default(), 1_000);
        assert_eq!(set.next_end(at(1_000)), Some(Duration::from_secs(30)));
        assert!(set.ended_by(at(30_999)).is_none());
        let ended = set.ended_by(at(31_000)).unwrap();
        assert_eq!(over(&ended), [true, false]);
        assert_eq!(ended.next_end(at(31_000)), None);
        assert!(ended.ended_by(at(99_000)).is_none(), "told once");
    }

    #[test]
    fn field_r13_the_same_text_goes_on_in_its_time_and_a_changed_rule_begins_anew() {
        let first = begun(set(5, "30s"), &RuleSet::default(), 0);
        let again = begun(set(5, "30s"), &first, 20_000);
        assert_eq!(again.next_end(at(20_000)), Some(Duration::from_secs(10)));
        let ended = again.ended_by(at(30_000)).unwrap();
        assert_eq!(over(&begun(set(5, "30s"), &ended, 31_000)), [true, false]);
        for changed in [set(6, "30s"), set(5, "31s")] {
            assert_eq!(over(&begun(changed, &ended, 31_000)), [false, false]);
        }
    }

    #[test]
    fn field_r13_a_time_of_the_calendar_is_the_same_after_a_restart() {
        let text = "1970-01-01T00:01:00Z";
        let first = begun(set(5, text), &RuleSet::default(), 50_000);
        assert_eq!(first.next_end(at(50_000)), Some(Duration::from_secs(10)));
        let late = begun(set(5, text), &RuleSet::default(), 60_000);
        assert_eq!(over(&late), [true, false]);
    }

    proptest! {
        /// Reloads of the same text, at whatever times, do not move the end.
        #[test]
        fn field_r13_reloads_do_not_move_the_end(
            seconds in 1_u64..1_000,
            reloads in proptest::collection::vec(0_u64..2_000_000, 0..8),
        ) {
            let mut times = reloads;
            times.sort_unstable();
            let text = format!("{seconds}s");
            let mut now = begun(set(5, &text), &RuleSet::default(), 0);
            for ms in times {
                now = begun(set(5, &text), &now, ms);
                prop_assert_eq!(over(&now), [ms >= seconds * 1_000, false]);
            }
        }
    }
}
