//! The life of a seat: from a connected process to its death, or to the end of its socket.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tidegate_segment::board::Process;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;

use super::Tenant;
use super::seats::Seat;
use crate::places::Full;

/// How long a seat rests whose socket ended while its process lives: a thread that was held up inside
/// a decision must have gone on and found its seat taken away.
const REST: Duration = Duration::from_secs(10);

/// Most seats of one process. A seat rests after its connection ended, so a process that connects
/// again and again would else take them all from the others.
pub const SEATS_OF_PROCESS: usize = 16;

/// Why a process gets no seat.
#[derive(Debug, thiserror::Error)]
pub enum NoSeat {
    /// It lives in a pid namespace that the agent cannot see.
    #[error("its pid cannot be seen from the agent's pid namespace")]
    Invisible,
    /// It cannot be watched.
    #[error("its death cannot be watched: {0}")]
    Unwatched(std::io::Error),
    /// It has, or had a moment ago, as many as one process may.
    #[error("it has {SEATS_OF_PROCESS} seats already; connect once for a process")]
    TooMany,
    /// Its user has as many as one user may.
    #[error(
        "user {uid} may have {most} seats and has no more left; end some of its processes, or raise pages.max_seats and restart"
    )]
    OfUser {
        /// The user.
        uid: u32,
        /// Its share.
        most: usize,
    },
    /// All seats are taken.
    #[error("all seats are taken; raise pages.max_seats and restart")]
    Full,
}

/// A seat that a connection holds. Dropping it is the end of the connection.
#[derive(Debug)]
pub struct SeatGuard {
    /// The seat.
    pub seat: Seat,
    /// Its other half ends when this is dropped.
    _end: oneshot::Sender<()>,
}

impl SeatGuard {
    /// A seat whose end is told by dropping `end`.
    pub(super) const fn new(seat: Seat, end: oneshot::Sender<()>) -> Self {
        Self { seat, _end: end }
    }
}

/// Seats a process and watches it from now on. `pidfd` is the peer's as the socket knows it, where the
/// kernel tells (6.5 and later).
///
/// # Errors
/// Why it gets no seat; it can still ask over the socket.
pub fn seat(
    tenant: &Arc<Tenant>,
    process: Process,
    pidfd: Option<OwnedFd>,
) -> Result<SeatGuard, NoSeat> {
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or(NoSeat::Invisible)?;
    let pidfd = match pidfd {
        Some(pidfd) => pidfd,
        None => pidfd_open(pid, PidfdFlags::NONBLOCK)
            .map_err(|errno| NoSeat::Unwatched(errno.into()))?,
    };
    let death = watchable(pidfd).map_err(NoSeat::Unwatched)?;
    let seat = tenant.seats().take(process).map_err(|full| match full {
        Full::All => NoSeat::Full,
        Full::User => NoSeat::OfUser {
            uid: process.uid,
            most: tenant.seats().of_user(),
        },
        Full::Process => NoSeat::TooMany,
    })?;
    tenant.ledger().write_header();
    let name = process_name(process.pid).unwrap_or_default();
    tenant.seats().name_service(seat, &name);
    let Process { pid, uid, .. } = process;
    tracing::debug!(
        event = "client_came",
        kept = true,
        uid,
        pid,
        name,
        "a service maps the pages"
    );
    let (end, ended) = oneshot::channel();
    tokio::spawn(watch(Arc::clone(tenant), seat, process, death, ended));
    Ok(SeatGuard::new(seat, end))
}

/// The handle of a process that lives and began at that time; `None` if it is gone, or another has its pid.
pub fn alive(process: &Process) -> Option<OwnedFd> {
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw)?;
    let pidfd = pidfd_open(pid, PidfdFlags::NONBLOCK).ok()?;
    // After the handle was opened: what is read is of the process that it is of, or of none.
    let same = process.start != 0 && start_time(process.pid) == Some(process.start);
    (same && lives(&pidfd)).then_some(pidfd)
}

