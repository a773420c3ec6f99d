//! A thread of the agent that is told to end and waited for only so long: a disk that hangs or a starved
//! machine may hold a thread up, and the agent ends all the same.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::Thread;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_segment::sync::{Ordering, Word};

/// Longest wait for a thread that was told to end. A tick takes a second at most, and writing what waits for
/// the disk takes less.
pub const END_WITHIN: Duration = Duration::from_secs(3);

/// A running thread. Dropping this tells it to end and does not wait.
#[derive(Debug)]
pub struct Background {
    name: &'static str,
    told: Arc<Word>,
    thread: Thread,
    /// Nothing comes; its other half is dropped when the thread has ended.
    ended: Mutex<Receiver<()>>,
}

/// What the thread looks at to know when to end.
#[derive(Debug)]
pub struct Stop(Arc<Word>);

impl Stop {
    /// Whether the thread is to end.
    pub fn is_told(&self) -> bool {
        // Acquire: pairs with the Release in `tell`; what was done before it is seen.
        self.0.load(Ordering::Acquire) != 0
    }
}

impl Background {
    /// Starts a thread.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(name: &'static str, run: impl FnOnce(Stop) + Send + 'static) -> io::Result<Self> {
        let told = Arc::new(Word::new(0));
        let (alive, ended) = channel();
        let stop = Stop(Arc::clone(&told));
        let body = move || {
            // Dropped last, also by a panic.
            let _alive = alive;
            run(stop);
        };
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(body)?;
        Ok(Self {
            name,
            told,
            thread: thread.thread().clone(),
            ended: Mutex::new(ended),
        })
    }

    /// Tells the thread to end, and wakes it if it is parked.
    pub fn tell(&self) {
        // Release: pairs with the Acquire in `is_told`.
        self.told.store(1, Ordering::Release);
        self.thread.unpark();
    }

    /// Tells the thread to end and waits for that, at most `limit`; whether it has ended.
    pub fn end_within(&self, limit: Duration) -> bool {
        self.tell();
        let ended = self.ended.lock().recv_timeout(limit) == Err(RecvTimeoutError::Disconnected);
        if !ended {
            let thread = self.name;
            tracing::warn!(
                event = "thread_left_behind",
                thread,
                ?limit,
                "a thread did not stop in time; the agent ends without it"
            );
        }
        ended
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.tell();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_told_to_end_and_waited_for() {
        let (done, seen) = channel();
        let thread = Background::start("test", move |stop| {
            while !stop.is_told() {
                std::thread::park();
            }
            done.send("written").unwrap();
        });
        assert!(thread.unwrap().end_within(Duration::from_mins(1)));
        assert_eq!(seen.try_recv(), Ok("written"));
    }

    #[test]
    fn a_thread_that_hangs_is_left_behind() {
        let (go_on, gate) = channel::<()>();
        let thread = Background::start("test", move |_stop| {
            let _go_on = gate.recv();
        });
        assert!(!thread.unwrap().end_within(Duration::from_millis(1)));
        drop(go_on);
    }

    #[test]
    fn a_thread_whose_owner_is_gone_is_told_to_end() {
        let (done, seen) = channel();
        let thread = Background::start("test", move |stop| {
            while !stop.is_told() {
                std::thread::park();
            }
            done.send(()).unwrap();
        });
        drop(thread);
        seen.recv_timeout(Duration::from_mins(1)).unwrap();
    }
}
