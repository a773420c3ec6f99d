//! Lets happen what a scene says, beside the load.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{Act, What};
use crate::lab;

/// A thread that waits for the moments of a scene.
#[derive(Debug)]
pub(super) struct Acting {
    stop: Sender<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl Acting {
    /// Begins. `rules` is a file beside the agent's rules, where there is an agent.
    ///
    /// # Errors
    /// No thread left.
    pub(super) fn start(
        acts: Vec<Act>,
        service: SocketAddr,
        rules: Option<PathBuf>,
        began: Instant,
    ) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let act = move || {
            for (number, act) in acts.into_iter().enumerate() {
                let at = began + Duration::from_secs_f64(act.at_s);
                let wait = at.saturating_duration_since(Instant::now());
                if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
                match (act.what, &rules) {
                    (What::Event(event), _) => lab::happen(service, event)?,
                    (What::Reload, Some(rules)) => reload(rules, number)?,
                    (What::Reload, None) => {}
                }
            }
            Ok(())
        };
        let thread = std::thread::Builder::new()
            .name("acts".to_owned())
            .spawn(act)?;
        Ok(Self { stop, thread })
    }

    /// Ends.
    ///
    /// # Errors
    /// Something could not happen.
    pub(super) fn stop(self) -> io::Result<()> {
        drop(self.stop);
        self.thread
            .join()
            .unwrap_or_else(|_panic| Err(io::Error::other("what happens in the scene broke")))
    }
}

/// Other rules, as an editor would write them.
fn reload(rules: &Path, number: usize) -> io::Result<()> {
    let text = format!(
        "[[flow]]\nresource = \"lab-reloaded\"\ngrade = \"qps\"\ncount = {}\n",
        100 + number
    );
    let beside = rules.with_extension("new");
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, rules)
}
