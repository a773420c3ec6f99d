//! What is asked for a call, as a value of its own.

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_abi::argument::Arg;
use tidegate_abi::decision::{Class, Direction};

use crate::ask::Ask;
use crate::resource::Resource;

/// What is asked for a call: an [`Ask`] that owns what it says, for layers and middleware.
///
/// ```no_run
/// # use tidegate_client::{Class, EntryRequest, Resource};
/// # fn of(orders: &Resource, caller: &str, user: &str) -> EntryRequest {
/// EntryRequest::of(orders.clone())
///     .class(Class::Sheddable)
///     .origin(caller)
///     .text_arg(user)
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing is asked before `ask`"]
pub struct EntryRequest {
    resource: Resource,
    count: NonZeroU32,
    class: Class,
    direction: Direction,
    prioritized: bool,
    origin: Box<str>,
    context: Box<str>,
    args: Vec<Arg<'static>>,
    wait_at_most: Duration,
}

impl EntryRequest {
    /// One inbound request of normal importance.
    pub fn of(resource: Resource) -> Self {
        Self {
            resource,
            count: NonZeroU32::MIN,
            class: Class::Normal,
            direction: Direction::In,
            prioritized: false,
            origin: "".into(),
            context: "".into(),
            args: Vec::new(),
            wait_at_most: Duration::MAX,
        }
    }

    /// See [`Ask::count`].
    pub const fn count(mut self, count: NonZeroU32) -> Self {
        self.count = count;
        self
    }

    /// See [`Ask::class`].
    pub const fn class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }

    /// A call that this service makes; see [`Ask::direction`].
    pub const fn outbound(mut self) -> Self {
        self.direction = Direction::Out;
        self
    }

    /// See [`Ask::prioritized`].
    pub const fn prioritized(mut self, prioritized: bool) -> Self {
        self.prioritized = prioritized;
        self
    }

    /// See [`Ask::origin`].
    pub fn origin(mut self, name: &str) -> Self {
        self.origin = name.into();
        self
    }

    /// See [`Ask::context`].
    pub fn context(mut self, name: &str) -> Self {
        self.context = name.into();
        self
    }

    /// One more argument, see [`Ask::args`].
    pub fn arg(mut self, arg: Arg<'static>) -> Self {
        self.args.push(arg);
        self
    }

    /// One more argument that is text.
    pub fn text_arg(self, text: &str) -> Self {
        let kind = tidegate_abi::argument::ArgumentKind::Text;
        self.arg(Arg::One(tidegate_abi::argument::text_hash(kind, text)))
    }

    /// See [`Ask::wait_at_most`].
    pub const fn wait_at_most(mut self, time: Duration) -> Self {
        self.wait_at_most = time;
        self
    }

    /// The resource.
    pub const fn resource(&self) -> &Resource {
        &self.resource
    }

    /// The request, ready to be asked.
    pub fn ask(&self) -> Ask<'_> {
        self.resource
            .ask()
            .count(self.count)
            .class(self.class)
            .direction(self.direction)
            .prioritized(self.prioritized)
            .origin(&self.origin)
            .context(&self.context)
            .args(&self.args)
            .wait_at_most(self.wait_at_most)
    }
}

impl From<Resource> for EntryRequest {
    fn from(resource: Resource) -> Self {
        Self::of(resource)
    }
}
