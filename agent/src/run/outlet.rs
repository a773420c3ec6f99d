//! Lines for people, written by a thread of their own. Nobody may read them, a terminal may be halted (Ctrl-S) and a
//! disk may hang: whoever has a line to tell goes on, and a line that finds no room is counted and left out.

use std::io::{self, Write as _, stderr, stdout};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tidegate_segment::sync::{Ordering, Word};

use crate::background::Background;
use crate::journal::{self, Priority};

/// Lines that wait at most.
const LINES_MAX: usize = 1024;

/// Longest wait for the last lines at the end.
const FLUSH_WITHIN: Duration = Duration::from_secs(1);

static OUTLET: OnceLock<Outlet> = OnceLock::new();

/// Where a line goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

#[derive(Debug)]
enum OutletMessage {
    Line(Stream, Box<[u8]>),
    End,
}

#[derive(Debug)]
struct Outlet {
    queue: SyncSender<OutletMessage>,
    /// Lines that were left out.
    lost: Arc<Word>,
    thread: Background,
}

impl Outlet {
    fn start(write: impl FnMut(Stream, &[u8]) + Send + 'static) -> io::Result<Self> {
        let (queue, lines) = sync_channel(LINES_MAX);
        let lost = Arc::new(Word::new(0));
        let counted = Arc::clone(&lost);
        let thread = Background::start("log", move |_stop| write_all(&lines, &counted, write))?;
        Ok(Self {
            queue,
            lost,
            thread,
        })
    }

    fn put(&self, stream: Stream, line: &[u8]) {
        if self
            .queue
            .try_send(OutletMessage::Line(stream, line.into()))
            .is_err()
        {
            self.lost.count(1);
        }
    }

    fn end_within(&self, limit: Duration) {
        // Where there is no room for this, nobody reads, and there is nothing to wait for.
        if self.queue.try_send(OutletMessage::End).is_ok() {
            self.thread.end_within(limit);
        }
    }
}

fn write_all(lines: &Receiver<OutletMessage>, lost: &Word, mut write: impl FnMut(Stream, &[u8])) {
    let mut told_lost = 0;
    for told in lines {
        // Relaxed: a figure for people.
        let all_lost = lost.load(Ordering::Relaxed);
        if all_lost > told_lost {
            let lines = all_lost.saturating_sub(told_lost);
            let lost = format!("({lines} lines found no room here)\n");
            let lost = journal::for_stderr(lost, Priority::Warning);
            write(Stream::Err, lost.as_bytes());
            told_lost = all_lost;
        }
        match told {
            OutletMessage::Line(stream, line) => write(stream, &line),
            OutletMessage::End => return,
        }
    }
}

/// Writes a line. A stream that is gone must not end the agent.
fn write(stream: Stream, line: &[u8]) {
    let _gone: io::Result<()> = match stream {
        Stream::Out => {
            let mut out = stdout().lock();
            out.write_all(line).and_then(|()| out.flush())
        }
        Stream::Err => stderr().lock().write_all(line),
    };
}

/// Starts the thread; without it lines are written where they are told.
pub(super) fn begin() {
    if OUTLET.get().is_none()
        && let Ok(outlet) = Outlet::start(write)
    {
        // A second beginning in one process is late; its thread ends with its queue.
        let _late: Result<(), Outlet> = OUTLET.set(outlet);
    }
}

/// Hands a line over.
pub(super) fn put(stream: Stream, line: &[u8]) {
    match OUTLET.get() {
        Some(outlet) => outlet.put(stream, line),
        None => write(stream, line),
    }
}

/// Waits for the last lines, as long as somebody takes them.
pub(super) fn end() {
    if let Some(outlet) = OUTLET.get() {
        outlet.end_within(FLUSH_WITHIN);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_stream_that_takes_nothing_holds_nobody_up_and_what_was_lost_is_told() {
        let (written, seen) = channel();
        let (go_on, gate) = channel::<()>();
        let outlet = Outlet::start(move |_stream, line| {
            let _go_on = gate.recv();
            written.send(line.to_vec()).unwrap();
        })
        .unwrap();
        // One is in the writer's hands or waits, and so many wait.
        for _line in 0..LINES_MAX + 10 {
            outlet.put(Stream::Err, b"line\n");
        }
        outlet.end_within(Duration::MAX); // Comes back at once: there is no room.
        drop(go_on);
        let is_told = |line: &Vec<u8>| line.ends_with(b" lines found no room here)\n");
        assert!(seen.iter().take(LINES_MAX).any(|line| is_told(&line)));
    }

    #[test]
    fn the_end_waits_for_the_last_lines() {
        let (written, seen) = channel();
        let outlet = Outlet::start(move |stream, _line| written.send(stream).unwrap()).unwrap();
        outlet.put(Stream::Out, b"a");
        outlet.put(Stream::Err, b"b");
        outlet.end_within(Duration::from_mins(1));
        let streams: Vec<Stream> = seen.try_iter().collect();
        assert_eq!(streams, [Stream::Out, Stream::Err]);
    }
}
