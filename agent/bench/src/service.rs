//! A service at a third of what a CPU gives: one thread that answers over loopback TCP and takes a fixed piece of work for each
//! request, and requests that come when they are due, whatever became of those before.

use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::figure::NoFigure;
use crate::timing::quantile;

/// CPU time of the work for one request.
const WORK: Duration = Duration::from_micros(300);
/// Time from one request to the next.
const EVERY: Duration = Duration::from_millis(1);
/// Requests of one run: a second.
const REQUESTS: u32 = 1000;
/// A request and an answer.
type Message = [u8; 8];

/// What the service's callers saw in one run, and what it took, µs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// From the moment a request was due to its answer.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// CPU time of the service and its callers for one request.
    pub(crate) cpu: f64,
}

/// The work for one request, so many steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work(u32);

impl Work {
    /// As many steps as take the time of the work here.
    pub(crate) fn measured() -> Self {
        const STEPS: u32 = 2_000_000;
        let begun = Instant::now();
        Self(STEPS).run();
        let steps = f64::from(STEPS) * WORK.as_secs_f64() / begun.elapsed().as_secs_f64();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float turns into an integer saturating"
        )]
        Self(steps as u32)
    }

    fn run(self) {
        let sum = (0..self.0).fold(1_u64, |sum, step| {
            sum.wrapping_mul(31) ^ u64::from(black_box(step))
        });
        black_box(sum);
    }
}

/// Runs the service for a second.
pub(crate) fn run(work: Work) -> Result<Seen, NoFigure> {
    let refused = NoFigure::kernel("a service on the loopback");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(&refused)?;
    let mut caller =
        TcpStream::connect(listener.local_addr().map_err(&refused)?).map_err(&refused)?;
    let (service, _address) = listener.accept().map_err(&refused)?;
    for end in [&caller, &service] {
        end.set_nodelay(true).map_err(&refused)?;
    }
    let answers = caller.try_clone().map_err(&refused)?;
    let cpu_before = cpu();
    let begun = Instant::now();
    let service = std::thread::spawn(move || serve(service, work));
    let answers = std::thread::spawn(move || wait_for(answers, begun));
    for number in 0..REQUESTS {
        let due = EVERY.saturating_mul(number);
        while let Some(left) = due
            .checked_sub(begun.elapsed())
            .filter(|left| !left.is_zero())
        {
            std::thread::park_timeout(left);
        }
        caller.write_all(&Message::default()).map_err(&refused)?;
    }
    let times_us = answers.join();
    drop(caller);
    let served = service.join();
    let (Ok(mut times_us), Ok(())) = (times_us, served) else {
        return Err(NoFigure::Wrong(
            "a thread of the service panicked".to_owned(),
        ));
    };
    if times_us.len() != REQUESTS as usize {
        return Err(NoFigure::Wrong("the service did not answer".to_owned()));
    }
    Ok(Seen {
        p50: quantile(&mut times_us, 0.5),
        p99: quantile(&mut times_us, 0.99),
        cpu: cpu().saturating_sub(cpu_before).as_secs_f64() * 1e6 / f64::from(REQUESTS),
    })
}

/// CPU time of this process.
fn cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

fn serve(mut callers: TcpStream, work: Work) {
    let mut message = Message::default();
    while callers.read_exact(&mut message).is_ok() {
        work.run();
        if callers.write_all(&message).is_err() {
            return;
        }
    }
}

/// How long after it was due each request was answered, µs.
fn wait_for(mut service: TcpStream, begun: Instant) -> Vec<f64> {
    let mut message = Message::default();
    let mut times_us = Vec::new();
    for number in 0..REQUESTS {
        if service.read_exact(&mut message).is_err() {
            break;
        }
        let due = EVERY.saturating_mul(number);
        times_us.push(begun.elapsed().saturating_sub(due).as_secs_f64() * 1e6);
    }
    times_us
}
