//! What the agent shows each second: one line on a terminal.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, stdout};

use tidegate_abi::signal::SignalId;
use tidegate_segment::ledger::ScopeCounts;

use super::outlet::{self, Stream};
use crate::control::{ScopeSnapshot, Snapshot};

/// Back to the start of the line, and the rest of it cleared.
const AFRESH: &str = "\r\x1b[K";

/// Shows one line a second on a terminal, and nothing elsewhere.
#[derive(Debug)]
pub(super) struct LiveLine {
    terminal: bool,
    before: Option<ScopeCounts>,
}

impl LiveLine {
    /// A line on standard output, if that is a terminal.
    pub(super) fn new() -> Self {
        Self {
            terminal: stdout().is_terminal(),
            before: None,
        }
    }

    /// Whether standard output is a terminal.
    pub(super) const fn on_terminal(&self) -> bool {
        self.terminal
    }

    /// Shows the host as it is now; called once a second.
    pub(super) fn show(&mut self, snapshot: &Snapshot) {
        let Some(host) = snapshot.scopes.first().filter(|_host| self.terminal) else {
            return;
        };
        let before = self.before.replace(host.counts);
        print(&format!("{AFRESH}{}", line(host, before.as_ref())));
    }

    /// Ends the line, so that what follows begins on a new one.
    pub(super) fn end(&self) {
        if self.terminal {
            print("\n");
        }
    }
}

/// Takes the line away; the next second shows it again.
pub(super) fn clear() {
    print(AFRESH);
}

/// Shows a text.
pub(super) fn print(text: &str) {
    outlet::put(Stream::Out, text.as_bytes());
}

/// State, signals and rates of a scope in one line; `before` is its counts of a second ago.
fn line(scope: &ScopeSnapshot, before: Option<&ScopeCounts>) -> String {
    let mut text = scope.published.state.name().to_owned();
    let signal = |id| scope.readings.value(id);
    let percent = signal(SignalId::Cpu).map(|share| share * 100.0);
    let counts = &scope.counts;
    let rate = |now: u64, before: Option<u64>| now.saturating_sub(before.unwrap_or(now));
    // Writing to a string cannot fail.
    let _cannot: std::fmt::Result = write!(
        text,
        "  cpu {}%  load {}  runnable {}  in flight {}  passed {}/s  refused {}/s",
        shown(percent, 0),
        shown(signal(SignalId::Load1), 2),
        shown(signal(SignalId::Runnable), 0),
        counts.inflight,
        rate(counts.passed, before.map(|before| before.passed)),
        rate(counts.refused, before.map(|before| before.refused)),
    );
    text
}

fn shown(value: Option<f64>, digits: usize) -> String {
    value.map_or("?".to_owned(), |value| format!("{value:.digits$}"))
}
