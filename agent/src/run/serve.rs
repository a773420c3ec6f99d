//! The life of an agent: serve, reload, show, end.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::assembly::Assembly;
use super::{RunEnd, ready, system};
use crate::control::Ticking;
use crate::door::handed::HandedSockets;
use crate::door::{DOORS, Doors};
use crate::host::AgentState;
use crate::recording::Recorder;

/// Time between two looks for the first tick.
const FIRST_TICK_LOOK: Duration = Duration::from_millis(10);

/// Looks for it before the service manager is told that the agent serves.
const FIRST_TICK_LOOKS: u32 = 200;

/// Serves until a signal says to end, then cleans up.
pub(super) async fn serve(assembled: Assembly) -> Result<(), RunEnd> {
    let Assembly {
        keeper: mut kept,
        doors,
        ticking,
        recorder,
        mut feed,
        sockets,
    } = assembled;
    let mut end = End::new()?;
    let mut reload = listen(SignalKind::hangup())?;
    let mut tenth = every(Duration::from_millis(100));
    let mut watchdog = ready::watchdog().map(every);
    let mut doors = open(doors, Arc::clone(kept.context()));
    kept.tell_start(&sockets.directory);
    let mut first_tick = Box::pin(first_tick(Arc::clone(kept.context())));
    let mut ready = false;
    loop {
        tokio::select! {
            // Rules that change all the time must not keep the others from their turn.
            biased;
            () = end.told() => break,
            ended = &mut doors => return Err(doors_ended(ended)),
            () = turn(&mut watchdog) => kept.tell_alive(),
            () = &mut first_tick, if !ready => {
                ready = true;
                ready::ready();
            }
            _ = tenth.tick() => Box::pin(kept.tend(&mut feed)).await,
            () = kept.next_end() => Box::pin(kept.end_rules()).await,
            _ = reload.recv() => Box::pin(kept.reload(&mut feed)).await,
            () = feed.changed() => Box::pin(kept.reload_rules(&feed)).await,
        }
    }
    ready::stopping();
    kept.tell_end();
    doors.abort();
    clean_up(&sockets, ticking, recorder);
    Ok(())
}

/// Sockets first, so that callers see the end at once.
fn clean_up(sockets: &Sockets, ticking: Ticking, recorder: Option<Recorder>) {
    sockets.remove();
    ticking.stop();
    if let Some(recorder) = recorder {
        recorder.stop();
    }
}

/// The files of the sockets.
#[derive(Debug)]
pub(super) struct Sockets {
    pub(super) directory: PathBuf,
    /// Those that the service manager has made.
    pub(super) handed: HandedSockets,
}

impl Sockets {
    /// Removes those that the agent has made.
    pub(super) fn remove(&self) {
        let names = DOORS.iter().map(|door| door.file_name);
        for name in names.filter(|name| !self.handed.has_taken(name)) {
            remove(&self.directory.join(name));
        }
    }
}

fn open(doors: Doors, context: Arc<AgentState>) -> JoinHandle<()> {
    tokio::spawn(doors.serve(context))
}

/// The doors answer until they are dropped; anything else is a fault.
fn doors_ended(ended: Result<(), JoinError>) -> RunEnd {
    let error = match ended {
        Ok(()) => io::Error::other("they stopped by themselves"),
        Err(error) => io::Error::other(error),
    };
    system("the doors")(error)
}

/// Waits for the first tick: from then on adaptive limits are in force. A machine on which none comes is served all the same.
async fn first_tick(context: Arc<AgentState>) {
    for _look in 0..FIRST_TICK_LOOKS {
        if context.control.snapshot().ticks > 0 {
            return;
        }
        tokio::time::sleep(FIRST_TICK_LOOK).await;
    }
}

fn every(time: Duration) -> Interval {
    let mut interval = interval(time);
    interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
    interval
}

/// Waits for the next turn, for ever where there is none.
async fn turn(interval: &mut Option<Interval>) {
    match interval {
        Some(interval) => drop(interval.tick().await),
        None => std::future::pending().await,
    }
}

fn remove(socket: &Path) {
    match std::fs::remove_file(socket) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            tracing::warn!(event = "socket_left", %error, socket = %socket.display(), "cannot remove the socket");
        }
    }
}

fn listen(kind: SignalKind) -> Result<Signal, RunEnd> {
    signal(kind).map_err(system("cannot listen to signals"))
}

/// The signals that say to end.
#[derive(Debug)]
struct End {
    terminate: Signal,
    interrupt: Signal,
}

impl End {
    fn new() -> Result<Self, RunEnd> {
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    async fn told(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
