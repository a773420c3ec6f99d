//! Keeps good rules for the next start, by a thread of its own: a disk that hangs holds no reload up.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::background::{Background, END_WITHIN};
use crate::config::TENANTS_MAX;
use crate::rule_source::SourceSet;
use crate::rule_source::last_good::{Document, Fault, Key, LastGood};

/// Sets that wait at most: one of each tenant, and as many again.
const QUEUE: usize = 2 * (TENANTS_MAX + 1);

#[derive(Debug)]
struct Job {
    key: Key,
    documents: Vec<Document>,
}

/// The rules that were good last, by tenant.
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
        let Some((queue, _thread)) = &self.writer else {
            return;
        };
        let mut by_kind: BTreeMap<&'static str, Vec<Document>> = BTreeMap::new();
        for set in sets {
            let set: &SourceSet = set.borrow();
            let documents = by_kind.entry(set.kind).or_default();
            documents.extend(set.documents.iter().cloned());
        }
        for (kind, documents) in by_kind {
            let key = key(tenant, kind);
            if queue.try_send(Job { key, documents }).is_err() {
                tracing::warn!(
                    event = "last_good_not_kept",
                    tenant,
                    "{NOT_KEPT}: the disk does not keep up"
                );
            }
        }
    }

    /// What is kept of a tenant from this kind of source. What cannot be taken is said and counts as nothing.
    pub(super) fn load(&self, tenant: &str, kind: &'static str) -> Option<Vec<Document>> {
        let loaded = self.store.load(&key(tenant, kind));
        let said = |error: &Fault| tracing::warn!(event = "last_good_refused", %error, "the last good rules are not taken");
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

const NOT_KEPT: &str =
    "the rules in force are not kept: a start with a fault in the rules has no last good ones";

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
