//! What belongs to one process: its names, what they wait for, and the bell of its keeper.
//!
//! A forked child gets a life of its own, with locks of its own: the parent's may be held by threads
//! that do not exist in the child.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use tidegate_segment::os::fork::ForkToken;
use tidegate_segment::os::listener::Listener;
use tidegate_segment::sync::{Ordering, Word};

use crate::entry::Entry;
use crate::error::ConnectFault;
use crate::listeners::Listeners;
use crate::long_permits::LongPermits;
use crate::question::{ANSWER_WITHIN, About, Line, Question};

/// How the keeper is doing.
#[derive(Debug)]
pub(crate) enum Phase {
    /// The first try is not over yet.
    Beginning,
    /// There is a session with the agent.
    Connected,
    /// There is none, and this is why.
    Apart(ConnectFault),
}

/// The state of one process. It is made once for each process and client, and never freed.
#[derive(Debug)]
pub(crate) struct Life {
    token: ForkToken,
    number: u64,
    state: Mutex<State>,
    changed: Condvar,
    bell: OwnedFd,
    /// Decisions that admitted because there was nothing to decide on.
    open: Word,
    listeners: Listeners,
    long_permits: LongPermits,
}

/// What the threads of the process and its keeper share.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) phase: Phase,
    by_name: HashMap<Box<str>, Arc<Entry>>,
    /// All that are to be resolved in each session.
    entries: Vec<Arc<Entry>>,
    /// Those that wait for their slot.
    pub(crate) pending: VecDeque<Arc<Entry>>,
    /// Listening sockets that the agent of this session has not heard of.
    pub(crate) unwatched: VecDeque<Listener>,
    /// Other questions; the first may have been sent.
    pub(crate) questions: Line,
    /// Ids of rules, and the generation of the set that they are of.
    rule_ids: (Option<u64>, HashMap<u32, Arc<str>>),
    closing: bool,
}

/// Most ids of rules that are kept.
const RULE_IDS_MAX: usize = 4096;

