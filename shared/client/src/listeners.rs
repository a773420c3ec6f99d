//! The listening sockets of this process, whose accept queues count as work it holds.

use tidegate_segment::clock::monotonic_ns;
use tidegate_segment::os::listener::Listener;
use tidegate_segment::published::PublishedValue;
use tidegate_segment::sync::{Ordering, Word};

use crate::error::LISTENERS_MAX;

/// A count that is younger than this is good enough for a decision, ns: a refusal must stay cheaper
/// than the system calls of a look.
const FRESH_NS: u64 = 1_000_000;

/// Bits of the count; the rest is the time of the look, ms.
const COUNT_BITS: u32 = 24;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// The sockets, and what was seen there last.
#[derive(Debug)]
pub(crate) struct Listeners {
    list: PublishedValue<Vec<Listener>>,
    /// How many there are: the one word that a decision without any looks at.
    count: Word,
    /// `[time of the look, in units of FRESH_NS, 40 | connections 24]`.
    seen: Word,
}

impl Listeners {
    pub(crate) fn new(list: Vec<Listener>) -> Self {
        let count = u64::try_from(list.len()).unwrap_or(u64::MAX);
        Self {
            list: PublishedValue::new(list),
            count: Word::new(count),
            seen: Word::new(0),
        }
    }

    /// The sockets.
    pub(crate) fn list(&self) -> &'static [Listener] {
        self.list.get()
    }

    /// Adds one; false if there is no room, true also where it is there already. The caller lets one
    /// thread at a time do this.
    pub(crate) fn add(&self, listener: Listener) -> bool {
        let old = self.list();
        if old.contains(&listener) {
            return true;
        }
        // Places of sockets that are closed are free again.
        let open = old.iter().filter(|one| one.waiting().is_some());
        let mut list: Vec<Listener> = open.copied().collect();
        if list.len() >= LISTENERS_MAX {
            return false;
        }
        list.push(listener);
        let count = u64::try_from(list.len()).unwrap_or(u64::MAX);
        self.list.set(list);
        // Relaxed: the list has its own ordering; a decision that sees the old count is an early one.
        self.count.store(count, Ordering::Relaxed);
        true
    }

    /// Whether there are any.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) != 0
    }

    /// Connections that wait now; `None` if none of the sockets listens any more.
    #[cold]
    pub(crate) fn waiting(&self) -> Option<u32> {
        let now = monotonic_ns() / FRESH_NS;
        // Relaxed: the word carries all there is.
        let seen = self.seen.load(Ordering::Relaxed);
        if seen >> COUNT_BITS == now & (u64::MAX >> COUNT_BITS) {
            return u32::try_from(seen & COUNT_MASK).ok();
        }
        let told = self.list().iter().filter_map(|one| one.waiting());
        let sum = told.fold(None, |sum: Option<u32>, waiting| {
            Some(sum.unwrap_or(0).saturating_add(waiting))
        })?;
        let count = u64::from(sum).min(COUNT_MASK);
        self.seen
            .store(now << COUNT_BITS | count, Ordering::Relaxed);
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use super::*;

    fn socket() -> TcpListener {
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
    }

    fn listener(socket: &TcpListener) -> Listener {
        Listener::of(socket).unwrap()
    }

    #[test]
    fn what_waits_at_all_sockets_is_one_sum_that_a_decision_sees_soon() {
        let listeners = Listeners::new(Vec::new());
        assert!(!listeners.any());
        assert_eq!(listeners.waiting(), None);
        let sockets = [socket(), socket()];
        for socket in &sockets {
            assert!(listeners.add(listener(socket)));
            assert!(listeners.add(listener(socket)), "once is enough");
        }
        assert_eq!(listeners.list().len(), 2);
        let call = |socket: &TcpListener| TcpStream::connect(socket.local_addr().unwrap()).unwrap();
        let _callers = [0, 1, 0].map(|index| call(&sockets[index]));
        while listeners.waiting() != Some(3) {
            std::thread::yield_now();
        }
        drop(sockets);
        while listeners.waiting().is_some() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn there_is_room_for_some_and_closed_ones_make_room() {
        let mut sockets: Vec<TcpListener> = (0..LISTENERS_MAX).map(|_one| socket()).collect();
        let listeners = Listeners::new(sockets.iter().map(listener).collect());
        let one_more = socket();
        assert!(!listeners.add(listener(&one_more)));
        sockets.pop();
        assert!(listeners.add(listener(&one_more)));
    }
}
