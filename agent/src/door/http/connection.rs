//! A connection that holds its place only while something moves on it.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// A connection on which no byte moves for this long ends. An answer is held back for less
/// (`http.max_wait` is a minute at most), and who keeps a connection open for the next question connects anew.
pub(super) const STILL_MAX: Duration = Duration::from_secs(90);

/// A stream with its place. Reading and writing fail once it has stood still, so that who sends half a
/// question, or never reads the answer, keeps others out for a bounded time.
#[derive(Debug)]
pub(super) struct Bounded<S, P> {
    stream: S,
    /// On the heap, so that the connection can move.
    deadline: Pin<Box<Sleep>>,
    /// Held as long as the connection.
    _place: P,
}

impl<S, P> Bounded<S, P> {
    /// A stream that has just begun. Must run inside the runtime.
    pub(super) fn new(stream: S, place: P) -> Self {
        Self {
            stream,
            deadline: Box::pin(tokio::time::sleep(STILL_MAX)),
            _place: place,
        }
    }

    /// Begins the time anew when something moved; else ends the wait when it is over.
    fn unless_still<T>(
        &mut self,
        context: &mut Context<'_>,
        moved: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if moved.is_ready() {
            if let Some(deadline) = Instant::now().checked_add(STILL_MAX) {
                self.deadline.as_mut().reset(deadline);
            }
            return moved;
        }
        ready!(self.deadline.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin, P: Unpin> AsyncRead for Bounded<S, P> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let moved = Pin::new(&mut this.stream).poll_read(cx, buf);
        this.unless_still(cx, moved)
    }
}

impl<S: AsyncWrite + Unpin, P: Unpin> AsyncWrite for Bounded<S, P> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let moved = Pin::new(&mut this.stream).poll_write(cx, buf);
        this.unless_still(cx, moved)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let moved = Pin::new(&mut this.stream).poll_write_vectored(cx, bufs);
        this.unless_still(cx, moved)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    // Sockets have nothing to flush and are always ready: that is no movement.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_sends_half_a_question_ends_once_it_has_stood_still() {
        let (mut caller, stream) = duplex(64);
        let mut served = Bounded::new(stream, ());
        caller.write_all(b"GET /met").await.unwrap();
        let begun = Instant::now();
        let error = served.read_to_end(&mut Vec::new()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() >= STILL_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_whose_answer_is_never_read_ends_too() {
        let (_caller, stream) = duplex(8);
        let mut served = Bounded::new(stream, ());
        let error = served.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_moves_now_and_then_stays() {
        let (mut caller, stream) = duplex(64);
        let mut served = Bounded::new(stream, ());
        for _ in 0..10 {
            tokio::time::advance(STILL_MAX / 2).await;
            caller.write_all(b"x").await.unwrap();
            let mut byte = [0];
            served.read_exact(&mut byte).await.unwrap();
            assert_eq!(&byte, b"x");
        }
    }
}
