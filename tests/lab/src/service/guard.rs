//! What stands in front of the work: Tidegate's client, or a rival law in the service itself.

use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tidegate_abi::decision::Outcome;
use tidegate_client::{Class, Client, OnMissingAgent, Permit, Refused, Resource};

use super::counts::Counts;
use super::http::{self, Wanted};
use super::socket_guard::{SocketGuard, Token};
use super::{End, Options};
use crate::lab::Door;
use crate::law::Law;
use crate::machine::cpu::{self, Usage};
use crate::machine::wait;
use crate::rival::{Measured, Rival};

/// How often a rival law hears of the machine.
const TICK: Duration = Duration::from_millis(100);

/// The guard of a service.
#[derive(Debug)]
pub(super) enum Guard {
    /// Asks on the agent's pages.
    Tidegate(Box<Resources>),
    /// Asks the agent over a socket.
    Socket(Box<Asked>),
    /// Asks a rival law.
    Rival(Arc<Rivalled>),
}

/// One resource for each path.
#[derive(Debug)]
pub(super) struct Resources {
    work: Resource,
    other: Resource,
    slow: Resource,
    refuse: Resource,
    /// Keeps the connection.
    _client: Client,
}

/// A connection to the agent, and the resources' first name.
#[derive(Debug)]
pub(super) struct Asked {
    socket: SocketGuard,
    resource: String,
}

/// A rival law and what it is fed with.
#[derive(Debug)]
pub(super) struct Rivalled {
    began: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    rival: Box<dyn Rival>,
    inflight: u32,
}

/// An admitted request.
#[derive(Debug)]
pub(super) enum Pass {
    Tidegate(Permit),
    Socket(Token),
    Rival(Instant),
}

impl Guard {
    /// The guard that the lab asks for; Tidegate's is shown the listener.
    pub(super) fn of(
        options: &Options,
        counts: &Arc<Counts>,
        listener: &TcpListener,
    ) -> io::Result<Self> {
        if options.law == Law::Adaptive && options.door != Door::Memory {
            let dir = options.runtime_dir.as_deref();
            let dir = dir.ok_or_else(|| io::Error::other("a socket needs --runtime-dir"))?;
            return Ok(Self::Socket(Box::new(Asked {
                socket: SocketGuard::connect(options.door, dir)?,
                resource: options.resource.clone(),
            })));
        }
        if options.law == Law::Adaptive {
            let resources = Resources::connect(options, listener)?;
            return Ok(Self::Tidegate(Box::new(resources)));
        }
        let rival = Arc::new(Rivalled {
            began: Instant::now(),
            state: Mutex::new(State {
                rival: options.law.rival(),
                inflight: 0,
            }),
        });
        let (ticked, counts, cpu) = (Arc::clone(&rival), Arc::clone(counts), options.cpu);
        std::thread::Builder::new()
            .name("law".to_owned())
            .spawn(move || ticked.tick(cpu, &counts))?;
        Ok(Self::Rival(rival))
    }

    /// Asks for a request; a refusal is the answer to send.
    pub(super) fn enter(&self, wanted: Wanted) -> Result<Pass, Vec<u8>> {
        match self {
            Self::Tidegate(resources) => resources.enter(wanted),
            Self::Socket(asked) => asked.enter(wanted),
            Self::Rival(rival) => rival.enter(),
        }
    }

    /// An admitted request has been answered.
    pub(super) fn ended(&self, pass: Pass, end: End) {
        match (self, pass, end) {
            (_, Pass::Tidegate(permit), End::Done) => permit.ok(),
            (_, Pass::Tidegate(permit), End::TimedOut) => permit.error(),
            (Self::Socket(asked), Pass::Socket(token), End::Done) => {
                asked.socket.exit(token, Outcome::Ok);
            }
            (Self::Socket(asked), Pass::Socket(token), End::TimedOut) => {
                asked.socket.exit(token, Outcome::Error);
            }
            (Self::Rival(rival), Pass::Rival(entered), _end) => rival.ended(entered),
            (Self::Tidegate(_) | Self::Socket(_) | Self::Rival(_), _other, _end) => {}
        }
    }
}

