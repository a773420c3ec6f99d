//! The open loop: a request is sent when it is due, on an idle connection or a new one.

use std::io;
use std::time::{Duration, Instant};

use super::connection::{Connection, Texts};
use super::retry::{Again, Retries};
use super::schedule::{self, Arrival};
use super::{CONNECTIONS_MAX, Outcome, Record, Stream};
use crate::machine::interrupt::Interrupt;
use crate::machine::readiness::Readiness;

/// How long answers are waited for after the last request was due.
const TAIL: Duration = Duration::from_secs(1);
/// Longest wait without a look at the interrupt.
const LOOK: Duration = Duration::from_millis(50);

/// Sends what the streams ask for and returns what became of each request. `began` is told the
/// moment at which the load begins.
///
/// # Errors
/// A service is gone, no descriptors are left, or the lab was told to end.
pub(crate) fn generate(
    streams: &[Stream],
    seed: u64,
    interrupt: &Interrupt,
    began: impl FnOnce(Instant),
) -> io::Result<Vec<Record>> {
    let arrivals = schedule::arrivals(streams, seed)?;
    let lengths = streams
        .iter()
        .map(|stream| schedule::length_s(&stream.phases));
    let end = Duration::from_secs_f64(lengths.fold(0.0, f64::max));
    let mut load = Load::new(streams)?;
    began(load.began);
    let mut due = arrivals.iter().peekable();
    loop {
        let now = load.began.elapsed();
        while let Some(arrival) = due.next_if(|next| next.due_s <= now.as_secs_f64()) {
            load.send(arrival, 0)?;
        }
        load.retry(now, end)?;
        if now > end + TAIL {
            return Ok(load.records);
        }
        interrupt.check()?;
        let next = due.peek().map(|next| Duration::from_secs_f64(next.due_s));
        let next = next.into_iter().chain(load.retries.next()).min();
        let wait = next.map_or(LOOK, |next| next.saturating_sub(load.began.elapsed()));
        load.receive(wait.min(LOOK))?;
    }
}

/// How often the request of a record was made before.
type Attempt = u32;

struct Load<'a> {
    streams: &'a [Stream],
    texts: Vec<Texts>,
    began: Instant,
    records: Vec<Record>,
    /// For each record.
    attempts: Vec<Attempt>,
    retries: Retries,
    connections: Vec<Option<Connection>>,
    /// Places in `connections` that are free.
    free: Vec<usize>,
    /// Idle connections of each stream.
    idle: Vec<Vec<usize>>,
    readiness: Readiness,
    ready: Vec<u64>,
}

impl<'a> Load<'a> {
    fn new(streams: &'a [Stream]) -> io::Result<Self> {
        Ok(Self {
            streams,
            texts: streams
                .iter()
                .map(|stream| Texts::new(stream.path, stream.slow.path, stream.keep_alive))
                .collect(),
            began: Instant::now(),
            records: Vec::new(),
            attempts: Vec::new(),
            retries: Retries::default(),
            connections: Vec::new(),
            free: Vec::new(),
            idle: streams.iter().map(|_stream| Vec::new()).collect(),
            readiness: Readiness::new()?,
            ready: Vec::new(),
        })
    }

    /// Sends a request that is due.
    fn send(&mut self, arrival: &Arrival, attempt: Attempt) -> io::Result<()> {
        let request = self.records.len();
        self.records.push(Record {
            stream: arrival.stream,
            due_s: arrival.due_s,
            latency_s: f64::INFINITY,
            outcome: Outcome::Unanswered,
            slow: arrival.slow,
        });
        self.attempts.push(attempt);
        if let Some(retry) = self
            .streams
            .get(arrival.stream)
            .and_then(|stream| stream.retry)
        {
            let until = Duration::from_secs_f64(arrival.due_s).saturating_add(retry.patience);
            self.retries.wait_for(request, until);
        }
        let idle = self.idle.get_mut(arrival.stream).and_then(Vec::pop);
        let place = match idle {
            Some(place) => Some(place),
            None => self.open(arrival.stream)?,
        };
        let Some(place) = place else {
            self.ended(request, Outcome::NoConnection);
            return Ok(());
        };
        if let Some(connection) = self.connections.get_mut(place).and_then(Option::as_mut) {
            connection.request = Some(request);
            if !connection.connecting {
                self.transmit(place);
            }
        }
        Ok(())
    }

