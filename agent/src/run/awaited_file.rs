//! A configuration whose file was at fault at the start: looked at again until it is right.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::config::ConfigRequest;
use crate::schema::source::Source;

/// Between the two looks that must find the same: who edits a file may have written the half of it.
const STILL_FOR: Duration = Duration::from_millis(500);

/// Looks at a file beside everything else: where it lies may hang.
#[derive(Debug, Default)]
pub(super) struct AwaitedFile {
    /// None where nothing is at fault.
    given: Option<ConfigRequest>,
    look: Option<JoinHandle<()>>,
    found_right: Arc<AtomicBool>,
}

impl AwaitedFile {
    pub(super) fn of(given: ConfigRequest) -> Self {
        Self {
            given: Some(given),
            ..Self::default()
        }
    }

    /// Whether the last look found the file right; begins the next one where none is under way.
    pub(super) fn is_right(&mut self) -> bool {
        let Some(given) = &self.given else {
            return false;
        };
        if self.look.as_ref().is_some_and(|look| !look.is_finished()) {
            return false;
        }
        // Relaxed: nothing else is passed on with it.
        if self.found_right.load(Ordering::Relaxed) {
            return true;
        }
        let (given, found_right) = (given.clone(), Arc::clone(&self.found_right));
        self.look = Some(tokio::spawn(async move {
            found_right.store(is_right(given).await, Ordering::Relaxed);
        }));
        false
    }
}

async fn is_right(given: ConfigRequest) -> bool {
    let Some(first) = files(given.clone()).await else {
        return false;
    };
    tokio::time::sleep(STILL_FOR).await;
    files(given).await == Some(first)
}

/// The files, if they are right.
async fn files(given: ConfigRequest) -> Option<Vec<Source>> {
    let look = move || Some(given.load().ok()?.files);
    tokio::task::spawn_blocking(look).await.ok().flatten()
}