/// The resource of what is wanted, by what follows its first name.
const fn ending(wanted: Wanted) -> &'static str {
    match wanted {
        Wanted::Other => "-other",
        Wanted::Slow => "-slow",
        Wanted::Refuse => "-refuse",
        Wanted::Work
        | Wanted::Critical
        | Wanted::Sheddable
        | Wanted::SlowShared
        | Wanted::Stats
        | Wanted::Event(_) => "",
    }
}

const fn class(wanted: Wanted) -> Class {
    match wanted {
        Wanted::Critical => Class::Critical,
        Wanted::Sheddable => Class::Sheddable,
        Wanted::Work
        | Wanted::Other
        | Wanted::Slow
        | Wanted::SlowShared
        | Wanted::Refuse
        | Wanted::Stats
        | Wanted::Event(_) => Class::Normal,
    }
}

impl Asked {
    fn enter(&self, wanted: Wanted) -> Result<Pass, Vec<u8>> {
        let resource = format!("{}{}", self.resource, ending(wanted));
        let asked = self.socket.enter(&resource, class(wanted));
        asked.map(Pass::Socket)
    }
}

impl Resources {
    fn connect(options: &Options, listener: &TcpListener) -> io::Result<Self> {
        let mut builder = Client::builder().on_missing_agent(OnMissingAgent::Fail);
        if let Some(dir) = &options.runtime_dir {
            builder = builder.runtime_dir(dir);
        }
        let client = builder.connect().map_err(io::Error::other)?;
        client.watch_listener(listener).map_err(io::Error::other)?;
        let name = &options.resource;
        let resource = |name: &str| client.resource(name).map_err(io::Error::other);
        Ok(Self {
            work: resource(name)?,
            other: resource(&format!("{name}-other"))?,
            slow: resource(&format!("{name}-slow"))?,
            refuse: resource(&format!("{name}-refuse"))?,
            _client: client,
        })
    }

    fn enter(&self, wanted: Wanted) -> Result<Pass, Vec<u8>> {
        let resource = match ending(wanted) {
            "-other" => &self.other,
            "-slow" => &self.slow,
            "-refuse" => &self.refuse,
            _none => &self.work,
        };
        let refusal =
            |refused: Refused| http::refusal(refused.http_status(), refused.retry_after_s());
        let class = class(wanted);
        let asked = if class == Class::Normal {
            resource.enter()
        } else {
            resource.ask().class(class).enter()
        };
        asked.map(Pass::Tidegate).map_err(refusal)
    }
}

impl Rivalled {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn enter(&self) -> Result<Pass, Vec<u8>> {
        let entered = Instant::now();
        let mut state = self.state();
        let inflight = state.inflight;
        if state.rival.admits(self.now_s(), inflight) {
            state.inflight = inflight.saturating_add(1);
            return Ok(Pass::Rival(entered));
        }
        Err(http::refusal(503, 1))
    }

    fn ended(&self, entered: Instant) {
        let mut state = self.state();
        let rt_s = entered.elapsed().as_secs_f64();
        state.inflight = state.inflight.saturating_sub(1);
        let inflight = state.inflight;
        state.rival.ended(self.now_s(), rt_s, inflight);
    }

    /// Tells the law of the machine, for ever.
    fn tick(&self, on: usize, counts: &Counts) {
        let (mut usage, mut used, mut at) = (Usage::of(on), cpu::of_process(), Instant::now());
        let (mut refused, mut was_refusing) = (counts.refused_so_far(), false);
        loop {
            wait::pass(TICK);
            let (usage_now, used_now) = (Usage::of(on), cpu::of_process());
            let length_s = at.elapsed().as_secs_f64();
            let own = used_now.saturating_sub(used).as_secs_f64() / length_s;
            // The kernel counts a CPU's idle time in steps of 10 ms; the own use is exact.
            let busy = usage_now.busy_since(&usage).max(own).min(1.0);
            (usage, used, at) = (usage_now, used_now, Instant::now());
            self.state().rival.tick(Measured { busy });
            let is_refusing = counts.refused_so_far() > refused;
            if is_refusing != was_refusing {
                counts.changed();
            }
            (refused, was_refusing) = (counts.refused_so_far(), is_refusing);
        }
    }
}
