//! The connections to the TCP port of the metrics. Where all places are taken, the oldest of those that are not being
//! answered makes room: who connects and asks nothing, or never ends its question, keeps nobody out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::connection::{ConnectionHoldings, Stage};
use super::turned::{Turned, Why};

/// Where all connections are being answered, a new one waits for this time for a place.
const PLACE_WITHIN: Duration = Duration::from_secs(2);

/// The connections, in the order in which they came.
#[derive(Debug)]
pub(super) struct ConnectionQueue {
    most: usize,
    there: Mutex<There>,
    left: Notify,
    turned: Arc<Turned>,
}

#[derive(Debug, Default)]
struct There {
    members: Vec<Member>,
    came: u64,
}

#[derive(Debug)]
struct Member {
    number: u64,
    asked: Arc<AtomicBool>,
    end: oneshot::Sender<()>,
}

/// A place in the crowd, until it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPlace {
    crowd: Arc<ConnectionQueue>,
    number: u64,
    asked: Arc<AtomicBool>,
    /// `None` once it was told to end.
    end: Option<oneshot::Receiver<()>>,
}

impl ConnectionQueue {
    /// Nobody yet, and so many at most.
    pub(super) fn new(most: usize, turned: Arc<Turned>) -> Arc<Self> {
        Arc::new(Self {
            most,
            there: Mutex::default(),
            left: Notify::new(),
            turned,
        })
    }

    /// A place for a connection that has just come; `None` if every other is being answered and stays so.
    pub(super) async fn join(self: &Arc<Self>) -> Option<ConnectionPlace> {
        let joined = tokio::time::timeout(PLACE_WITHIN, async {
            loop {
                let left = self.left.notified();
                if let Some(chair) = self.try_join() {
                    return chair;
                }
                left.await;
            }
        });
        let joined = joined.await.ok();
        if joined.is_none() {
            self.turned.count(Why::NoPlace);
        }
        joined
    }

    fn try_join(self: &Arc<Self>) -> Option<ConnectionPlace> {
        let mut there = self.there.lock();
        if there.members.len() >= self.most {
            // Relaxed: one that asks in this moment and is ended asks again.
            let idle = |member: &Member| !member.asked.load(Ordering::Relaxed);
            let oldest = there.members.iter().position(idle)?;
            // One that is already gone hears nothing, and has made room as well.
            let _heard: Result<(), ()> = there.members.remove(oldest).end.send(());
            self.turned.count(Why::MadeRoom);
        }
        there.came = there.came.saturating_add(1);
        let (end, ended) = oneshot::channel();
        let (number, asked) = (there.came, Arc::new(AtomicBool::new(false)));
        there.members.push(Member {
            number,
            asked: Arc::clone(&asked),
            end,
        });
        Some(ConnectionPlace {
            crowd: Arc::clone(self),
            number,
            asked,
            end: Some(ended),
        })
    }
}

impl ConnectionHoldings for ConnectionPlace {
    fn comes_to(&self, stage: Stage) {
        let asked = stage == Stage::Asked;
        self.asked.store(asked, Ordering::Relaxed);
        if !asked {
            // It can make room now.
            self.crowd.left.notify_one();
        }
    }

    fn is_late(&self) {
        self.crowd.turned.count(Why::LateHead);
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        use std::future::Future as _;
        use std::pin::Pin;

        let Some(end) = &mut self.end else {
            return Poll::Ready(());
        };
        let ended = Pin::new(end).poll(cx).map(|_heard| ());
        if ended.is_ready() {
            self.end = None;
        }
        ended
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let mut there = self.crowd.there.lock();
        there.members.retain(|member| member.number != self.number);
        self.crowd.left.notify_one();
    }
}
