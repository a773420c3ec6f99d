//! One connection: reads frames and answers each, in order.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tidegate_abi::check_name;
use tidegate_abi::decision::Outcome;
use tidegate_abi::message::{EnterAnswer, EnterRequest, Frame, Message, Part, TOKEN};
use tidegate_limits::window::COUNT_MAX;
use tidegate_segment::clock::Clock as _;
use tidegate_segment::gate::{GateVerdict, Refusal, Request};
use tokio_seqpacket::UnixSeqpacket;

use super::fault::Fault;
use super::hello::{self, Hello};
use super::stage::Stage;
use super::turn::{Drawn, Now, Turn, Turns};
use super::wire::Wire;
use crate::control::Handle;
use crate::door::arguments::Arguments;
use crate::door::membership;
use crate::host::AgentState;
use crate::host::bounds::{Bounds, LISTENERS_OF_CONNECTION};
use crate::host::peer::{self, Peer};
use crate::places::{HeldPlaces, Holder};
use crate::tenant::Tenant;
use crate::tenant::callers::Caller;
use crate::tenant::client::{ConnectionId, ServiceConnection, Who};
use crate::tenant::decide::Waits;
use crate::tenant::directory::FoundSlot;
use crate::tenant::peer_scope::PeerScope;
use crate::tenant::permit::{self, PermitToken};
use crate::tenant::proxy_seats::{ProxyPermit, SeatedCaller};
use crate::tenant::question::Question;
use crate::tenant::scope_resolver::ScopeResolver;
use crate::tenant::seat_life::{SeatGuard, process_name};

/// How often requests whose callers wait by themselves are looked through for those who do not come back.
const TURNS_LOOKED_AT: Duration = Duration::from_secs(1);

/// Serves a connection until its other end closes.
pub(super) async fn serve(
    mut stage: Stage,
    socket: UnixSeqpacket,
    hello_deadline: Duration,
) -> io::Result<()> {
    let mut wire = Wire::new(socket);
    let begun = Box::pin(begin(&mut stage, &mut wire, hello_deadline)).await?;
    let Some(mut connection) = begun else {
        return Ok(());
    };
    connection.greet(&mut wire);
    match connection.seated {
        Some(_) => wire.send_with(connection.tenant.files()).await?,
        None => wire.send().await?,
    }
    while connection.receive(&mut wire).await? {
        connection.reply(&mut wire).await;
        wire.send().await?;
    }
    Ok(())
}

/// Hears the hello, and begins when there are pages; `None` if the connection or the agent ended before it.
async fn begin(
    stage: &mut Stage,
    wire: &mut Wire,
    hello_deadline: Duration,
) -> io::Result<Option<Box<Connection>>> {
    let Some(hello) = first_frame(wire, hello_deadline).await? else {
        return Ok(None);
    };
    let peer = Peer::of(wire.socket())?;
    stage.offer(peer, hello.files()).await;
    let Some(context) = stage.context().await else {
        return Ok(None);
    };
    let connection = Connection::begin(&context, wire, peer, hello).await;
    Ok(Some(Box::new(connection)))
}

/// Waits for the hello; `None` if the connection ended before it. A peer that sends anything else is
/// told what is wrong.
async fn first_frame(wire: &mut Wire, deadline: Duration) -> io::Result<Option<Hello>> {
    let hello = match tokio::time::timeout(deadline, wire.receive_first()).await {
        Ok(Ok((true, files))) => {
            let message = wire.message();
            message.and_then(|message| Hello::of(message, files))
        }
        Ok(Ok((false, _files))) => return Ok(None),
        Ok(Err(error)) => return Err(error),
        Err(_too_late) => Err(Fault::silent(deadline)),
    };
    match hello {
        Ok(hello) => Ok(Some(hello)),
        Err(fault) => {
            wire.put(fault.frame());
            wire.send().await?;
            Err(io::Error::other(fault.text().to_owned()))
        }
    }
}

/// What a request was given.
enum Decided {
    Permit { token: PermitToken, waited_ms: u32 },
    Refusal(Refusal),
}

/// A request that is being decided.
type PendingDecision<'c> = Pin<Box<dyn Future<Output = Result<Decided, Fault>> + Send + 'c>>;

