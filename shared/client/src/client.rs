//! The client: finds the agent and hands out resources.

use std::ffi::OsString;
use std::fmt;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tidegate_abi::place::{self, SocketDirectory};
use tidegate_segment::os::listener::Listener;

use crate::error::{ConnectError, ListenerError, NameError};
use crate::inner::Inner;
use crate::life::Phase;
use crate::observer::{Observer, Observing};
use crate::resource::Resource;
use crate::status::Status;

/// The keeper ends its first try well before this, see `WELCOME_WITHIN` in `connection`.
const FIRST_TRY_WITHIN: Duration = Duration::from_secs(10);

/// What [`Builder::connect`] does when there is no agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnMissingAgent {
    /// Admit everything, count it, and go on trying in the background.
    #[default]
    Open,
    /// Return the error.
    Fail,
}

/// How a client is to connect.
#[derive(Clone, Default)]
#[must_use = "nothing happens before `connect`"]
pub struct Builder {
    runtime_dir: Option<PathBuf>,
    on_missing_agent: OnMissingAgent,
    observer: Option<Arc<dyn Observer>>,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("runtime_dir", &self.runtime_dir)
            .field("on_missing_agent", &self.on_missing_agent)
            .field("observer", &self.observer.is_some())
            .finish()
    }
}

impl Builder {
    /// The agent's runtime directory. Without it: `$TIDEGATE_RUNTIME_DIR` if that is set, else
    /// the first of `/run/tidegate` and `$XDG_RUNTIME_DIR/tidegate` in which an agent answers.
    pub fn runtime_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.runtime_dir = Some(path.into());
        self
    }

    /// What to do when there is no agent; [`OnMissingAgent::Open`] by default.
    pub const fn on_missing_agent(mut self, choice: OnMissingAgent) -> Self {
        self.on_missing_agent = choice;
        self
    }

    /// Who hears of refusals; nobody by default.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Connects. Waits at most about a second for an agent that does not answer.
    ///
    /// # Errors
    /// This process has no room for the client (memory, descriptors, a thread), or there is no agent
    /// and that was to be an error.
    pub fn connect(self) -> Result<Client, ConnectError> {
        let sockets = sockets(self.runtime_dir, |name| std::env::var_os(name));
        let inner = Arc::new(Inner::begin(sockets, Observing::by(self.observer))?);
        let life = inner.session().life();
        life.wait_while(FIRST_TRY_WITHIN, |state| {
            matches!(state.phase, Phase::Beginning)
        });
        let error = match self.on_missing_agent {
            OnMissingAgent::Open => None,
            OnMissingAgent::Fail => life.lock().take_error(),
        };
        error.map_or(Ok(Client { inner }), |error| Err(error.into()))
    }
}

