//! What a connection may do yet: hand pages back while the agent starts, and be served from when it has its pages.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use crate::door::offer::Offer;
use crate::host::AgentState;
use crate::host::peer::Peer;

/// Most offers that wait to be looked at.
const OFFERS: usize = 64;

/// How far the agent is, for one connection.
#[derive(Debug, Clone)]
pub(super) struct Stage {
    offers: mpsc::Sender<Offer>,
    context: watch::Receiver<Option<Arc<AgentState>>>,
}

/// The other end of all stages.
#[derive(Debug)]
pub(super) struct Curtain {
    stage: Stage,
    offers: mpsc::Receiver<Offer>,
    context: watch::Sender<Option<Arc<AgentState>>>,
}

impl Curtain {
    pub(super) fn closed() -> Self {
        let (sender, offers) = mpsc::channel(OFFERS);
        let (context, receiver) = watch::channel(None);
        Self {
            stage: Stage {
                offers: sender,
                context: receiver,
            },
            offers,
            context,
        }
    }

    pub(super) fn stage(&self) -> Stage {
        self.stage.clone()
    }

    /// The next offer; never ends.
    pub(super) async fn offer(&mut self) -> Offer {
        match self.offers.recv().await {
            Some(offer) => offer,
            None => std::future::pending().await,
        }
    }

    /// From now on connections are served; nobody looks at offers any more.
    pub(super) fn open(&mut self, context: Arc<AgentState>) {
        self.offers.close();
        while self.offers.try_recv().is_ok() {}
        self.context.send_replace(Some(context));
    }
}

impl Stage {
    /// Offers what a service has brought to an agent that starts.
    pub(super) async fn offer(&mut self, peer: Peer, files: Option<&Arc<[OwnedFd; 2]>>) {
        if self.context.borrow().is_some() {
            return;
        }
        let files = files.map(Arc::clone);
        // Nobody looks at it if the pages are made meanwhile.
        let _late: Result<(), _> = self.offers.send(Offer { peer, files }).await;
    }

    /// Waits for what connections are served from; `None` if the agent ends before.
    pub(super) async fn context(&mut self) -> Option<Arc<AgentState>> {
        let context = self.context.wait_for(Option::is_some).await;
        context
            .ok()
            .and_then(|context| context.as_ref().map(Arc::clone))
    }
}
