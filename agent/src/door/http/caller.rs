//! Who asks over HTTP: user and tenant of each connection.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::net::{UnixListener, UnixStream};

use crate::door::Context;
use crate::door::peer::{self, Peer};
use crate::door::tenants::Named;
use crate::tenant::Tenant;

/// How long to wait when the kernel has no descriptor for another connection.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// The other end of a connection.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    /// Its user.
    pub(super) uid: u32,
    named: Named,
    sees_all: bool,
}

impl Caller {
    fn of(socket: &UnixStream, context: &Context) -> io::Result<Self> {
        let peer = Peer::of(socket)?;
        let pidfd = peer::pidfd(socket);
        Ok(Self {
            uid: peer.uid,
            named: context.tenants.of(peer, pidfd.as_ref()).clone(),
            sees_all: context.tenants.shows_all_to(peer.uid),
        })
    }

    /// The tenant that it belongs to.
    pub(super) const fn tenant(&self) -> &Arc<Tenant> {
        &self.named.tenant
    }

    /// The tenants that it may see.
    pub(super) fn sees(&self, context: &Context) -> Vec<Named> {
        if self.sees_all {
            return context.tenants.iter().cloned().collect();
        }
        vec![self.named.clone()]
    }
}

/// The Unix socket; each connection that it accepts comes with its caller.
#[derive(Debug)]
pub(super) struct Callers {
    listener: UnixListener,
    context: Arc<Context>,
}

impl Callers {
    pub(super) const fn new(listener: UnixListener, context: Arc<Context>) -> Self {
        Self { listener, context }
    }
}

impl Listener for Callers {
    type Io = UnixStream;
    type Addr = Caller;

    async fn accept(&mut self) -> (UnixStream, Caller) {
        loop {
            let accepted = self.listener.accept().await;
            let known = accepted.and_then(|(stream, _path)| {
                let caller = Caller::of(&stream, &self.context)?;
                Ok((stream, caller))
            });
            match known {
                Ok(accepted) => return accepted,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection to the HTTP socket");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<Caller> {
        // Nobody asks: the address of this listener is its path.
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Connected<IncomingStream<'_, Callers>> for Caller {
    fn connect_info(stream: IncomingStream<'_, Callers>) -> Self {
        stream.remote_addr().clone()
    }
}