/// What a connection holds. Dropping it gives all of that back.
struct Connection {
    tenant: Arc<Tenant>,
    control: Arc<Handle>,
    scopes: Arc<dyn ScopeResolver>,
    bounds: Arc<Bounds>,
    /// Longest wait for a rule that lets wait, whatever the caller asks for.
    max_wait: Duration,
    holder: Holder,
    client: Arc<ServiceConnection>,
    /// Those of the listeners that the service has shown.
    listeners: Vec<HeldPlaces>,
    ticket: ConnectionId,
    /// Ends the seat when it is dropped.
    seated: Option<SeatGuard>,
    /// Requests whose callers wait by themselves.
    turns: Turns,
}

impl Connection {
    async fn begin(context: &AgentState, wire: &Wire, peer: Peer, hello: Hello) -> Self {
        let pidfd = peer::pidfd(wire.socket());
        let tenant = Arc::clone(&context.tenants.of(peer, pidfd.as_ref()).tenant);
        let scope = PeerScope::of(peer.pid, peer.uid, pidfd.as_ref());
        let (seated, no_seat) = hello.seat(&tenant, peer, pidfd).await;
        let who = Who {
            pid: peer.pid,
            uid: peer.uid,
            name: process_name(peer.pid).unwrap_or_default(),
            seat: seated.as_ref().map(|seated| seated.seat),
            no_seat,
        };
        let (ticket, client) = tenant.clients().add(who, scope);
        if client.scope().takes_look(tenant.board().now_ns()) {
            membership::look_beside(&context.scopes, &tenant, &client);
        }
        Self {
            tenant,
            control: Arc::clone(&context.control),
            scopes: Arc::clone(&context.scopes),
            bounds: Arc::clone(&context.bounds),
            max_wait: context.max_wait,
            holder: peer.holder(),
            client,
            listeners: Vec::new(),
            ticket,
            seated,
            turns: Turns::default(),
        }
    }

    /// Puts the welcome in place.
    fn greet(&self, wire: &mut Wire) {
        let who = &self.client.who;
        let scope = self.client.scope().last().place;
        wire.put(hello::welcome(&self.tenant, who.seat, scope));
    }

    /// Waits for a frame; false at the end of the connection. Meanwhile it gives up requests whose callers
    /// do not come back.
    async fn receive(&mut self, wire: &mut Wire) -> io::Result<bool> {
        while !self.turns.is_empty() {
            if let Ok(received) = tokio::time::timeout(TURNS_LOOKED_AT, wire.receive()).await {
                return received;
            }
            self.turns.drop_late(self.tenant.board().now_ns());
        }
        wire.receive().await
    }

    /// Puts the answer to the frame that was received in place; one that asks for a permit may be held.
    async fn reply(&mut self, wire: &mut Wire) {
        let asked = match wire.message() {
            Ok(Message::Enter(ask)) if !ask.waits_itself => Some(self.held(ask).await),
            _ => None,
        };
        match asked {
            Some(Ok(Decided::Permit { token, waited_ms })) => wire.put(admitted(token, waited_ms)),
            Some(Ok(Decided::Refusal(refusal))) => wire.put(refused(&self.tenant, &refusal)),
            Some(Err(fault)) => wire.put(fault.frame()),
            None => self.reply_at_once(wire),
        }
    }

    fn reply_at_once(&mut self, wire: &mut Wire) {
        let answer = wire.message().and_then(|frame| self.answer(frame));
        wire.put(answer.unwrap_or_else(|fault| fault.frame()));
    }

    fn answer(&mut self, frame: Message<'_>) -> Result<Frame, Fault> {
        match frame {
            Message::Enter(ask) => self.begin_turn(ask),
            Message::Resume { token } => self.resume(token),
            Message::Exit { token, outcome } => self.exit(&token, outcome),
            Message::Resolve { name } => Ok(resolved(self.resolve("name", name)?)),
            Message::ResolvePart {
                part,
                resource,
                name,
            } => self.resolve_part(part, resource, name),
            Message::Rule { number } => {
                let limits = self.tenant.directory().rule_index();
                let id = limits.id(number).unwrap_or_default();
                Ok(Message::Ruled { id }.encode())
            }
            Message::Watch { cookie } => self.watch(cookie),
            Message::Hello { .. } | Message::Again(_) => Err(Fault::second_hello()),
            Message::Welcome(_)
            | Message::Resolved { .. }
            | Message::Verdict(_)
            | Message::Ruled { .. }
            | Message::Exited
            | Message::Watched
            | Message::Held { .. }
            | Message::Fault { .. } => Err(Fault::not_a_question()),
        }
    }

