//! Where the log goes: standard error, one structured line for each event.

use std::io::{self, IsTerminal as _, stderr, stdout};

use tracing_subscriber::EnvFilter;

use super::live;
use super::outlet::{self, Stream};

/// Variable that says what is logged, such as `debug` or `tidegate_agent::door=debug`.
const VARIABLE: &str = "TIDEGATE_LOG";

/// Begins to log. A second beginning in one process changes nothing.
pub(super) fn begin() {
    outlet::begin();
    let terminal = stderr().is_terminal();
    let filter = EnvFilter::builder()
        .with_default_directive(tracing::Level::INFO.into())
        .with_env_var(VARIABLE)
        .from_env_lossy();
    let log = tracing_subscriber::fmt()
        .with_writer(writer)
        .with_ansi(terminal)
        .with_target(false)
        .with_env_filter(filter)
        // They would go to standard error too: where that is a full disk, telling of them ends the agent.
        .log_internal_errors(false);
    // Under systemd the journal has the time of each line.
    let begun = if std::env::var_os("JOURNAL_STREAM").is_some() {
        log.without_time().try_init()
    } else {
        log.try_init()
    };
    if let Err(error) = begun {
        tracing::debug!(%error, "somebody else logs already");
    }
}

/// Standard error; on a terminal the live line makes room first.
fn writer() -> Lines {
    if stdout().is_terminal() {
        live::clear();
    }
    Lines
}

/// Takes a whole line at each write.
#[derive(Debug)]
struct Lines;

impl io::Write for Lines {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        outlet::put(Stream::Err, buf);
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
