//! The service under load: HTTP/1.1, a fixed CPU time for each request, and a guard in front of it.
//!
//! | path | does |
//! |---|---|
//! | `/work` | the CPU work |
//! | `/critical`, `/sheddable` | the same, for callers of that class |
//! | `/other` | the same, under a resource of its own |
//! | `/slow` | the same, after waiting for something downstream, under a resource of its own |
//! | `/slow-shared` | the same, under the resource of `/work` |
//! | `/refuse` | refused by a rule: what a refusal costs |
//! | `/stats` | what the service has done, as JSON; not guarded |
//! | `/deploy`, `/downstream-dies`, `/downstream-lives` | what happens to the service from now on; not guarded |

mod accepting;
mod asynchronous;
mod counts;
mod guard;
mod http;
mod pool;
mod socket_guard;
mod toil;

use std::fs;
use std::io::{self, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::lab::Door;
use crate::law::Law;
use crate::machine::cpu;
use crate::machine::wait;
use counts::Counts;
pub(crate) use counts::Stats;
use guard::Guard;
use http::Wanted;
pub(crate) use toil::Event;
use toil::Toil;

/// How a service turns requests into work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// A thread reads, asks the guard and queues; a pool of workers does the work.
    Pool,
    /// Each worker accepts a connection, asks the guard and works; others wait in the kernel's
    /// accept queue.
    Accepting,
    /// One tokio thread accepts all at once; the work yields now and then.
    Async,
}

impl Kind {
    /// The word on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pool => "pool",
            Self::Accepting => "accepting",
            Self::Async => "async",
        }
    }
}

/// What the lab tells the service.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    #[arg(long)]
    pub kind: Kind,
    #[arg(long)]
    pub workers: usize,
    #[arg(long)]
    pub work_us: u64,
    /// Every so many requests one takes `long_us` of CPU time instead; 0 = none.
    #[arg(long, default_value_t = 0)]
    pub long_each: usize,
    #[arg(long, default_value_t = 0)]
    pub long_us: u64,
    /// How the guard asks the agent.
    #[arg(long, default_value = "memory")]
    pub door: Door,
    /// How long `/slow` waits.
    #[arg(long, default_value_t = 2000)]
    pub downstream_ms: u64,
    #[arg(long)]
    pub law: Law,
    /// CPU whose use the rival laws look at.
    #[arg(long)]
    pub cpu: usize,
    /// Resource that guards `/work`; `/slow` and `/refuse` add their names.
    #[arg(long)]
    pub resource: String,
    #[arg(long)]
    pub runtime_dir: Option<PathBuf>,
}

/// How long the service waits for a downstream that is dead.
const TIME_OUT: Duration = Duration::from_secs(1);

/// What all threads of the service share.
#[derive(Debug)]
struct Service {
    guard: Guard,
    counts: Arc<Counts>,
    toil: Toil,
    downstream: Duration,
}

/// How a request ended that was admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Done,
    /// What it asked downstream did not answer.
    TimedOut,
}

impl End {
    /// The answer to send.
    fn answer(self) -> Vec<u8> {
        match self {
            Self::Done => http::answer(200, "done\n"),
            Self::TimedOut => http::answer(504, "late\n"),
        }
    }
}

impl Service {
    /// The answer to a question that nobody guards.
    fn unguarded(&self, wanted: Wanted) -> Option<Vec<u8>> {
        match wanted {
            Wanted::Stats => {
                let stats = self.counts.stats(cpu::of_process());
                let body = serde_json::to_string(&stats).unwrap_or_default();
                Some(http::answer(200, &body))
            }
            Wanted::Event(event) => {
                self.toil.meet(event);
                Some(http::answer(200, "{}"))
            }
            Wanted::Work
            | Wanted::Critical
            | Wanted::Sheddable
            | Wanted::Other
            | Wanted::Slow
            | Wanted::SlowShared
            | Wanted::Refuse => None,
        }
    }

    /// How long a request waits for something downstream, and how it ends.
    fn downstream(&self, wanted: Wanted) -> (Duration, End) {
        if self.toil.is_downstream_dead() {
            return (TIME_OUT, End::TimedOut);
        }
        let waits = matches!(wanted, Wanted::Slow | Wanted::SlowShared);
        let wait = if waits {
            self.downstream
        } else {
            Duration::ZERO
        };
        (wait, End::Done)
    }

    /// Does what an admitted request asks for.
    fn work(&self, wanted: Wanted) -> End {
        let (wait, end) = self.downstream(wanted);
        if !wait.is_zero() {
            wait::pass(wait);
        }
        cpu::burn(self.toil.next());
        end
    }
}

/// Runs the service until it is killed. Its first line is its address.
///
/// # Errors
/// It cannot listen, or there is no agent.
#[expect(clippy::print_stdout, reason = "the lab reads the address")]
pub(crate) fn run(options: &Options) -> io::Result<()> {
    // Services of one group are told apart by the names of their processes.
    fs::write("/proc/self/comm", &options.resource)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let counts = Arc::new(Counts::default());
    let service = Arc::new(Service {
        guard: Guard::of(options, &counts, &listener)?,
        counts,
        toil: Toil::new(
            Duration::from_micros(options.work_us),
            (options.long_each > 0)
                .then(|| (options.long_each, Duration::from_micros(options.long_us))),
        ),
        downstream: Duration::from_millis(options.downstream_ms),
    });
    println!("{}", listener.local_addr()?);
    io::stdout().flush()?;
    match options.kind {
        Kind::Pool => pool::serve(&listener, &service, options.workers),
        Kind::Accepting => accepting::serve(&listener, &service, options.workers),
        Kind::Async => asynchronous::serve(listener, &service),
    }
}
