//! The client that finds no agent.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::connect_fault::ConnectFault;
use super::inner::Inner;
use super::resource::Resource;
use crate::error::{ConnectError, ListenerError, NameError};
use crate::observer::{Observer, Observing};
use crate::status::Status;

/// What [`Builder::connect`] does: there is no agent on this system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnMissingAgent {
    /// Admit everything, and count it.
    #[default]
    Open,
    /// Return the error.
    Fail,
}

/// How a client is to connect.
#[derive(Clone, Default)]
#[must_use = "nothing happens before `connect`"]
pub struct Builder {
    on_missing_agent: OnMissingAgent,
    observer: Option<Arc<dyn Observer>>,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("on_missing_agent", &self.on_missing_agent)
            .field("observer", &self.observer.is_some())
            .finish()
    }
}

impl Builder {
    /// The agent's runtime directory. Nothing is looked for there.
    pub fn runtime_dir(self, _path: impl Into<PathBuf>) -> Self {
        self
    }

    /// What to do when there is no agent; [`OnMissingAgent::Open`] by default.
    pub const fn on_missing_agent(mut self, choice: OnMissingAgent) -> Self {
        self.on_missing_agent = choice;
        self
    }

    /// Who hears that requests are admitted without an agent; nobody by default.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Makes a client that admits everything.
    ///
    /// # Errors
    /// A missing agent was to be an error.
    pub fn connect(self) -> Result<Client, ConnectError> {
        match self.on_missing_agent {
            OnMissingAgent::Open => Ok(Client {
                inner: Arc::new(Inner::new(Observing::by(self.observer))),
            }),
            OnMissingAgent::Fail => Err(ConnectFault.into()),
        }
    }
}

/// A client that admits everything and counts it.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

impl Client {
    /// Makes a client that admits everything.
    ///
    /// # Errors
    /// None on this system.
    pub fn connect() -> Result<Self, ConnectError> {
        Self::builder().connect()
    }

    /// Chooses how to connect.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The resource of a name: 1 to 255 bytes of printable text.
    ///
    /// # Errors
    /// The name cannot be one.
    pub fn resource(&self, name: &str) -> Result<Resource, NameError> {
        tidegate_abi::check_name(name.as_bytes()).map_err(|fault| NameError::new(name, fault))?;
        Ok(Resource::new(Arc::clone(&self.inner), name))
    }

    /// On Linux, counts what waits in the accept queue of a listening TCP socket.
    ///
    /// # Errors
    /// None on this system.
    pub fn watch_listener<S>(&self, _socket: S) -> Result<(), ListenerError> {
        Ok(())
    }

    /// The id of the rule with a number: there is no rule.
    pub fn rule_id(&self, _number: u32) -> Option<String> {
        None
    }

    /// How the client is doing.
    pub fn status(&self) -> Status {
        Status {
            connected: false,
            door: None,
            last_error: Some(ConnectFault.to_string()),
            open: self.inner.open(),
            observer_panics: self.inner.observing().panics(),
        }
    }
}
