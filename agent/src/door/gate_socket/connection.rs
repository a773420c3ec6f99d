//! One connection: reads frames and answers each, in order.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tidegate_abi::check_name;
use tidegate_abi::decision::Outcome;
use tidegate_abi::message::{Answer, Ask, Frame, Message, TOKEN};
use tidegate_limits::window::COUNT_MAX;
use tidegate_segment::gate::{Refusal, Request, Verdict};
use tokio_seqpacket::UnixSeqpacket;

use super::fault::Fault;
use super::hello::{self, Hello};
use super::wire::Wire;
use crate::door::Context;
use crate::door::peer::Peer;
use crate::tenant::Tenant;
use crate::tenant::client::{Client, Ticket, Who};
use crate::tenant::directory::Found;
use crate::tenant::limit::Part;
use crate::tenant::permit::Permits;
use crate::tenant::seat_life::{Seated, process_name};

/// Most names that a connection remembers; past it they are forgotten at once and found again.
const NAMES_MAX: usize = 4096;

/// Serves a connection until its other end closes.
pub(super) async fn serve(
    context: &Context,
    socket: UnixSeqpacket,
    hello_deadline: Duration,
) -> io::Result<()> {
    let mut wire = Wire::new(socket);
    let first = Box::pin(first_frame(&mut wire, hello_deadline));
    let Some(hello) = first.await? else {
        return Ok(());
    };
    let mut connection = Connection::begin(context, &wire, hello)?;
    connection.greet(&mut wire);
    match connection.seated {
        Some(_) => wire.send_with(context.tenant.files()).await?,
        None => wire.send().await?,
    }
    while wire.receive().await? {
        connection.reply(&mut wire).await;
        wire.send().await?;
    }
    Ok(())
}