/// Whether a process has not ended.
pub fn lives(pidfd: &OwnedFd) -> bool {
    let mut ended = [PollFd::new(pidfd, PollFlags::IN)];
    poll(&mut ended, Some(&Timespec::default())) == Ok(0)
}

/// Watches a process that keeps its seat from the life before, from now on.
///
/// # Errors
/// It cannot be watched; its seat ends then.
pub fn keep(
    tenant: &Arc<Tenant>,
    seat: Seat,
    process: Process,
    pidfd: OwnedFd,
) -> std::io::Result<()> {
    let death = watchable(pidfd)?;
    let name = process_name(process.pid).unwrap_or_default();
    tenant.seats().name_service(seat, &name);
    let ended = tenant.kept().keep(seat, process);
    tokio::spawn(watch(Arc::clone(tenant), seat, process, death, ended));
    Ok(())
}

#[expect(
    deprecated,
    reason = "an OwnedFd keeps its descriptor open; the form that replaces this one is unsafe"
)]
fn watchable(pidfd: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(pidfd, Interest::READABLE)
}

async fn watch(
    tenant: Arc<Tenant>,
    seat: Seat,
    process: Process,
    death: AsyncFd<OwnedFd>,
    ended: oneshot::Receiver<()>,
) {
    tokio::select! {
        _dead = death.readable() => {}
        _ended = ended => {}
    }
    tell_gone(&tenant, seat, &process);
    tenant.kept().forget(seat);
    tenant.seats().revoke(seat);
    // A process that died closed its socket first; its death follows at once and ends the rest.
    let rest = tokio::time::timeout(REST, death.readable()).await;
    if rest.is_err() {
        tracing::debug!(
            event = "seat_ended",
            seat = seat.index,
            "a seat was given up by a process that lives on"
        );
    }
    tenant.seats().free(seat);
}

/// Logs that a service ended or closed its socket, with what it had in flight: that counts no more.
fn tell_gone(tenant: &Tenant, seat: Seat, process: &Process) {
    let board = tenant.board();
    let held = tenant
        .ledger()
        .seat_holds(board, seat.index, board.seat(seat.index));
    let Process { pid, uid, .. } = *process;
    tracing::debug!(
        event = "client_gone",
        kept = true,
        uid,
        pid,
        given_back = held,
        "a service is gone; what it had in flight is given back"
    );
}

