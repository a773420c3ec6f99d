//! What clones of a client and its resources share.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::current::CurrentSession;
use crate::entry::Entry;
use crate::error::ConnectFault;
use crate::keeper::Keeper;
use crate::life::{Life, Phase};
use crate::observer::Observing;
use crate::session::Session;
use crate::slot_word::SessionNumber;
use crate::way::Way;

/// How long a new name may wait for the agent's answer.
const RESOLVE_WITHIN: Duration = Duration::from_millis(50);

/// What clones of a client and its resources share.
#[derive(Debug)]
pub(crate) struct Inner {
    sockets: Vec<PathBuf>,
    observing: Observing,
    current: &'static CurrentSession,
}

impl Inner {
    /// What a client needs that looks for its agent at these sockets. Its keeper is on its way then.
    ///
    /// # Errors
    /// This process has no room for it (memory, descriptors, a thread).
    pub(crate) fn begin(sockets: Vec<PathBuf>, observing: Observing) -> Result<Self, ConnectFault> {
        let life = Life::begin(1, &[])?;
        let session = Session::new(SessionNumber::FIRST, life, Way::Open);
        let current = CurrentSession::begin(session);
        Keeper::start(current, &sockets, life)?;
        Ok(Self {
            sockets,
            observing,
            current,
        })
    }

    #[inline]
    pub(crate) fn session(&self) -> &'static Session {
        self.current.get()
    }

    #[inline(always)]
    pub(crate) const fn observing(&self) -> &Observing {
        &self.observing
    }

    pub(crate) const fn current(&self) -> &'static CurrentSession {
        self.current
    }

    /// In a forked process, begins a life of its own. Everywhere else nothing happens.
    pub(crate) fn settle(&self) {
        let parents = self.session();
        if !parents.life().token().claim() {
            return;
        }
        // Without room for a life of its own, the child stays without: it decides nothing, counts
        // what it admits, and leaves the parent's permits alone.
        let number = parents.life().number().saturating_add(1);
        let listeners = parents.life().listeners().list();
        let Ok(life) = Life::begin(number, listeners) else {
            return;
        };
        let session = Session::new(parents.number().next(), life, Way::Open);
        self.current.replace(session);
        parents.let_go();
        if let Err(error) = Keeper::start(self.current, &self.sockets, life) {
            life.change(|state| state.phase = Phase::Apart(error));
        }
    }

    /// Makes sure that an entry is resolved in this process. A new one waits a little for the agent
    /// and then goes on with what the pages say.
    pub(crate) fn register(&self, entry: &Arc<Entry>) {
        let life = self.session().life();
        if !life.register(entry) {
            return;
        }
        life.wait_while(RESOLVE_WITHIN, |state| {
            let known = entry.slot(self.session().number()).is_some();
            !known && !matches!(state.phase, Phase::Apart(_))
        });
        self.session().find(entry);
    }

    /// A decision could not be made on the session in force: finds out what can be done about it.
    #[cold]
    pub(crate) fn catch_up(&self, entry: &Arc<Entry>) {
        let before = self.session();
        self.settle();
        let session = self.session();
        if session.forked() {
            return; // Another thread of this child is at it.
        }
        self.register(entry);
        // Nothing new was begun here and the session is still the same: its seat or slot is gone.
        if std::ptr::eq(before, session) && session.is_seated() {
            let life = session.life();
            life.refresh(entry);
            life.wait_while(RESOLVE_WITHIN, |state| {
                entry.is_stale() && !matches!(state.phase, Phase::Apart(_))
            });
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let session = self.session();
        // A child has the parent's bell in its hands until it has its own.
        if !session.forked() {
            session.life().close();
        }
    }
}
