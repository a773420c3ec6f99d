//! Who asks over HTTP: user and tenant of each connection.

use std::io;
use std::sync::Arc;

use axum::Router;
use tidegate_segment::clock::Clock as _;
use tokio::net::{UnixListener, UnixStream};
use tracing::Instrument as _;

use super::answer::over_the_bound;
use super::connection::Bounded;
use super::exchange::{Served, close};
use crate::door::accept::Failures;
use crate::door::socket_file::SocketFile;
use crate::host::AgentState;
use crate::host::peer::{self, Peer};
use crate::host::tenants::NamedTenant;
use crate::places::{HeldPlaces, Holder};
use crate::tenant::Tenant;
use crate::tenant::callers;
use crate::tenant::peer_scope::PeerScope;
use crate::tenant::proxy_seats::SeatedCaller;

/// What somebody may see.
#[derive(Debug, Clone)]
pub(super) struct View {
    /// The own tenant.
    pub(super) own: NamedTenant,
    /// Whether it sees the others too.
    pub(super) sees_all: bool,
}

impl View {
    /// All tenants, for who belongs to the default one.
    pub(super) fn of_all(context: &AgentState) -> Self {
        Self {
            own: context.tenants.default_one().clone(),
            sees_all: true,
        }
    }

    /// The tenants in it.
    pub(super) fn tenants(&self, context: &AgentState) -> Vec<NamedTenant> {
        if self.sees_all {
            return context.tenants.iter().cloned().collect();
        }
        vec![self.own.clone()]
    }
}

/// The other end of a connection.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    /// Its user and process.
    pub(super) holder: Holder,
    /// What it may see.
    pub(super) view: View,
    /// The scope of its cgroup.
    pub(super) scope: Arc<PeerScope>,
}

impl Caller {
    fn of(socket: &UnixStream, context: &AgentState) -> io::Result<(Self, HeldPlaces)> {
        let peer = Peer::of(socket)?;
        let holder = peer.holder();
        let place = context.bounds.http_connections.take(holder);
        let place = place.map_err(io::Error::other)?;
        let pidfd = peer::pidfd(socket);
        let caller = Self {
            holder,
            scope: Arc::new(PeerScope::of(peer.pid, peer.uid, pidfd.as_ref())),
            view: View {
                own: context.tenants.of(peer, pidfd.as_ref()).clone(),
                sees_all: context.tenants.shows_all_to(peer.uid),
            },
        };
        Ok((caller, place))
    }

    /// The same for the gate, in the seat in which its requests count. A group that nobody asked from before is known
    /// with the next tick; until then its requests count in the host.
    pub(super) fn seated(&self, context: &AgentState) -> SeatedCaller {
        let (scope, tenant) = (&self.scope, self.tenant());
        if scope.takes_look(tenant.board().now_ns()) && !scope.look_at_known(&*context.scopes) {
            let (scope, scopes) = (Arc::clone(scope), Arc::clone(&context.scopes));
            tokio::task::spawn_blocking(move || scope.look(&*scopes));
        }
        let seated = tenant.seat_caller(callers::Caller {
            scope: scope.current(&*context.scopes),
            service: scope.service(),
            uid: self.holder.uid,
            pid: self.holder.pid,
        });
        seated.among(&context.bounds.scope_users)
    }

    /// The tenant that it belongs to.
    pub(super) const fn tenant(&self) -> &Arc<Tenant> {
        &self.view.own.tenant
    }

    /// The same with its name.
    pub(super) const fn named(&self) -> &NamedTenant {
        &self.view.own
    }
}

/// The Unix socket; each connection that it accepts comes with its caller.
#[derive(Debug)]
pub(super) struct Callers {
    listener: UnixListener,
    file: Box<SocketFile<UnixListener>>,
    context: Arc<AgentState>,
    failures: Failures,
}

impl Callers {
    pub(super) const fn new(
        listener: UnixListener,
        file: Box<SocketFile<UnixListener>>,
        context: Arc<AgentState>,
    ) -> Self {
        Self {
            listener,
            file,
            context,
            failures: Failures::new(super::FILE_NAME),
        }
    }

    /// Answers on these routes until it is dropped.
    pub(super) async fn serve(mut self, routes: Router) {
        loop {
            let (stream, caller) = self.accept().await;
            let Holder { uid, pid } = caller.holder;
            let connection = tracing::info_span!("connection", pid, uid);
            let served = Served {
                routes: routes.clone(),
                bounds: Arc::clone(&self.context.bounds),
                holder: caller.holder,
                caller: Some(caller),
            };
            tokio::spawn(served.on(stream).instrument(connection));
        }
    }

    async fn accept(&mut self) -> (Bounded<UnixStream, HeldPlaces>, Caller) {
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                listener = self.file.made_again() => {
                    self.listener = listener;
                    continue;
                }
            };
            match accepted {
                Ok((stream, _path)) => match Caller::of(&stream, &self.context) {
                    Ok((caller, place)) => return (Bounded::new(stream, place), caller),
                    Err(error) => {
                        let holder = Peer::of(&stream).map(Peer::holder);
                        let told = holder.map(|holder| self.context.bounds.told.take(holder));
                        if let Ok(Ok(told)) = told {
                            tokio::spawn(refuse(stream, error, told));
                        }
                    }
                },
                Err(error) => self.failures.wait_after(&error).await,
            }
        }
    }
}

/// Answers a connection over the bound and ends it. A fresh socket has room for the answer.
async fn refuse(socket: UnixStream, why: io::Error, told: HeldPlaces) {
    if let Err(error) = socket.try_write(over_the_bound(&why).as_bytes()) {
        tracing::debug!(event = "turned_away_unheard", %error, "a connection over the bound did not take its answer");
    }
    Box::pin(close(socket)).await;
    drop(told);
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use std::time::Duration;

    use crate::door::http::{FILE_NAME, Listeners};
    use crate::door::kind::Door as _;
    use crate::door::tests::settings;
    use crate::host::tests::agent_for;

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
        let door = Listeners::open(&settings(directory.path())).unwrap();
        tokio::spawn(Box::new(door).serve(agent_for(1)));
        let connect = || UnixStream::connect(directory.path().join(FILE_NAME));
        let mut first = connect().await.unwrap();
        assert_eq!(status_of(&mut first).await.unwrap(), "HTTP/1.1 200");

        let mut told = String::new();
        let mut over = connect().await.unwrap();
        let read = over.read_to_string(&mut told);
        tokio::time::timeout(DEADLINE, read).await.unwrap().unwrap();
        assert!(told.starts_with("HTTP/1.1 503"), "{told}");
        let why = "connections to http.sock: all 1 are taken; try again later";
        assert!(
            told.ends_with(&format!("{{\"error\":\"{why}\"}}\n")),
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