    fn resolve(&self, field: &str, name: &str) -> Result<FoundSlot, Fault> {
        check_name(name.as_bytes()).map_err(|fault| Fault::name(field, fault))?;
        let uid = self.client.who.uid;
        Ok(self.tenant.directory().resolve_by(name, uid))
    }

    /// The node of an origin or context; the resource's own where it has none.
    fn resolve_part(&self, part: Part, resource: &str, name: &str) -> Result<Frame, Fault> {
        let own = self.resolve("resource", resource)?;
        check_name(name.as_bytes()).map_err(|fault| Fault::name(part.name(), fault))?;
        let node = self
            .tenant
            .part((resource, own.slot), (part, name), self.client.who.uid);
        Ok(resolved(FoundSlot {
            slot: node.unwrap_or(own.slot),
            overflow: node.is_none(),
        }))
    }

    fn watch(&mut self, cookie: u64) -> Result<Frame, Fault> {
        if self.listeners.len() >= LISTENERS_OF_CONNECTION {
            return Err(Fault::too_many_listeners());
        }
        let place = self.bounds.listeners.take(self.holder);
        let place = place.map_err(|no_place| Fault::busy(&no_place))?;
        let watched = self.control.watch_listener(cookie, &self.client);
        watched.map_err(|overrun| Fault::busy(&overrun))?;
        self.listeners.push(place);
        Ok(Message::Watched.encode())
    }

    /// Asks the gate, on the heap: most frames ask for nothing that may be held.
    fn held<'c>(&'c mut self, ask: EnterRequest<'c>) -> PendingDecision<'c> {
        Box::pin(self.enter(ask))
    }

    async fn enter(&mut self, ask: EnterRequest<'_>) -> Result<Decided, Fault> {
        check(&ask)?;
        let drawn = self.draw()?;
        let arguments = Arguments::of(ask.args);
        let args = arguments.args();
        let question = Question {
            resource: ask.resource,
            origin: ask.origin,
            context: ask.context,
            request: Request {
                count: ask.count,
                direction: ask.direction,
                class: ask.class,
                prioritized: ask.prioritized,
                args: &args,
                ..Request::default()
            },
        };
        let caller = self.caller();
        let waits = self.waits(&ask);
        let verdict = self.tenant.decide(&caller, &question, waits).await;
        self.given(drawn, &caller, verdict)
    }

    /// Asks the gate for a caller that waits by itself.
    fn begin_turn(&mut self, ask: EnterRequest<'_>) -> Result<Frame, Fault> {
        check(&ask)?;
        let drawn = self.draw()?;
        let tenant = Arc::clone(&self.tenant);
        let waits = self.waits(&ask);
        let turn = Turn::begin(tenant, self.caller(), waits, &ask);
        self.go_on(drawn, turn)
    }

