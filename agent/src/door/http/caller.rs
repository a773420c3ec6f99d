//! Who asks over HTTP: user and tenant of each connection.

use std::io;
use std::sync::Arc;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::net::{UnixListener, UnixStream};

use super::answer::over_the_bound;
use super::connection::Bounded;
use crate::door::Context;
use crate::door::accept::Failures;
use crate::door::peer::{self, Peer};
use crate::door::places::{Place, Places};
use crate::door::tenants::Named;
use crate::tenant::Tenant;

/// The other end of a connection.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    /// Its user.
    pub(super) uid: u32,
    named: Named,
    sees_all: bool,
}

impl Caller {
    fn of(
        socket: &UnixStream,
        places: &Arc<Places>,
        context: &Context,
    ) -> io::Result<(Self, Place)> {
        let peer = Peer::of(socket)?;
        let place = places.take(peer.uid).map_err(io::Error::other)?;
        let pidfd = peer::pidfd(socket);
        let caller = Self {
            uid: peer.uid,
            named: context.tenants.of(peer, pidfd.as_ref()).clone(),
            sees_all: context.tenants.shows_all_to(peer.uid),
        };
        Ok((caller, place))
    }

    /// The tenant that it belongs to.
    pub(super) const fn tenant(&self) -> &Arc<Tenant> {
        &self.named.tenant
    }

    /// The same with its name.
    pub(super) const fn named(&self) -> &Named {
        &self.named
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
    places: Arc<Places>,
    context: Arc<Context>,
    failures: Failures,
}

impl Callers {
    pub(super) fn new(
        listener: UnixListener,
        connections_max: usize,
        context: Arc<Context>,
    ) -> Self {
        Self {
            listener,
            places: Places::new(connections_max),
            context,
            failures: Failures::new(super::FILE_NAME),
        }
    }
}

/// Answers a connection over the bound and ends it. A fresh socket has room for the answer, and nobody
/// waits for the peer.
fn refuse(socket: &UnixStream, why: &io::Error) {
    if let Err(error) = socket.try_write(over_the_bound(why).as_bytes()) {
        tracing::debug!(%error, "a connection over the bound was not told so");
    }
}

impl Listener for Callers {
    type Io = Bounded<UnixStream, Place>;
    type Addr = Caller;

    async fn accept(&mut self) -> (Self::Io, Caller) {
        loop {
            match self.listener.accept().await {
                Ok((stream, _path)) => match Caller::of(&stream, &self.places, &self.context) {
                    Ok((caller, place)) => return (Bounded::new(stream, place), caller),
                    Err(error) => refuse(&stream, &error),
                },
                Err(error) => self.failures.wait_after(&error).await,
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use crate::door::http::{FILE_NAME, Listeners};
    use crate::door::tests::{context, settings};

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(5);

    /// The first bytes of what comes back to a question that leaves the connection open.
    async fn status_of(stream: &mut UnixStream) -> io::Result<String> {
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nhost: tidegate\r\n\r\n")
            .await?;
        let mut head = [0; 12];
        stream.read_exact(&mut head).await?;
        Ok(String::from_utf8_lossy(&head).into_owned())
    }

    #[tokio::test]
    async fn a_connection_over_the_bound_is_told_so_and_ends() {
        let directory = tempfile::tempdir().unwrap();
        let mut settings = settings(directory.path());
        settings.connections_max = 1;
        let door = Listeners::open(&settings).unwrap();
        tokio::spawn(door.serve(context()));
        let connect = || UnixStream::connect(directory.path().join(FILE_NAME));
        let mut first = connect().await.unwrap();
        assert_eq!(status_of(&mut first).await.unwrap(), "HTTP/1.1 200");

        let mut told = String::new();
        let mut over = connect().await.unwrap();
        let read = over.read_to_string(&mut told);
        tokio::time::timeout(DEADLINE, read).await.unwrap().unwrap();
        assert!(told.starts_with("HTTP/1.1 503"), "{told}");
        let why = "1 connections are open, more are not served; close some, or connect later";
        assert!(
            told.ends_with(&format!("{{\"error\":\"{why}\"}}")),
            "{told}"
        );

        drop(first);
        let freed = async {
            loop {
                let status = status_of(&mut connect().await.unwrap()).await;
                if status.is_ok_and(|status| status == "HTTP/1.1 200") {
                    return;
                }
            }
        };
        tokio::time::timeout(DEADLINE, freed).await.unwrap();
    }
}