/// The sockets to try, in this order.
fn sockets(given: Option<PathBuf>, env: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let set = |variable: &str| {
        let value = env(variable).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    let usual = |directory| match directory {
        SocketDirectory::Fixed(path) => Some(PathBuf::from(path)),
        SocketDirectory::Below { variable, name } => {
            let above = set(variable).filter(|above| above.is_absolute())?;
            Some(above.join(name))
        }
    };
    let named = given.or_else(|| set(place::VARIABLE));
    let dirs: Vec<PathBuf> = match named {
        Some(dir) => vec![dir],
        None => place::ORDER.into_iter().filter_map(usual).collect(),
    };
    let sockets = dirs.iter().map(|dir| dir.join(place::GATE_SOCKET));
    sockets.collect()
}

/// A connection to the agent of this host. Clones share it; one for each process is enough.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

impl Client {
    /// Connects to the agent in its usual places. Without an agent, everything is admitted until
    /// there is one; see [`Client::builder`] for other choices.
    ///
    /// # Errors
    /// This process has no room for the client (memory, descriptors, a thread).
    pub fn connect() -> Result<Self, ConnectError> {
        Self::builder().connect()
    }

    /// Chooses how to connect.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The resource of a name: 1 to 255 bytes of printable text.
    ///
    /// A new name is resolved by the agent. Where that takes longer than 50 ms, or the agent is gone,
    /// its place is looked up on the pages; a name without one shares the limits of all such names
    /// until the agent answers. Names are kept as long as the client, so take them from a small set,
    /// not from what callers send.
    ///
    /// # Errors
    /// The name cannot be one.
    pub fn resource(&self, name: &str) -> Result<Resource, NameError> {
        tidegate_abi::check_name(name.as_bytes()).map_err(|fault| NameError::new(name, fault))?;
        self.inner.settle();
        let entry = self.inner.session().life().entry(name);
        self.inner.register(&entry);
        Ok(Resource::new(Arc::clone(&self.inner), entry))
    }

    /// Counts what waits in the accept queue of a listening TCP socket as work that the service holds.
    /// Call it once for each socket, after `listen()`; several processes may share one. The socket is
    /// not kept open by this, and is forgotten when the service closes it.
    ///
    /// # Errors
    /// The descriptor is no listening TCP socket, or there are 16 already.
    pub fn watch_listener(&self, socket: impl AsFd) -> Result<(), ListenerError> {
        let listener = Listener::of(&socket).map_err(|errno| ListenerError::Other(errno.into()))?;
        self.inner.settle();
        let watched = self.inner.session().life().watch(listener);
        if watched {
            Ok(())
        } else {
            Err(ListenerError::TooMany)
        }
    }

    /// The id of the rule with a number, see [`Refused::rule`](crate::Refused::rule), in the set in force
    /// now; empty if it has no such rule. `None` if the agent gave no answer.
    ///
    /// Ids are kept as long as the set of rules is in force, so mostly this takes a lock and no more. A new one is asked
    /// of the agent, for 50 ms at most; ask soon after the refusal, since another set has other numbers.
    pub fn rule_id(&self, number: u32) -> Option<String> {
        self.inner.settle();
        let session = self.inner.session();
        session.rule_id(number).map(|id| id.to_string())
    }

    /// How the client is doing.
    pub fn status(&self) -> Status {
        self.inner.settle();
        let session = self.inner.session();
        let life = session.life();
        let state = life.lock();
        Status {
            door: session.door(),
            connected: matches!(state.phase, Phase::Connected),
            last_error: match &state.phase {
                Phase::Apart(error) => Some(error.to_string()),
                Phase::Beginning | Phase::Connected => None,
            },
            open: life.open(),
            observer_panics: self.inner.observing().panics(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The directories that are tried with these variables set.
    fn tried(given: Option<&str>, variables: &[(&str, &str)]) -> Vec<String> {
        let env = |name: &str| {
            let found = variables.iter().find(|(own, _value)| *own == name);
            found.map(|(_own, value)| OsString::from(value))
        };
        let sockets = sockets(given.map(PathBuf::from), env).into_iter();
        sockets
            .map(|socket| socket.parent().unwrap().display().to_string())
            .collect()
    }

    #[test]
    fn field_o12_a_service_looks_where_it_is_told_then_at_the_machines_agent_then_at_its_users() {
        let (named, user) = (("TIDEGATE_RUNTIME_DIR", "/n"), ("XDG_RUNTIME_DIR", "/u"));
        assert_eq!(tried(Some("/g"), &[named, user]), ["/g"]);
        assert_eq!(tried(None, &[named, user]), ["/n"]);
        assert_eq!(tried(None, &[user]), ["/run/tidegate", "/u/tidegate"]);
        // What is empty is not set, and nothing is looked for below the working directory.
        for nowhere in ["", "relative"] {
            let variables = [("TIDEGATE_RUNTIME_DIR", ""), ("XDG_RUNTIME_DIR", nowhere)];
            assert_eq!(tried(None, &variables), ["/run/tidegate"], "{nowhere}");
        }
    }
}
