//! Requests of a connection whose callers wait for their turn by themselves, so that the connection is
//! free for others meanwhile.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tidegate_abi::message::EnterRequest;
use tidegate_segment::gate::{GateVerdict, Request};
use tidegate_segment::sync::{Ordering, Word};

use crate::door::arguments::Arguments;
use crate::places::{HeldPlaces, Holder, NoPlace, Places};
use crate::tenant::Tenant;
use crate::tenant::decide::Waits;
use crate::tenant::permit::PermitToken;
use crate::tenant::proxy_seats::SeatedCaller;
use crate::tenant::question::Question;

/// The token of a permit that is asked for, and its place.
pub(super) struct Drawn {
    pub(super) token: PermitToken,
    pub(super) place: HeldPlaces,
}

/// How long a request is kept after its turn has come, ns; a caller that comes later has gone away.
const KEPT_NS: u64 = 10_000_000_000;

/// A request in the middle of its decision. Dropped, it puts back what it has taken and counts as refused.
pub(super) struct Turn {
    /// Monotonic ns.
    until_ns: Arc<Word>,
    /// Who asks, in the seat that the decision counts in.
    caller: SeatedCaller,
    decision: Pin<Box<dyn Future<Output = GateVerdict> + Send>>,
    /// Taken once it waits.
    place: Option<HeldPlaces>,
}

/// How far a request is.
pub(super) enum Now {
    Decided(GateVerdict),
    Held { wait_us: u32 },
}

impl Turn {
    /// Begins with what a caller of a scope asks for.
    pub(super) fn begin(
        tenant: Arc<Tenant>,
        caller: SeatedCaller,
        waits: Waits<'static>,
        ask: &EnterRequest<'_>,
    ) -> Self {
        let names = [ask.resource, ask.origin, ask.context].map(str::to_owned);
        let (count, direction, class) = (ask.count, ask.direction, ask.class);
        let (prioritized, arguments) = (ask.prioritized, Arguments::of(ask.args));
        let until_ns = Arc::new(Word::new(0));
        let told = Arc::clone(&until_ns);
        let asker = caller.clone();
        let decision = Box::pin(async move {
            let [resource, origin, context] = &names;
            let question = Question {
                resource,
                origin,
                context,
                request: Request {
                    count,
                    direction,
                    class,
                    prioritized,
                    args: &arguments.args(),
                    ..Request::default()
                },
            };
            tenant
                .decide(&asker, &question, waits.by_itself(&told))
                .await
        });
        Self {
            until_ns,
            caller,
            decision,
            place: None,
        }
    }

    /// Takes the place of a request that waits, once.
    ///
    /// # Errors
    /// There is none for its holder.
    pub(super) fn take_place(
        &mut self,
        places: &Arc<Places>,
        holder: Holder,
    ) -> Result<(), NoPlace> {
        if self.place.is_none() {
            self.place = Some(places.take(holder)?);
        }
        Ok(())
    }

    /// Goes as far as it can.
    pub(super) fn go_on(&mut self, now_ns: u64) -> Now {
        let mut nobody_is_woken = Context::from_waker(Waker::noop());
        match self.decision.as_mut().poll(&mut nobody_is_woken) {
            Poll::Ready(verdict) => Now::Decided(verdict),
            Poll::Pending => {
                let left_ns = self.until_ns().saturating_sub(now_ns);
                let wait_us = u32::try_from(left_ns.div_ceil(1000)).unwrap_or(u32::MAX);
                Now::Held { wait_us }
            }
        }
    }

    /// Who asks.
    pub(super) const fn caller(&self) -> &SeatedCaller {
        &self.caller
    }

    fn until_ns(&self) -> u64 {
        // Relaxed: this thread polled what stored it.
        self.until_ns.load(Ordering::Relaxed)
    }
}

/// The requests that wait, each with the place of its permit.
#[derive(Default)]
pub(super) struct Turns(HashMap<PermitToken, (HeldPlaces, Turn)>);

impl Turns {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps a request until its caller comes back.
    pub(super) fn put(&mut self, drawn: Drawn, turn: Turn) {
        self.0.insert(drawn.token, (drawn.place, turn));
    }

    pub(super) fn take(&mut self, token: &PermitToken) -> Option<(HeldPlaces, Turn)> {
        self.0.remove(token)
    }

    /// Gives up those whose callers have not come back.
    pub(super) fn drop_late(&mut self, now_ns: u64) {
        self.0
            .retain(|_token, (_place, turn)| turn.until_ns().saturating_add(KEPT_NS) > now_ns);
    }
}