impl Life {
    /// Begins the life number `number`, which differs from that of the parent, with the parent's
    /// listening sockets.
    ///
    /// # Errors
    /// No memory or no descriptor is left.
    pub(crate) fn begin(
        number: u64,
        listeners: &[Listener],
    ) -> Result<&'static Self, ConnectFault> {
        let fault = |call| {
            move |errno: Errno| ConnectFault::Process {
                call,
                source: errno.into(),
            }
        };
        let token = ForkToken::new().map_err(fault("fork token"))?;
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let bell = eventfd(0, flags).map_err(fault("eventfd"))?;
        let state = State {
            phase: Phase::Beginning,
            by_name: HashMap::new(),
            entries: Vec::new(),
            pending: VecDeque::new(),
            unwatched: listeners.iter().copied().collect(),
            questions: Line::default(),
            rule_ids: (None, HashMap::new()),
            closing: false,
        };
        Ok(Box::leak(Box::new(Self {
            token,
            number,
            state: Mutex::new(state),
            changed: Condvar::new(),
            bell,
            open: Word::new(0),
            listeners: Listeners::new(listeners.to_vec()),
            long_permits: LongPermits::default(),
        })))
    }

    pub(crate) const fn token(&self) -> ForkToken {
        self.token
    }

    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // Every change of the state is whole: a panic of another thread leaves nothing half-done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and tells everybody who waits for it.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    /// Waits while a condition holds, at most `limit`.
    pub(crate) fn wait_while(&self, limit: Duration, mut holds: impl FnMut(&State) -> bool) {
        let guard = self.lock();
        let waited = self
            .changed
            .wait_timeout_while(guard, limit, |state| holds(state));
        drop(waited);
    }

    /// The entry of a name; a new one is to be resolved.
    pub(crate) fn entry(&self, name: &str) -> Arc<Entry> {
        let mut state = self.lock();
        if let Some(entry) = state.by_name.get(name) {
            return Arc::clone(entry);
        }
        let entry = Arc::new(Entry::new(name));
        state.by_name.insert(name.into(), Arc::clone(&entry));
        entry
    }

    /// Makes the keeper resolve an entry in this session and all that follow. `true` if that is new.
    pub(crate) fn register(&self, entry: &Arc<Entry>) -> bool {
        if entry.lives_in(self.number) {
            return false;
        }
        let mut state = self.lock();
        let is_new = entry.moves_to(self.number);
        if is_new {
            state.entries.push(Arc::clone(entry));
            state.pending.push_back(Arc::clone(entry));
        }
        drop(state);
        self.ring();
        is_new
    }

    /// What its permits hold besides their words.
    pub(crate) const fn long_permits(&self) -> &LongPermits {
        &self.long_permits
    }

    /// The listening sockets of the process.
    #[inline]
    pub(crate) const fn listeners(&self) -> &Listeners {
        &self.listeners
    }

    /// Adds a listening socket, and makes the keeper tell the agent; false if there is no room.
    pub(crate) fn watch(&self, listener: Listener) -> bool {
        // One thread at a time: the list is read, and replaced.
        let mut state = self.lock();
        if !self.listeners.add(listener) {
            return false;
        }
        state.unwatched.push_back(listener);
        drop(state);
        self.ring();
        true
    }

    /// Makes the keeper look at an entry whose slot, or whose session, is no longer what it was.
    pub(crate) fn refresh(&self, entry: &Arc<Entry>) {
        if entry.found_stale() {
            self.lock().pending.push_back(Arc::clone(entry));
            self.ring();
        }
    }

    /// Asks the agent and waits a little for the answer. `None` if there is nobody to ask, or too many
    /// ask already. While the agent lets the oldest question wait, nobody waits for the answer.
    pub(crate) fn ask(&self, about: About) -> Option<Arc<Question>> {
        let mut state = self.lock();
        if !matches!(state.phase, Phase::Connected) {
            return None;
        }
        let oldest = state.questions.first().map(|oldest| oldest.since);
        let question = state.questions.join(about)?;
        drop(state);
        self.ring();
        let oldest = oldest.unwrap_or(question.since);
        let left = ANSWER_WITHIN.saturating_sub(oldest.elapsed());
        self.wait_while(left, |state| {
            !question.is_answered() && matches!(state.phase, Phase::Connected)
        });
        Some(question)
    }

    /// The id of a rule in the set of a generation, kept or asked for; nothing is kept where that is not known.
    pub(crate) fn rule_id(&self, number: u32, rules: Option<u64>) -> Option<Arc<str>> {
        let state = self.lock();
        let (kept, ids) = &state.rule_ids;
        let known = ids.get(&number).filter(|_id| *kept == rules);
        if let Some(id) = known {
            return Some(Arc::clone(id));
        }
        drop(state);
        let question = self.ask(About::Rule(number))?;
        let id: Arc<str> = question.text()?.into();
        if rules.is_some() {
            self.lock().keep_rule_id(rules, number, &id);
        }
        Some(id)
    }

    /// Counts a decision that admitted because there was nothing to decide on.
    pub(crate) fn count_open(&self) {
        self.open.count(1);
    }

    pub(crate) fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Tells the keeper to end.
    pub(crate) fn close(&self) {
        self.lock().closing = true;
        self.ring();
    }

    pub(crate) fn closing(&self) -> bool {
        self.lock().closing
    }

    /// Wakes the keeper.
    pub(crate) fn ring(&self) {
        // A full counter means that the bell rings already.
        let _rings: Result<usize, Errno> = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// The keeper has heard the bell.
    pub(crate) fn silence(&self) {
        let mut count = [0; 8];
        // An empty counter means that the bell did not ring.
        let _rang: Result<usize, Errno> = rustix::io::read(&self.bell, &mut count);
    }

    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl State {
    fn keep_rule_id(&mut self, rules: Option<u64>, number: u32, id: &Arc<str>) {
        let (kept, ids) = &mut self.rule_ids;
        if *kept != rules || ids.len() >= RULE_IDS_MAX {
            ids.clear();
            *kept = rules;
        }
        ids.insert(number, Arc::clone(id));
    }

    /// Whether the client is dropped.
    pub(crate) const fn is_closing(&self) -> bool {
        self.closing
    }

    /// Why there is no session, for a caller that gives up because of it.
    pub(crate) fn take_error(&mut self) -> Option<ConnectFault> {
        if !matches!(self.phase, Phase::Apart(_)) {
            return None;
        }
        match std::mem::replace(&mut self.phase, Phase::Beginning) {
            Phase::Apart(error) => Some(error),
            Phase::Beginning | Phase::Connected => None,
        }
    }

    /// A new session begins: everything is to be resolved in it, and every listener told.
    pub(crate) fn all_pending(&mut self, listeners: &Listeners) {
        self.unwatched = listeners.list().iter().copied().collect();
        self.pending = self.entries.iter().map(Arc::clone).collect();
        // Whoever still needs an answer asks again.
        self.questions.clear();
    }
}
