//! A scope that stays in overload is told again, and written to a file that a unit of the operator's can wait for.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tidegate_abi::decision::ScopeState;

use crate::calendar::unix_now;
use crate::config::EscalationOptions;
use crate::control::{ScopeSnapshot, Snapshot};
use crate::report::why::why;

/// The file, beside the sockets.
const FILE_NAME: &str = "escalation.json";
/// What it is before it is whole.
const NEW_NAME: &str = "escalation.json.new";
/// Times that the file is written in an hour at most: what it starts may be costly.
const WRITES_MAX: usize = 6;
const HOUR_NS: u64 = 3_600_000_000_000;

/// What the file says, a line of JSON.
#[derive(Debug, Serialize)]
struct EscalationRecord<'s> {
    scope: &'s str,
    state: &'static str,
    cause: &'static str,
    why: Option<String>,
    /// Seconds that it has been in this state.
    since_s: u64,
    /// Seconds since 1970.
    time_s: u64,
}

/// What was told of overloads that last.
#[derive(Debug, Default)]
pub(super) struct Escalations {
    /// Since when the overload lasts that was told last, by scope.
    told: BTreeMap<Arc<str>, u64>,
    /// When the file was written in the last hour, monotonic ns.
    written_ns: VecDeque<u64>,
}

impl Escalations {
    /// Looks for overloads that have lasted for long enough, once a second.
    pub(super) fn look(
        &mut self,
        snapshot: &Snapshot,
        settings: &EscalationOptions,
        directory: &Path,
    ) {
        let names = &snapshot.scopes;
        self.told
            .retain(|name, _since| names.iter().any(|scope| scope.name == *name));
        if !settings.enabled {
            return;
        }
        for scope in &snapshot.scopes {
            let age = Duration::from_nanos(snapshot.now_ns.saturating_sub(scope.since_ns));
            let refuses = matches!(
                scope.published.state,
                ScopeState::Overload | ScopeState::Reject
            );
            if refuses && age >= settings.after && self.is_new(scope) {
                self.tell(scope, age, snapshot.now_ns, directory);
            }
        }
    }

    fn is_new(&mut self, scope: &ScopeSnapshot) -> bool {
        let name = Arc::clone(&scope.name);
        self.told.insert(name, scope.since_ns) != Some(scope.since_ns)
    }

    fn tell(&mut self, scope: &ScopeSnapshot, age: Duration, now_ns: u64, directory: &Path) {
        let told = EscalationRecord {
            scope: &scope.name,
            state: scope.published.state.name(),
            cause: scope.published.cause.name(),
            why: why(scope),
            since_s: age.as_secs(),
            time_s: unix_now().as_secs(),
        };
        let (state, cause, since_s) = (told.state, told.cause, told.since_s);
        let file = if self.may_write(now_ns) {
            match write(directory, &told) {
                Ok(()) => "written".to_owned(),
                Err(error) => format!("not written: {error}"),
            }
        } else {
            format!("not written: it was {WRITES_MAX} times in the last hour")
        };
        tracing::error!(
            event = "escalation",
            cause,
            since_s,
            file,
            "escalation: {} stays in {state}",
            scope.name
        );
    }

    fn may_write(&mut self, now_ns: u64) -> bool {
        self.written_ns
            .retain(|at_ns| now_ns.saturating_sub(*at_ns) < HOUR_NS);
        if self.written_ns.len() >= WRITES_MAX {
            return false;
        }
        self.written_ns.push_back(now_ns);
        true
    }
}

/// Writes the file as a whole: whoever waits for it reads no half of it.
fn write(directory: &Path, told: &EscalationRecord<'_>) -> io::Result<()> {
    let mut text = serde_json::to_string(told)?;
    text.push('\n');
    let new = directory.join(NEW_NAME);
    fs::write(&new, text)?;
    fs::rename(new, directory.join(FILE_NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(after_s: u64) -> EscalationOptions {
        EscalationOptions {
            enabled: true,
            after: Duration::from_secs(after_s),
        }
    }

    /// A scope in this state since `since_s`, now.
    fn snapshot(state: ScopeState, since_s: u64, now_s: u64) -> Snapshot {
        let mut scope = crate::report::why::tests::scope(tidegate_abi::decision::Cause::Cpu, &[]);
        scope.published.state = state;
        scope.since_ns = since_s * 1_000_000_000;
        Snapshot {
            now_ns: now_s * 1_000_000_000,
            scopes: vec![scope],
            ..Snapshot::default()
        }
    }

    #[test]
    fn field_l9_an_overload_that_lasts_is_written_once_and_six_times_an_hour_at_most() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join(FILE_NAME);
        let mut escalations = Escalations::default();
        let mut written = |state, since_s, now_s| {
            let _before = fs::remove_file(&file);
            let snapshot = snapshot(state, since_s, now_s);
            escalations.look(&snapshot, &settings(600), directory.path());
            fs::read_to_string(&file).ok()
        };
        assert_eq!(written(ScopeState::Healthy, 1, 1000), None);
        assert_eq!(written(ScopeState::Overload, 1000, 1599), None);
        let told = written(ScopeState::Overload, 1000, 1600).expect("ten minutes have passed");
        assert!(
            told.starts_with(r#"{"scope":"host","state":"overload","cause":"cpu","#),
            "{told}"
        );
        assert!(told.contains("\"since_s\":600,"), "{told}");
        assert_eq!(written(ScopeState::Overload, 1000, 1700), None, "once");
        let again = (0..9).filter(|overload| {
            let since_s = 1700 + overload;
            written(ScopeState::Reject, since_s, since_s + 600).is_some()
        });
        assert_eq!(again.count(), WRITES_MAX - 1);
        assert!(written(ScopeState::Overload, 5000, 5600).is_some());
    }
}
