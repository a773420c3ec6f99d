//! Where the log goes: standard error, one structured line for each event.

use std::io::{self, IsTerminal as _, stderr, stdout};
use std::sync::Arc;

use tracing::{Level, Metadata};
use tracing_subscriber::filter::{Directive, LevelFilter};
use tracing_subscriber::fmt::{MakeWriter, layer};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, registry};

use super::live;
use super::outlet::{self, Stream};
use crate::event::book::EventBook;
use crate::event::listen::listener;
use crate::journal::{self, Priority};
use crate::plain::plain;

/// Variable that says what is logged, such as `debug` or `tidegate_agent::door=debug`.
const VARIABLE: &str = "TIDEGATE_LOG";

/// Begins to log. A second beginning in one process changes nothing.
/// What has a name is taken down in the book of events, too.
pub(super) fn begin(events: &Arc<EventBook>) {
    outlet::begin();
    let terminal = stderr().is_terminal();
    let given = std::env::var(VARIABLE).unwrap_or_default();
    let fault = fault(&given);
    let directives = if fault.is_none() { &given } else { "" };
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::INFO.into())
        .parse_lossy(directives);
    let log = layer()
        .with_writer(Writer { colored: terminal })
        .with_ansi(terminal)
        .with_target(false)
        // They would go to standard error too: where that is a full disk, telling of them ends the agent.
        .log_internal_errors(false);
    // Under systemd the journal has the time of each line.
    let log = if journal::is_stderr() {
        log.without_time().boxed()
    } else {
        log.boxed()
    };
    let begun = registry()
        .with(log.with_filter(filter))
        .with(listener(Arc::clone(events)))
        .try_init();
    if let Err(error) = begun {
        tracing::debug!(event = "log_taken", %error, "another logger is installed already");
    }
    if let Some(fault) = fault {
        tracing::warn!(
            event = "log_level_invalid",
            "{VARIABLE} = {given:?}: {fault}; allowed are error, warn, info, debug, trace, off, or such as \
             tidegate_agent::door=debug; now it is info"
        );
    }
}

/// What is wrong in the variable. A word that is no level would be taken for a part of the program, and all else left
/// out of the log.
fn fault(given: &str) -> Option<String> {
    let words = given.split(',').filter(|word| !word.is_empty());
    words.into_iter().find_map(|word| {
        let is_level = word.parse::<LevelFilter>().is_ok();
        let is_of_part = word.contains(['=', '[']) || word.starts_with("tidegate");
        if !is_level && !is_of_part {
            return Some(format!("{word:?} is no level"));
        }
        let error = word.parse::<Directive>().err()?;
        Some(format!("{word:?}: {error}"))
    })
}

/// Standard error; on a terminal the live line makes room first.
#[derive(Debug)]
struct Writer {
    colored: bool,
}

impl MakeWriter<'_> for Writer {
    type Writer = Lines;

    fn make_writer(&self) -> Lines {
        self.lines(Priority::Info)
    }

    fn make_writer_for(&self, meta: &Metadata<'_>) -> Lines {
        self.lines(priority(*meta.level()))
    }
}

impl Writer {
    fn lines(&self, priority: Priority) -> Lines {
        if stdout().is_terminal() {
            live::clear();
        }
        Lines {
            colored: self.colored,
            priority,
        }
    }
}

fn priority(level: Level) -> Priority {
    if level == Level::ERROR {
        Priority::Error
    } else if level == Level::WARN {
        Priority::Warning
    } else if level == Level::INFO {
        Priority::Info
    } else {
        Priority::Debug
    }
}

/// Takes a whole line at each write.
#[derive(Debug)]
struct Lines {
    /// Whether the line has colors; the log itself escapes those of others then.
    colored: bool,
    priority: Priority,
}

impl io::Write for Lines {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let line = one_line(buf, self.colored);
        let line = journal::for_stderr(line, self.priority);
        outlet::put(Stream::Err, line.as_bytes());
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What one event says, on one line whatever is in it: a name must not look like another event.
fn one_line(event: &[u8], colored: bool) -> String {
    let text = String::from_utf8_lossy(event);
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let parts: Vec<_> = if colored {
        text.split('\x1b').map(plain).collect()
    } else {
        vec![plain(text)]
    };
    parts.join("\x1b") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_b9_an_event_is_one_line_whatever_it_tells() {
        let event = "WARN \u{202e}a\n2026 ERROR forged\x1b[31m\n";
        let shown = one_line(event.as_bytes(), false);
        assert_eq!(shown, "WARN \\u{202e}a\\n2026 ERROR forged\\u{1b}[31m\n");
        let colored = one_line(b"\x1b[33mWARN\x1b[0m a\nb\n", true);
        assert_eq!(colored, "\x1b[33mWARN\x1b[0m a\\nb\n");
    }

    #[test]
    fn what_is_logged_is_said_by_levels_and_a_word_that_is_none_is_told() {
        for given in [
            "",
            "debug",
            "WARN",
            "off",
            "tidegate_agent::door=debug",
            "warn,tidegate_agent=trace",
        ] {
            assert_eq!(fault(given), None, "{given}");
        }
        let unknown = fault("verbose").unwrap();
        assert_eq!(unknown, "\"verbose\" is no level");
        let unknown = fault("info,loud").unwrap();
        assert_eq!(unknown, "\"loud\" is no level");
        let wrong = fault("tidegate_agent=loud").unwrap();
        assert!(wrong.starts_with("\"tidegate_agent=loud\": "), "{wrong}");
    }
}
