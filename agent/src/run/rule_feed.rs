//! The rules as their sources give them: what each gave last, and when one gives another set.

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;

use crate::config::Config;
use crate::rule_source::{SetStream, SourceSet, Sources};
use crate::telemetry::facts::SourceFacts;

/// The sources of a configuration, followed: a task for each.
#[derive(Debug)]
pub(super) struct RuleFeed {
    sources: Sources,
    /// What each source gave last, in their order.
    last: Vec<SourceSet>,
    changes: Receiver<(usize, SourceSet)>,
    _tasks: JoinSet<()>,
}

impl RuleFeed {
    /// Reads every source of a configuration, and follows each from before it is read.
    pub(super) async fn open(config: &Config) -> Self {
        let sources = Sources::of(config);
        let mut streams = sources.follow();
        let mut last = Vec::new();
        for stream in &mut streams {
            last.push(stream.next().await);
        }
        // Room for one is enough: who waits for it reads no more meanwhile.
        let (tell, changes) = channel(1);
        let mut tasks = JoinSet::new();
        for (place, stream) in streams.into_iter().enumerate() {
            tasks.spawn(follow(place, stream, tell.clone()));
        }
        Self {
            sources,
            last,
            changes,
            _tasks: tasks,
        }
    }

    /// Waits until a source has given another set, and takes it.
    pub(super) async fn changed(&mut self) {
        let Some((place, set)) = self.changes.recv().await else {
            // There is no source.
            return std::future::pending().await;
        };
        if let Some(last) = self.last.get_mut(place) {
            *last = set;
        }
    }

    /// The sources, and what each tenant makes of them.
    pub(super) const fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The sources as status tells them.
    pub(super) fn facts(&self) -> Vec<SourceFacts> {
        let sources = self.sources.iter().zip(&self.last);
        sources
            .map(|(source, set)| SourceFacts {
                name: source.name(),
                kind: source.kind(),
                state: source.state().name(),
                version: set.version,
                faults: set.read.faults.len(),
            })
            .collect()
    }

    /// What each source gave last, in their order.
    pub(super) fn last(&self) -> &[SourceSet] {
        &self.last
    }
}

async fn follow(place: usize, mut stream: Box<dyn SetStream>, tell: Sender<(usize, SourceSet)>) {
    loop {
        let set = stream.next().await;
        if tell.send((place, set)).await.is_err() {
            return;
        }
    }
}