/// Waits for the hello; `None` if the connection ended before it. A peer that sends anything else is
/// told what is wrong.
async fn first_frame(wire: &mut Wire, deadline: Duration) -> io::Result<Option<Hello>> {
    let hello = match tokio::time::timeout(deadline, wire.receive()).await {
        Ok(Ok(true)) => wire.message().and_then(Hello::of),
        Ok(Ok(false)) => return Ok(None),
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

/// A request that is being decided.
type Held<'c> = Pin<Box<dyn Future<Output = Result<Answer, Fault>> + Send + 'c>>;

/// What a connection holds. Dropping it gives all of that back.
struct Connection {
    tenant: Arc<Tenant>,
    client: Arc<Client>,
    ticket: Ticket,
    /// Ends the seat when it is dropped.
    seated: Option<Seated>,
    permits: Permits,
    names: HashMap<Box<str>, Found>,
}

impl Connection {
    fn begin(context: &Context, wire: &Wire, hello: Hello) -> io::Result<Self> {
        let peer = Peer::of(wire.socket())?;
        let seated = hello.seat(context, wire.socket(), peer);
        let (ticket, client) = context.tenant.clients().add(Who {
            pid: peer.pid,
            uid: peer.uid,
            name: process_name(peer.pid).unwrap_or_default(),
            seat: seated.as_ref().map(|seated| seated.seat),
        });
        find_scope(context, &client);
        Ok(Self {
            tenant: Arc::clone(&context.tenant),
            client,
            ticket,
            seated,
            permits: Permits::default(),
            names: HashMap::new(),
        })
    }

    /// Puts the welcome in place.
    fn greet(&self, wire: &mut Wire) {
        let who = &self.client.who;
        wire.put(hello::welcome(&self.tenant, who.seat, self.client.scope()));
    }

    /// Puts the answer to the frame that was received in place; one that asks for a permit may be held.
    async fn reply(&mut self, wire: &mut Wire) {
        let asked = match wire.message() {
            Ok(Message::Enter(ask)) => Some(self.held(ask).await),
            _ => None,
        };
        match asked {
            Some(answer) => wire.put(verdict(answer)),
            None => self.reply_at_once(wire),
        }
    }

    fn reply_at_once(&mut self, wire: &mut Wire) {
        let answer = wire.message().and_then(|frame| self.answer(frame));
        wire.put(answer.unwrap_or_else(|fault| fault.frame()));
    }

    fn answer(&mut self, frame: Message<'_>) -> Result<Frame, Fault> {
        match frame {
            Message::Exit { token, outcome } => self.exit(&token, outcome),
            Message::Resolve { name } => {
                let Found { slot, overflow } = self.resolve("name", name)?;
                let resolved = Message::Resolved {
                    slot: slot.index,
                    generation: slot.generation,
                    overflow: u16::from(overflow),
                };
                Ok(resolved.encode())
            }
            Message::Hello { .. } => Err(Fault::second_hello()),
            Message::Welcome(_)
            | Message::Resolved { .. }
            | Message::Enter(_)
            | Message::Verdict(_)
            | Message::Exited
            | Message::Fault { .. } => Err(Fault::not_a_question()),
        }
    }

    fn resolve(&mut self, field: &str, name: &str) -> Result<Found, Fault> {
        if let Some(found) = self.names.get(name) {
            return Ok(*found);
        }
        check_name(name.as_bytes()).map_err(|fault| Fault::name(field, fault))?;
        let found = self.tenant.directory().resolve(name);
        // A name that shares the overflow resource may get a slot of its own by a later rule set.
        if !found.overflow {
            if self.names.len() >= NAMES_MAX {
                self.names.clear();
            }
            self.names.insert(Box::from(name), found);
        }
        Ok(found)
    }

    /// Asks the gate, on the heap: most frames ask for nothing that may be held.
    fn held<'c>(&'c mut self, ask: Ask<'c>) -> Held<'c> {
        Box::pin(self.enter(ask))
    }

    async fn enter(&mut self, ask: Ask<'_>) -> Result<Answer, Fault> {
        if ask.count == 0 || ask.count > COUNT_MAX {
            return Err(Fault::count(ask.count));
        }
        if !ask.origin.is_empty() {
            check_name(ask.origin.as_bytes()).map_err(|fault| Fault::name("origin", fault))?;
        }
        let found = self.resolve("resource", ask.resource)?;
        let token = self.permits.draw().map_err(Fault::cannot_hold)?;
        let request = Request {
            count: ask.count,
            direction: ask.direction,
            class: ask.class,
            origin: self
                .tenant
                .name((ask.resource, found.slot), Part::Origin, ask.origin),
            ..Request::default()
        };
        let scope = self.client.scope();
        match self.tenant.enter(scope, found.slot, request).await {
            Verdict::Admitted(pass) => {
                self.permits
                    .hold(token, pass, self.client.who.uid, u64::MAX);
                self.client.set_held(self.permits.len());
                Ok(Answer::Admitted {
                    token,
                    waited_ms: u32::try_from(pass.waited_ns.div_ceil(1_000_000))
                        .unwrap_or(u32::MAX),
                })
            }
            Verdict::Refused(refusal) => Ok(refused(&refusal)),
            Verdict::Stale => {
                self.names.clear();
                Err(Fault::stale())
            }
        }
    }

    fn exit(&mut self, token: &[u8; TOKEN], outcome: Outcome) -> Result<Frame, Fault> {
        let pass = self.permits.take(token, self.client.who.uid);
        self.tenant
            .exit(pass.ok_or_else(Fault::no_permit)?, outcome);
        self.client.set_held(self.permits.len());
        Ok(Message::Exited.encode())
    }
}

fn verdict(answer: Result<Answer, Fault>) -> Frame {
    match answer {
        Ok(answer) => Message::Verdict(answer).encode(),
        Err(fault) => fault.frame(),
    }
}

/// Looks for the scope of the client's cgroup beside the connection: a new one is known with the next
/// tick only. Until then the client belongs to the host alone, and nobody waits.
fn find_scope(context: &Context, client: &Arc<Client>) {
    if client.who.pid == 0 {
        return;
    }
    let (client, tenant) = (Arc::clone(client), Arc::clone(&context.tenant));
    let scopes = Arc::clone(&context.scopes);
    tokio::task::spawn_blocking(move || {
        let scope = scopes.scope_of(client.who.pid);
        client.set_scope(scope);
        if let Some(seat) = client.who.seat {
            tenant.seats().move_to_scope(seat, scope);
        }
    });
}

fn refused(refusal: &Refusal) -> Answer {
    let ms = refusal.retry_after_ns.div_ceil(1_000_000);
    Answer::Refused {
        kind: refusal.kind,
        reason: refusal.reason,
        retry: refusal.retry,
        rule: refusal.rule,
        retry_after_ms: u32::try_from(ms).unwrap_or(u32::MAX),
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        for pass in self.permits.take_ended(u64::MAX) {
            self.tenant.exit(pass, Outcome::Ignore);
        }
        self.tenant.clients().remove(self.ticket);
    }
}
