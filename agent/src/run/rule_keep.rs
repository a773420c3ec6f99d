//! Keeps good rules and the good configuration for the next start, by a thread of its own: a disk that hangs holds no reload up.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use crate::background::{Background, END_WITHIN};
use crate::config::{DEFAULT_TENANT, TENANTS_MAX};
use crate::rule_source::SourceSet;
use crate::rule_source::last_good::{CONFIGURATION, Document, Key, LastGood, LastGoodFault};
use crate::schema::source::Source;

/// Sets that wait at most: one of each tenant and the configuration, and as many again.
const QUEUE: usize = 2 * (TENANTS_MAX + 2);

#[derive(Debug)]
struct Job {
    key: Key,
    documents: Vec<Document>,
}

/// The rules that were good last, by tenant, and the configuration.
#[derive(Debug)]
pub(super) struct RuleKeep {
    store: LastGood,
    writer: Option<(SyncSender<Job>, Background)>,
}

impl RuleKeep {
    /// Keeps them below a state directory.
    pub(super) fn start(state: &Path) -> Self {
        let store = LastGood::below(state);
        let (queue, jobs) = sync_channel(QUEUE);
        let own = store.clone();
        let thread = Background::start("rule keeper", move |_stop| write_all(&own, &jobs));
        let thread = thread.inspect_err(
            |error| tracing::warn!(event = "last_good_not_kept", %error, "{NOT_KEPT}"),
        );
        Self {
            store,
            writer: thread.ok().map(|thread| (queue, thread)),
        }
    }

    /// Keeps what a tenant's rules were made of: the texts of each kind of source together.
    pub(super) fn keep(&self, tenant: &str, sets: impl Iterator<Item: Borrow<SourceSet>>) {
        let mut by_kind: BTreeMap<&'static str, Vec<Document>> = BTreeMap::new();
        for set in sets {
            let set: &SourceSet = set.borrow();
            let documents = by_kind.entry(set.kind).or_default();
            documents.extend(set.documents.iter().cloned());
        }
        for (kind, documents) in by_kind {
            self.push(key(tenant, kind), documents);
        }
    }

    fn push(&self, key: Key, documents: Vec<Document>) {
        let Some((queue, _thread)) = &self.writer else {
            return;
        };
        if let Err(error) = queue.try_send(Job { key, documents }) {
            let (TrySendError::Full(job) | TrySendError::Disconnected(job)) = error;
            let tenant = job.key.tenant;
            tracing::warn!(
                event = "last_good_not_kept",
                tenant,
                "{NOT_KEPT}: the disk does not keep up"
            );
        }
    }

    /// Keeps the files of a configuration. Without files there is nothing that could be at fault at the next start.
    pub(super) fn keep_configuration(&self, files: &[Source]) {
        if files.is_empty() {
            return;
        }
        let documents = files.iter().map(|file| Document {
            name: file.name().to_string(),
            text: file.text().to_owned(),
        });
        self.push(key(DEFAULT_TENANT, CONFIGURATION), documents.collect());
    }

    /// The files of the last good configuration, if they are kept.
    pub(super) fn load_configuration(&self) -> Option<Vec<Source>> {
        let documents = self.load(DEFAULT_TENANT, CONFIGURATION)?;
        let files = documents.into_iter();
        Some(
            files
                .map(|file| Source::new(file.name, file.text))
                .collect(),
        )
    }

    /// What is kept of a tenant from this kind of source. What cannot be taken is said and counts as nothing.
    pub(super) fn load(&self, tenant: &str, kind: &'static str) -> Option<Vec<Document>> {
        let loaded = self.store.load(&key(tenant, kind));
        let said = |error: &LastGoodFault| tracing::warn!(event = "last_good_refused", %error, "what was kept as last good is not taken");
        loaded.inspect_err(said).ok().flatten()
    }

    /// Waits until what was good last is kept, for a bounded time.
    pub(super) fn end(self) {
        if let Some((queue, thread)) = self.writer {
            drop(queue);
            thread.end_within(END_WITHIN);
        }
    }
}

const NOT_KEPT: &str = "what is in force is not kept: a start with a fault in rules or configuration has no last good one";

fn key(tenant: &str, kind: &'static str) -> Key {
    Key {
        tenant: tenant.to_owned(),
        kind,
    }
}

fn write_all(store: &LastGood, jobs: &Receiver<Job>) {
    // The same fault at each reload is told once.
    let mut told = String::new();
    for Job { key, documents } in jobs {
        match store.keep(&key, documents) {
            Ok(()) => told.clear(),
            Err(error) => {
                let text = error.to_string();
                if text != told {
                    tracing::warn!(event = "last_good_not_kept", tenant = key.tenant, %error, "{NOT_KEPT}");
                }
                told = text;
            }
        }
    }
}
