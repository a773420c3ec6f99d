//! A connection that holds its place for a bounded time: a head comes at once, an answer is taken at once, and between
//! two questions it may stand still for a while.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::places::HeldPlaces;

/// The head of a question comes within this time of its first byte, the first one of the connection's begin.
pub(super) const HEAD_WITHIN: Duration = Duration::from_secs(5);

/// A connection between two questions ends after this time, and so does one whose answer does not leave. An answer is
/// held back for less (`http.max_wait` is a minute at most), and who keeps a connection open connects anew.
pub(super) const STILL_MAX: Duration = Duration::from_secs(90);

/// What a connection is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Waits for the rest of a head.
    Head,
    /// Has a whole head, and waits for the answer.
    Asked,
    /// Was answered, and may ask again.
    Idle,
}

/// What a connection holds for as long as it is there.
pub(super) trait ConnectionHoldings {
    /// Hears what the connection is at.
    fn comes_to(&self, _stage: Stage) {}
    /// Hears that it ends since no whole head came in time.
    fn is_late(&self) {}
    /// Whether it is to end now.
    fn poll_end(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

impl ConnectionHoldings for HeldPlaces {}

/// A stream with its place. Reading and writing fail once its time is over, however slowly bytes come or go, so that
/// it keeps others out for a bounded time.
#[derive(Debug)]
pub(super) struct Bounded<S, P> {
    stream: S,
    stage: Stage,
    end: HeadEnd,
    /// On the heap, so that the connection can move.
    deadline: Pin<Box<Sleep>>,
    over: bool,
    /// Held as long as the connection.
    place: P,
}

impl<S, P: ConnectionHoldings> Bounded<S, P> {
    /// A stream that has just begun. Must run inside the runtime.
    pub(super) fn new(stream: S, place: P) -> Self {
        Self {
            stream,
            stage: Stage::Head,
            end: HeadEnd::default(),
            deadline: Box::pin(tokio::time::sleep(HEAD_WITHIN)),
            over: false,
            place,
        }
    }

    fn come_to(&mut self, stage: Stage) {
        let within = match stage {
            Stage::Head => HEAD_WITHIN,
            Stage::Asked | Stage::Idle => STILL_MAX,
        };
        if let Some(deadline) = Instant::now().checked_add(within) {
            self.deadline.as_mut().reset(deadline);
        }
        self.end = HeadEnd::default();
        self.stage = stage;
        self.place.comes_to(stage);
    }

    fn has_read(&mut self, bytes: &[u8]) {
        if self.stage == Stage::Idle && !bytes.is_empty() {
            self.come_to(Stage::Head);
        }
        if self.stage == Stage::Head && self.end.is_in(bytes) {
            self.come_to(Stage::Asked);
        }
    }

    /// An answer has begun to leave; the word to go on with a body is none.
    fn has_written(&mut self, bytes: &[u8]) {
        if self.stage == Stage::Asked && !bytes.starts_with(b"HTTP/1.1 100") {
            self.come_to(Stage::Idle);
        }
    }

    /// Fails once the time is over or the place is taken away; both stay so.
    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        if !self.over && self.place.poll_end(cx).is_pending() {
            ready!(self.deadline.as_mut().poll(cx));
            if self.stage == Stage::Head {
                self.place.is_late();
            }
        }
        self.over = true;
        Poll::Ready(io::ErrorKind::TimedOut.into())
    }
}

/// Finds the empty line at the end of a head, wherever the reads cut it.
#[derive(Debug, Clone, Copy, Default)]
struct HeadEnd {
    /// Whether the last byte but carriage returns ended a line, and whether any other byte was there before.
    at_line: bool,
    begun: bool,
}

impl HeadEnd {
    fn is_in(&mut self, bytes: &[u8]) -> bool {
        bytes.iter().any(|byte| match byte {
            b'\r' => false,
            // Empty lines before a head are not its end.
            b'\n' => std::mem::replace(&mut self.at_line, true) && self.begun,
            _ => {
                (self.at_line, self.begun) = (false, true);
                false
            }
        })
    }
}

impl<S: AsyncRead + Unpin, P: ConnectionHoldings + Unpin> AsyncRead for Bounded<S, P> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // First: whoever always has one more byte would never end else.
        if let Poll::Ready(error) = this.poll_over(cx) {
            return Poll::Ready(Err(error));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        this.has_read(buf.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin, P: ConnectionHoldings + Unpin> AsyncWrite for Bounded<S, P> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if let Poll::Ready(error) = this.poll_over(cx) {
            return Poll::Ready(Err(error));
        }
        let bytes = ready!(Pin::new(&mut this.stream).poll_write_vectored(cx, bufs))?;
        if bytes > 0 {
            this.has_written(bufs.first().map_or(&[], |first| first));
        }
        Poll::Ready(Ok(bytes))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    // Sockets have nothing to flush and are always ready.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;

    impl ConnectionHoldings for () {}

    const HEAD: &[u8] = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n";

    async fn read_all(served: &mut Bounded<DuplexStream, ()>) -> io::ErrorKind {
        let all = served.read_to_end(&mut Vec::new()).await;
        all.unwrap_err().kind()
    }

    #[tokio::test(start_paused = true)]
    async fn field_b5_a_head_that_drips_ends_within_five_seconds_in_all() {
        let (mut caller, stream) = duplex(64);
        let begun = Instant::now();
        let drip = tokio::spawn(async move {
            while caller.write_all(b"x").await.is_ok() {
                tokio::time::advance(Duration::from_millis(500)).await;
            }
        });
        let mut served = Bounded::new(stream, ());
        assert_eq!(read_all(&mut served).await, io::ErrorKind::TimedOut);
        assert!(begun.elapsed() < HEAD_WITHIN * 2, "{:?}", begun.elapsed());
        drop(served);
        drip.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn field_b5_a_later_head_has_five_seconds_from_its_first_byte() {
        let (mut caller, stream) = duplex(1024);
        let mut served = Bounded::new(stream, ());
        for _question in 0..3 {
            caller.write_all(HEAD).await.unwrap();
            let mut read = vec![0; HEAD.len()];
            served.read_exact(&mut read).await.unwrap();
            served.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            tokio::time::advance(STILL_MAX / 2).await;
        }
        let begun = Instant::now();
        caller.write_all(b"GET /met").await.unwrap();
        assert_eq!(read_all(&mut served).await, io::ErrorKind::TimedOut);
        let took = begun.elapsed();
        assert!(took >= HEAD_WITHIN && took < HEAD_WITHIN * 2, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_whole_head_may_wait_for_its_answer_and_a_body_may_be_asked_for() {
        let (mut caller, stream) = duplex(1024);
        let mut served = Bounded::new(stream, ());
        caller.write_all(HEAD).await.unwrap();
        let mut read = vec![0; HEAD.len()];
        served.read_exact(&mut read).await.unwrap();
        served
            .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
            .await
            .unwrap();
        caller.write_all(b"{}").await.unwrap();
        served.read_exact(&mut [0; 2]).await.unwrap();
        tokio::time::advance(HEAD_WITHIN * 10).await;
        served.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_whose_answer_is_never_read_ends_too() {
        let (mut caller, stream) = duplex(64);
        let mut served = Bounded::new(stream, ());
        caller.write_all(HEAD).await.unwrap();
        served.read_exact(&mut vec![0; HEAD.len()]).await.unwrap();
        let error = served.write_all(&[0; 640]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    proptest! {
        #[test]
        fn the_end_of_a_head_is_found_wherever_reads_cut_it(cuts in prop::collection::vec(1_usize..9, 0..12)) {
            let text = [b"\r\n".as_slice(), HEAD].concat();
            let mut end = HeadEnd::default();
            let mut rest = text.as_slice();
            for cut in cuts {
                let (part, more) = rest.split_at(cut.min(rest.len()));
                let found = end.is_in(part);
                prop_assert_eq!(found, more.is_empty() && !part.is_empty());
                rest = more;
                if found {
                    return Ok(());
                }
            }
            prop_assert!(rest.is_empty() || end.is_in(rest));
        }
    }
}