/// Start time of a process, clock ticks since boot: with the pid it names a process for good.
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = read_small(&Path::new("/proc").join(pid.to_string()).join("stat"))?;
    // The name in parentheses may hold anything; the fields count from its end. Start time is the
    // 22nd field, the name the second.
    let (_name, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Effective user of a process.
pub fn effective_user(pid: u32) -> Option<u32> {
    let status = read_small(&Path::new("/proc").join(pid.to_string()).join("status"))?;
    // Real, effective, saved, of the file system. The name is the first line and holds no newline.
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Name of a process, for people. It may hold anything, escape sequences of terminals too; what is no character to
/// print is `?`.
pub fn process_name(pid: u32) -> Option<String> {
    let name = read_small(&Path::new("/proc").join(pid.to_string()).join("comm"))?;
    Some(name.trim_end().replace(char::is_control, "?"))
}

fn read_small(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Instant;

    use tidegate_abi::geometry::Geometry;

    use super::*;
    use crate::tenant::tests::tenant;

    fn process(pid: u32) -> Process {
        Process {
            pid,
            start: start_time(pid).unwrap_or(0),
            uid: 0,
            scope: 0,
        }
    }

    async fn until(tenant: &Tenant, seat: Seat, live: bool) {
        let begin = Instant::now();
        while tenant.board().seat(seat.index).live != live {
            assert!(
                begin.elapsed() < Duration::from_secs(5),
                "no change in time"
            );
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_death_takes_the_seat_away_and_frees_it() {
        let tenant = Arc::new(tenant(Geometry::new(8, 2, 2, 2).unwrap()));
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let seated = seat(&tenant, process(child.id()), None).unwrap();
        assert!(matches!(
            seat(&tenant, process(child.id()), None),
            Err(NoSeat::Full)
        ));
        until(&tenant, seated.seat, true).await;
        child.kill().unwrap();
        until(&tenant, seated.seat, false).await;
        let begin = Instant::now();
        let again = loop {
            match seat(&tenant, process(std::process::id()), None) {
                Ok(again) => break again,
                Err(no_seat) => assert!(begin.elapsed() < REST / 2, "{no_seat}"),
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(again.seat.index, seated.seat.index);
        child.wait().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn an_ended_socket_revokes_and_the_seat_rests() {
        let tenant = Arc::new(tenant(Geometry::new(8, 2, 2, 2).unwrap()));
        let me = process(std::process::id());
        let seated = seat(&tenant, me, None).unwrap();
        let first = seated.seat;
        drop(seated);
        until(&tenant, first, false).await;
        assert!(matches!(seat(&tenant, me, None), Err(NoSeat::Full)));
        tokio::time::sleep(REST + Duration::from_millis(1)).await;
        let again = seat(&tenant, me, None).unwrap();
        assert_eq!(again.seat.index, first.index);
    }

    #[tokio::test]
    async fn a_process_that_connects_on_and_on_leaves_seats_to_others() {
        let tenant = Arc::new(tenant(Geometry::new(8, 64, 2, 2).unwrap()));
        // Seat 0 is this process's own, as the agent; these two are others by their start times.
        let me = process(std::process::id());
        let [busy, other] = [1, 2].map(|later| Process {
            start: me.start + later,
            ..me
        });
        for _connection in 0..SEATS_OF_PROCESS {
            drop(seat(&tenant, busy, None).unwrap());
        }
        assert!(matches!(seat(&tenant, busy, None), Err(NoSeat::TooMany)));
        let _other = seat(&tenant, other, None).unwrap();
    }

    #[tokio::test]
    async fn field_b3_the_processes_of_a_user_leave_seats_to_others() {
        let tenant = Arc::new(tenant(Geometry::new(8, 10, 2, 2).unwrap()));
        let mut children = Vec::new();
        let mut seats = Vec::new();
        let mut connect = |uid| {
            let child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
            let seated = seat(
                &tenant,
                Process {
                    uid,
                    ..process(child.id())
                },
                None,
            );
            children.push(child);
            seated.map(|seated| seats.push(seated))
        };
        for _process in 0..5 {
            connect(7).unwrap();
        }
        assert_eq!(
            connect(7).unwrap_err().to_string(),
            "user 7 may have 5 seats and has no more left; end some of its processes, or raise pages.max_seats and \
             restart"
        );
        for uid in [8, 0, 0, 0] {
            connect(uid).unwrap();
        }
        assert!(matches!(connect(0), Err(NoSeat::Full)));
        let counts: Vec<u64> = tenant
            .seats()
            .refused()
            .map(|(_full, count)| count)
            .collect();
        assert_eq!(counts, [1, 1, 0]);
        for mut child in children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[tokio::test]
    async fn an_invisible_process_gets_no_seat() {
        let tenant = Arc::new(tenant(Geometry::new(8, 2, 2, 2).unwrap()));
        let nobody = Process {
            pid: 0,
            ..process(std::process::id())
        };
        assert!(matches!(
            seat(&tenant, nobody, None),
            Err(NoSeat::Invisible)
        ));
    }

    #[test]
    fn start_times_are_told() {
        let own = start_time(std::process::id()).unwrap();
        assert!(own > 0);
        assert_eq!(start_time(std::process::id()), Some(own));
        assert_eq!(start_time(0), None);
    }
}