    /// How long a request may wait: as long as its caller does, and no longer than the operator lets it.
    fn waits(&self, ask: &EnterRequest<'_>) -> Waits<'static> {
        let asked = Duration::from_millis(ask.wait_at_most_ms.into());
        Waits::at_most(asked.min(self.max_wait))
    }

    fn caller(&self) -> SeatedCaller {
        let scope = self.client.scope();
        if scope.takes_look(self.tenant.board().now_ns()) {
            membership::look_beside(&self.scopes, &self.tenant, &self.client);
        }
        let seated = self.tenant.seat_caller(Caller {
            scope: scope.current(&*self.scopes),
            service: scope.service(),
            uid: self.holder.uid,
            pid: self.holder.pid,
        });
        seated.among(&self.bounds.scope_users)
    }

    /// A token, and the place of the permit that it may come to name.
    fn draw(&self) -> Result<Drawn, Fault> {
        let place = self.bounds.permits.take(self.holder);
        Ok(Drawn {
            place: place.map_err(|no_place| Fault::busy(&no_place))?,
            token: permit::draw().map_err(|no_token| Fault::busy(&no_token))?,
        })
    }

    /// Goes on with a request whose turn has come.
    fn resume(&mut self, token: PermitToken) -> Result<Frame, Fault> {
        let (place, turn) = self.turns.take(&token).ok_or_else(Fault::no_turn)?;
        self.go_on(Drawn { token, place }, turn)
    }

    fn go_on(&mut self, drawn: Drawn, mut turn: Turn) -> Result<Frame, Fault> {
        let now_ns = self.tenant.board().now_ns();
        match turn.go_on(now_ns) {
            Now::Held { wait_us } => {
                let token = drawn.token;
                turn.take_place(&self.bounds.turns, self.holder)
                    .map_err(|no_place| Fault::busy(&no_place))?;
                self.turns.put(drawn, turn);
                Ok(Message::Held { token, wait_us }.encode())
            }
            Now::Decided(verdict) => Ok(match self.given(drawn, turn.caller(), verdict)? {
                Decided::Permit { token, waited_ms } => admitted(token, waited_ms),
                Decided::Refusal(refusal) => refused(&self.tenant, &refusal),
            }),
        }
    }

    /// What a verdict gives; a permit is held under its token.
    fn given(
        &mut self,
        drawn: Drawn,
        caller: &SeatedCaller,
        verdict: GateVerdict,
    ) -> Result<Decided, Fault> {
        let Drawn { token, place } = drawn;
        match verdict {
            GateVerdict::Admitted(pass) => {
                let mut permits = self.client.permits().lock();
                permits.hold(token, caller.permit(pass), place, u64::MAX);
                let waited_ms = whole_ms(pass.waited_ns);
                Ok(Decided::Permit { token, waited_ms })
            }
            GateVerdict::Refused(refusal) => Ok(Decided::Refusal(refusal)),
            GateVerdict::Stale => Err(Fault::stale()),
        }
    }

    fn exit(&mut self, token: &[u8; TOKEN], outcome: Outcome) -> Result<Frame, Fault> {
        if let Some(turn) = self.turns.take(token) {
            // It puts back what it has taken.
            drop(turn);
            return Ok(Message::Exited.encode());
        }
        let mut permits = self.client.permits().lock();
        let permit = permits.take(token, self.client.who.uid);
        drop(permits);
        let permit: ProxyPermit = permit.ok_or_else(Fault::no_permit)?;
        self.tenant.exit(permit, outcome);
        Ok(Message::Exited.encode())
    }
}

/// Checks what is asked for, apart from the arguments, which a frame that can be read has right.
fn check(ask: &EnterRequest<'_>) -> Result<(), Fault> {
    if ask.count == 0 || ask.count > COUNT_MAX {
        return Err(Fault::count(ask.count));
    }
    let wrong = |field| move |fault| Fault::name(field, fault);
    check_name(ask.resource.as_bytes()).map_err(wrong("resource"))?;
    for (field, name) in [("origin", ask.origin), ("context", ask.context)] {
        if !name.is_empty() {
            check_name(name.as_bytes()).map_err(wrong(field))?;
        }
    }
    Ok(())
}

fn resolved(found: FoundSlot) -> Frame {
    let resolved = Message::Resolved {
        slot: found.slot.index,
        generation: found.slot.generation,
        overflow: u16::from(found.overflow),
    };
    resolved.encode()
}

fn admitted(token: PermitToken, waited_ms: u32) -> Frame {
    Message::Verdict(EnterAnswer::Admitted { token, waited_ms }).encode()
}

fn refused(tenant: &Tenant, refusal: &Refusal) -> Frame {
    let limits = tenant.directory().rule_index();
    let refused = EnterAnswer::Refused {
        kind: refusal.kind,
        reason: refusal.reason,
        retry: refusal.retry,
        rule: refusal.rule,
        retry_after_ms: whole_ms(refusal.retry_after_ns),
        value: refusal.value,
        limit: refusal.limit,
        id: limits.id(refusal.rule).unwrap_or_default(),
    };
    Message::Verdict(refused).encode()
}

/// ms, rounded up.
fn whole_ms(ns: u64) -> u32 {
    u32::try_from(ns.div_ceil(1_000_000)).unwrap_or(u32::MAX)
}

impl Drop for Connection {
    fn drop(&mut self) {
        let permits = self.client.permits().lock().take_ended(u64::MAX);
        for permit in permits {
            self.tenant.exit(permit, Outcome::Ignore);
        }
        self.tenant.clients().remove(self.ticket);
    }
}
