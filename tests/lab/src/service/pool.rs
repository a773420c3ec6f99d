//! One thread reads and asks the guard; workers take admitted requests from its queue.

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::guard::Pass;
use super::http::{self, Asked, Wanted};

use super::Service;
use crate::machine::readiness::Readiness;

/// The listener's number among the sockets; connections count from the next one.
const LISTENER: u64 = 0;
/// Longest wait of the reading thread; it has nothing else to do.
const IDLE: Duration = Duration::from_secs(1);

/// An admitted request on its way to a worker.
struct Job {
    stream: Arc<TcpStream>,
    pass: Pass,
    wanted: Wanted,
}

/// A connection as the reading thread sees it.
struct Connection {
    stream: Arc<TcpStream>,
    unread: Vec<u8>,
}

/// Serves until it is killed.
///
/// # Errors
/// The listener or epoll does not work.
pub(super) fn serve(
    listener: &TcpListener,
    service: &Arc<Service>,
    workers: usize,
) -> io::Result<()> {
    let (queue, jobs) = channel();
    let jobs = Arc::new(Mutex::new(jobs));
    for _worker in 0..workers {
        let (service, jobs) = (Arc::clone(service), Arc::clone(&jobs));
        std::thread::Builder::new().spawn(move || work(&service, &jobs))?;
    }
    listener.set_nonblocking(true)?;
    let mut readiness = Readiness::new()?;
    readiness.add(listener, LISTENER)?;
    let mut reader = Reader {
        service: Arc::clone(service),
        connections: HashMap::new(),
        next: LISTENER + 1,
        queue,
    };
    let mut ready = Vec::new();
    loop {
        ready.clear();
        ready.extend(readiness.wait(IDLE)?);
        for number in ready.iter().copied() {
            if number == LISTENER {
                reader.accept(listener, &readiness)?;
            } else if reader.read(number).is_err() {
                // The connection has ended or spoke no HTTP; dropping it closes it.
                reader.connections.remove(&number);
            }
        }
    }
}

struct Reader {
    service: Arc<Service>,
    connections: HashMap<u64, Connection>,
    next: u64,
    queue: Sender<Job>,
}

impl Reader {
    fn accept(&mut self, listener: &TcpListener, readiness: &Readiness) -> io::Result<()> {
        loop {
            let stream = match listener.accept() {
                Ok((stream, _peer)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(_gone_already) => continue,
            };
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            readiness.add(&stream, self.next)?;
            let connection = Connection {
                stream: Arc::new(stream),
                unread: Vec::new(),
            };
            self.connections.insert(self.next, connection);
            self.next += 1;
        }
    }

    /// Reads what a connection has, and answers or queues the requests that are whole.
    fn read(&mut self, number: u64) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&number) else {
            return Ok(());
        };
        let mut chunk = [0; 4096];
        match (&*connection.stream).read(&mut chunk) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => connection
                .unread
                .extend_from_slice(chunk.get(..count).unwrap_or(&[])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
        while let Some(asked) = http::take(&mut connection.unread)? {
            answer_or_queue(&self.service, &connection.stream, asked, &self.queue)?;
        }
        Ok(())
    }
}

fn answer_or_queue(
    service: &Service,
    stream: &Arc<TcpStream>,
    asked: Asked,
    queue: &Sender<Job>,
) -> io::Result<()> {
    if let Some(answer) = service.unguarded(asked.wanted) {
        return (&**stream).write_all(&answer);
    }
    match service.guard.enter(asked.wanted) {
        Ok(pass) => {
            service.counts.admitted();
            let job = Job {
                stream: Arc::clone(stream),
                pass,
                wanted: asked.wanted,
            };
            queue.send(job).map_err(io::Error::other)
        }
        Err(refusal) => {
            service.counts.refused();
            (&**stream).write_all(&refusal)
        }
    }
}

fn work(service: &Service, jobs: &Mutex<Receiver<Job>>) {
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job {
            stream,
            pass,
            wanted,
        }) = job
        else {
            return;
        };
        let end = service.work(wanted);
        // Whoever asked may have gone meanwhile.
        let _gone: io::Result<()> = (&*stream).write_all(&end.answer());
        service.guard.ended(pass, end);
    }
}
