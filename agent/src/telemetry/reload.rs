//! How configuration and rules were read last: what status, metrics and the service manager tell of it.

use std::fmt;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tidegate_segment::clock::monotonic_ns;

/// What is in force in the place of what was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Instead {
    /// The configuration before.
    Configuration,
    /// The rules before.
    Rules,
    /// Rules whose time is over.
    Ended,
    /// At the start: the last good rules, as they were kept on disk.
    LastGood,
    /// At the start: no rules, for want of good ones.
    Nothing,
    /// At the start: the last good configuration, as it was kept on disk.
    LastGoodConfiguration,
    /// At the start: the defaults, for want of a good configuration.
    Defaults,
}

impl Instead {
    /// What stays or comes in force, as a sentence.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Configuration => "the configuration before stays in force",
            Self::Rules => "the rules before stay in force",
            Self::Ended => "rules that have ended stay in force",
            Self::LastGood => "the last good rules are in force",
            Self::Nothing => "no rules are in force; adaptive limits are",
            Self::LastGoodConfiguration => "the last good configuration is in force",
            Self::Defaults => "no good configuration is kept: the defaults are in force",
        }
    }

    const fn is_of_start(self) -> bool {
        matches!(
            self,
            Self::LastGood | Self::Nothing | Self::LastGoodConfiguration | Self::Defaults
        )
    }

    /// What was refused.
    const fn of(self) -> &'static str {
        if self.is_of_configuration() {
            "configuration"
        } else {
            "rules"
        }
    }

    /// Whether it is about the configuration, not about rules.
    const fn is_of_configuration(self) -> bool {
        matches!(
            self,
            Self::Configuration | Self::LastGoodConfiguration | Self::Defaults
        )
    }
}

/// A reading that was refused, now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RefusedReload {
    /// Whether the agent started with it.
    at_start: bool,
    /// What: `rules` or `configuration`.
    of: String,
    /// Seconds ago.
    ago_s: f64,
    faults: usize,
    /// Where the first fault is. Who may read the file is not known here, so what it says is in the log alone.
    first_place: String,
    /// What is in force instead.
    instead: String,
}

/// One line: `last reload refused 12 s ago: 2 faults, bad.toml:1:1; the rules before stay in force`.
impl fmt::Display for RefusedReload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            at_start,
            of,
            ago_s,
            faults,
            first_place,
            instead,
        } = self;
        let what = if *at_start {
            format!("{of} refused at the start")
        } else {
            "last reload refused".to_owned()
        };
        let ago = ago(*ago_s);
        let faults_word = if *faults == 1 { "fault" } else { "faults" };
        write!(
            f,
            "{what} {ago} ago: {faults} {faults_word}, {first_place}; {instead}"
        )
    }
}

/// A time in its largest unit, so that a line with it changes no more often than it must.
fn ago(seconds: f64) -> String {
    for (unit, length) in [("d", 86_400.0), ("h", 3_600.0), ("min", 60.0)] {
        if seconds >= length {
            return format!("{:.0} {unit}", (seconds / length).floor());
        }
    }
    format!("{:.0} s", seconds.floor())
}

#[derive(Debug)]
struct Noted {
    at_ns: u64,
    faults: usize,
    first_place: String,
    instead: Instead,
}

/// The last readings of configuration and of rules. Each is told until it is taken over: good rules do not make a
/// faulty configuration right.
#[derive(Debug, Default)]
pub struct LastReading {
    configuration: Mutex<Option<Box<Noted>>>,
    rules: Mutex<Option<Box<Noted>>>,
}

impl LastReading {
    /// Rules were taken over.
    pub fn succeed(&self) {
        *self.rules.lock() = None;
    }

    /// A configuration was taken over.
    pub fn succeed_with_configuration(&self) {
        *self.configuration.lock() = None;
    }

    fn of(&self, instead: Instead) -> &Mutex<Option<Box<Noted>>> {
        if instead.is_of_configuration() {
            &self.configuration
        } else {
            &self.rules
        }
    }

    /// It was refused, for so many faults, the first at this place.
    pub fn refuse(&self, instead: Instead, faults: usize, first_place: String) {
        *self.of(instead).lock() = Some(Box::new(Noted {
            at_ns: monotonic_ns(),
            faults,
            first_place,
            instead,
        }));
    }

    /// Whether both were taken over; true before the first.
    pub fn succeeded(&self) -> bool {
        self.configuration.lock().is_none() && self.rules.lock().is_none()
    }

    /// Whether one that the start refused is still not taken over.
    pub fn is_of_start(&self) -> bool {
        let (configuration, rules) = (self.configuration.lock(), self.rules.lock());
        let noted = [configuration.as_deref(), rules.as_deref()];
        let mut noted = noted.into_iter().flatten();
        noted.any(|noted| noted.instead.is_of_start())
    }

    /// How one was refused, if it was; the later one of two.
    pub fn refused(&self) -> Option<RefusedReload> {
        let (configuration, rules) = (self.configuration.lock(), self.rules.lock());
        let noted = [configuration.as_deref(), rules.as_deref()];
        let noted = noted.into_iter().flatten();
        let noted = noted.max_by_key(|noted| noted.at_ns)?;
        let ago_ns = monotonic_ns().saturating_sub(noted.at_ns);
        Some(RefusedReload {
            at_start: noted.instead.is_of_start(),
            of: noted.instead.of().to_owned(),
            ago_s: std::time::Duration::from_nanos(ago_ns).as_secs_f64(),
            faults: noted.faults,
            first_place: noted.first_place.clone(),
            instead: noted.instead.text().to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_o8_a_refused_reload_is_told_in_one_line_until_one_succeeds() {
        let last = LastReading::default();
        assert!(last.succeeded() && last.refused().is_none());
        last.refuse(Instead::Rules, 2, "bad.toml:1:1".to_owned());
        assert!(!last.succeeded() && !last.is_of_start());
        let refused = last.refused().unwrap();
        assert_eq!(
            RefusedReload {
                ago_s: 12.9,
                ..refused
            }
            .to_string(),
            "last reload refused 12 s ago: 2 faults, bad.toml:1:1; the rules before stay in force"
        );
        last.refuse(Instead::LastGood, 1, "/etc/tidegate/rules.d".to_owned());
        assert!(last.is_of_start());
        let refused = last.refused().unwrap();
        assert_eq!(
            RefusedReload {
                ago_s: 7_300.0,
                ..refused
            }
            .to_string(),
            "rules refused at the start 2 h ago: 1 fault, /etc/tidegate/rules.d; the last good rules are in force"
        );
        last.succeed();
        assert!(last.succeeded() && !last.is_of_start());
    }

    #[test]
    fn field_o8_a_refused_configuration_is_told_until_one_is_taken_whatever_rules_come() {
        let last = LastReading::default();
        last.refuse(Instead::Configuration, 1, "tidegate.toml:3:9".to_owned());
        last.refuse(Instead::Rules, 2, "bad.toml:1:1".to_owned());
        last.succeed();
        assert!(!last.succeeded());
        let refused = last.refused().unwrap();
        assert_eq!(refused.first_place, "tidegate.toml:3:9");
        last.succeed_with_configuration();
        assert!(last.succeeded() && last.refused().is_none());
        last.refuse(
            Instead::LastGoodConfiguration,
            1,
            "tidegate.toml:3:9".to_owned(),
        );
        last.succeed();
        assert!(!last.succeeded());
        let told = last.refused().unwrap().to_string();
        assert!(
            told.starts_with("configuration refused at the start "),
            "{told}"
        );
    }
}
