//! What stands in front of the work: Tidegate's client, or a rival law in the service itself.

use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tidegate_client::{Class, Client, OnMissingAgent, Permit, Refused, Resource};

use super::Options;
use super::counts::Counts;
use super::http::{self, Wanted};
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
    /// Asks a rival law.
    Rival(Arc<Rivalled>),
}

/// One resource for each path.
#[derive(Debug)]
pub(super) struct Resources {
    work: Resource,
    slow: Resource,
    refuse: Resource,
    /// Keeps the connection.
    _client: Client,
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
    Rival(Instant),
}

impl Guard {
    /// The guard that the lab asks for; Tidegate's is shown the listener.
    pub(super) fn of(
        options: &Options,
        counts: &Arc<Counts>,
        listener: &TcpListener,
    ) -> io::Result<Self> {
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
            Self::Rival(rival) => rival.enter(),
        }
    }

    /// An admitted request has been answered.
    pub(super) fn ended(&self, pass: Pass) {
        match (self, pass) {
            (_, Pass::Tidegate(permit)) => permit.ok(),
            (Self::Rival(rival), Pass::Rival(entered)) => rival.ended(entered),
            (Self::Tidegate(_), Pass::Rival(_)) => {}
        }
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
            slow: resource(&format!("{name}-slow"))?,
            refuse: resource(&format!("{name}-refuse"))?,
            _client: client,
        })
    }

    fn enter(&self, wanted: Wanted) -> Result<Pass, Vec<u8>> {
        let resource = match wanted {
            Wanted::Work | Wanted::Critical | Wanted::Sheddable | Wanted::Stats => &self.work,
            Wanted::Slow => &self.slow,
            Wanted::Refuse => &self.refuse,
        };
        let refusal =
            |refused: Refused| http::refusal(refused.http_status(), refused.retry_after_s());
        let class = match wanted {
            Wanted::Critical => Class::Critical,
            Wanted::Sheddable => Class::Sheddable,
            Wanted::Work | Wanted::Slow | Wanted::Refuse | Wanted::Stats => {
                return resource.enter().map(Pass::Tidegate).map_err(refusal);
            }
        };
        let asked = resource.ask().class(class).enter();
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
