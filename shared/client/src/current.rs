//! The session in force, replaced as a whole.

use tidegate_segment::published::PublishedValue;

use crate::session::Session;

/// The session that decisions are made on now. It is never freed, as sessions are not: decisions hold no count.
#[derive(Debug)]
pub(crate) struct CurrentSession(PublishedValue<Session>);

impl CurrentSession {
    pub(crate) fn begin(session: Session) -> &'static Self {
        Box::leak(Box::new(Self(PublishedValue::new(session))))
    }

    #[inline]
    pub(crate) fn get(&self) -> &'static Session {
        self.0.get()
    }

    /// Puts a session in the place of the one before.
    pub(crate) fn replace(&self, session: Session) {
        self.0.set(session);
    }

    /// The same for a session that has kept seat and ledger of the one before.
    pub(crate) fn replace_keeping(&self, session: Session) {
        let before = self.get();
        self.replace(session);
        before.keep_in(self.get());
    }
}