    /// Opens a connection; `None` where there are too many.
    fn open(&mut self, stream: usize) -> io::Result<Option<usize>> {
        let Some(stream) = self.streams.get(stream) else {
            return Ok(None);
        };
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.connections.len() >= CONNECTIONS_MAX => return Ok(None),
            None => {
                self.connections.push(None);
                self.connections.len() - 1
            }
        };
        let connection = Connection::begin(stream.address)?;
        if connection.connecting {
            self.readiness
                .add_connecting(&connection.socket, place as u64)?;
        } else {
            self.readiness.add(&connection.socket, place as u64)?;
        }
        if let Some(slot) = self.connections.get_mut(place) {
            *slot = Some(connection);
        }
        Ok(Some(place))
    }

    /// Writes the request of a connection that is there.
    fn transmit(&mut self, place: usize) {
        let Some(connection) = self.connections.get_mut(place).and_then(Option::as_mut) else {
            return;
        };
        let record = connection
            .request
            .and_then(|request| self.records.get(request));
        let Some(record) = record else {
            return;
        };
        let text = self
            .texts
            .get(record.stream)
            .map_or(&[][..], |texts| texts.of(record.slow));
        if connection.send(text).is_err() {
            self.close(place);
        }
    }

    /// Takes what sockets have to say, at most for `limit`.
    fn receive(&mut self, limit: Duration) -> io::Result<()> {
        let mut ready = std::mem::take(&mut self.ready);
        ready.clear();
        ready.extend(self.readiness.wait(limit)?);
        for number in &ready {
            if let Ok(place) = usize::try_from(*number) {
                self.ready(place)?;
            }
        }
        self.ready = ready;
        Ok(())
    }

    fn ready(&mut self, place: usize) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(place).and_then(Option::as_mut) else {
            return Ok(());
        };
        if connection.connecting {
            connection.connecting = false;
            self.readiness.connected(&connection.socket, place as u64)?;
            self.transmit(place);
            return Ok(());
        }
        match connection.receive() {
            Ok(None) => {}
            Ok(Some(outcome)) => {
                if let Some(request) = connection.request.take() {
                    self.answered(place, request, outcome);
                }
            }
            Err(_closed) => self.close(place),
        }
        Ok(())
    }

    fn answered(&mut self, place: usize, request: usize, outcome: Outcome) {
        self.ended(request, outcome);
        let Some(record) = self.records.get(request).copied() else {
            return;
        };
        let keep_alive = self
            .streams
            .get(record.stream)
            .is_some_and(|stream| stream.keep_alive);
        if !keep_alive {
            self.close(place);
        } else if let Some(idle) = self.idle.get_mut(record.stream) {
            idle.push(place);
        }
    }

    /// Writes down how a request ended; a caller who was refused comes again.
    fn ended(&mut self, request: usize, outcome: Outcome) {
        let now = self.began.elapsed();
        let Some(record) = self.records.get_mut(request) else {
            return;
        };
        record.outcome = outcome;
        record.latency_s = now.as_secs_f64() - record.due_s;
        let (record, stream) = (*record, self.streams.get(record.stream));
        if let (Outcome::Refused, Some(retry)) = (outcome, stream.and_then(|stream| stream.retry))
            && record.latency_s < retry.patience.as_secs_f64()
        {
            self.again(request, &record, now.saturating_add(retry.after));
        }
    }

    fn again(&mut self, request: usize, record: &Record, due: Duration) {
        let attempt = self.attempts.get(request).copied().unwrap_or(0);
        let retry = self
            .streams
            .get(record.stream)
            .and_then(|stream| stream.retry);
        if retry.is_some_and(|retry| attempt < retry.times) {
            self.retries.push(Again {
                due,
                stream: record.stream,
                slow: record.slow,
                attempt: attempt + 1,
            });
        }
    }

    /// Makes the requests that are due again; nobody comes again after `end`.
    fn retry(&mut self, now: Duration, end: Duration) -> io::Result<()> {
        while let Some(request) = self.retries.over(now) {
            if let Some(record) = self.records.get(request).copied()
                && record.outcome == Outcome::Unanswered
            {
                self.again(request, &record, now);
            }
        }
        while let Some(again) = self.retries.due(now) {
            if now < end {
                let arrival = Arrival {
                    due_s: again.due.as_secs_f64(),
                    stream: again.stream,
                    slow: again.slow,
                };
                self.send(&arrival, again.attempt)?;
            }
        }
        Ok(())
    }

    /// Drops a connection; what it carried stays unanswered.
    fn close(&mut self, place: usize) {
        if let Some(slot) = self.connections.get_mut(place)
            && slot.take().is_some()
        {
            self.free.push(place);
            // An idle one that the peer has closed must not be used again.
            self.idle
                .iter_mut()
                .for_each(|idle| idle.retain(|one| *one != place));
        }
    }
}
