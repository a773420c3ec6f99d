//! The closed loop: so many callers, each of whom waits for an answer before the next request. It
//! finds out what a service can do at most.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::connection::{self, Connection};
use crate::machine::interrupt::Interrupt;
use crate::machine::readiness::Readiness;

/// Callers.
const CALLERS: u64 = 16;
/// Longest wait without a look at the interrupt.
const LOOK: Duration = Duration::from_millis(50);

/// What the callers got.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answers {
    /// Answers of any kind.
    pub count: u32,
    /// In so many seconds.
    pub seconds: f64,
}

/// Asks for `path` for as long as `length`.
///
/// # Errors
/// The service is gone, or the lab was told to end.
pub(crate) fn flood(
    address: SocketAddr,
    path: &str,
    keep_alive: bool,
    length: Duration,
    interrupt: &Interrupt,
) -> io::Result<Answers> {
    let text = connection::text(path, keep_alive);
    let mut readiness = Readiness::new()?;
    let mut callers = Vec::new();
    for number in 0..CALLERS {
        callers.push(call(address, number, &readiness)?);
    }
    let (began, mut count) = (Instant::now(), 0);
    let mut ready = Vec::new();
    while began.elapsed() < length {
        interrupt.check()?;
        ready.clear();
        ready.extend(readiness.wait(LOOK)?);
        for number in ready.iter().copied() {
            let place = usize::try_from(number).unwrap_or(usize::MAX);
            let Some(caller) = callers.get_mut(place) else {
                continue;
            };
            if caller.connecting {
                caller.connecting = false;
                readiness.connected(&caller.socket, number)?;
                caller.send(&text)?;
            } else if caller.receive()?.is_some() {
                count += 1;
                if keep_alive {
                    caller.send(&text)?;
                } else {
                    *caller = call(address, number, &readiness)?;
                }
            }
        }
    }
    Ok(Answers {
        count,
        seconds: began.elapsed().as_secs_f64(),
    })
}

fn call(address: SocketAddr, number: u64, readiness: &Readiness) -> io::Result<Connection> {
    let mut caller = Connection::begin(address)?;
    // Room to write is told at once where the connection is there already.
    caller.connecting = true;
    readiness.add_connecting(&caller.socket, number)?;
    Ok(caller)
}
