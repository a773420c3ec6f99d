//! What every door is.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::offer::Offer;
use super::open_error::OpenError;
use super::settings::DoorSettings;
use crate::host::AgentState;
use crate::host::bounds::Bounds;

/// A kind of door. It has a socket in the directory of the sockets.
#[derive(Debug, Clone, Copy)]
pub struct DoorKind {
    /// Name of its socket.
    pub file_name: &'static str,
    /// Places the socket. Runs inside the runtime.
    pub open: fn(&DoorSettings, &Arc<Bounds>) -> OpenedDoor,
}

/// A door that is placed, or why it is not.
pub type OpenedDoor = Result<Box<dyn Door>, OpenError>;

/// A way to reach the gate, placed and listening. Nobody is answered before [`Door::serve`].
pub trait Door: Debug + Send {
    /// Lets services hand pages of the last life back, before anybody is served; each is looked at, which says
    /// whether it has seen enough. Ends after the limit in any case, and at once where the door has no such services.
    fn gather<'d>(&'d mut self, _limit: Duration, _look: PagesLook<'d>) -> Gathering<'d> {
        Box::pin(std::future::ready(()))
    }

    /// Address of the metrics over TCP; `None` where this door does not serve them.
    fn metrics_address(&self) -> Option<SocketAddr> {
        None
    }

    /// Answers until it is dropped.
    fn serve(self: Box<Self>, agent: Arc<AgentState>) -> Working<'static>;
}

/// Looks at pages that a service hands back; true ends the looking.
pub type PagesLook<'l> = &'l mut dyn FnMut(Offer) -> bool;

/// Gathers until `look` has seen enough, or the time is over.
pub type Gathering<'d> = Pin<Box<dyn Future<Output = ()> + 'd>>;

/// Answers until it is dropped.
pub type Working<'d> = Pin<Box<dyn Future<Output = ()> + Send + 'd>>;
