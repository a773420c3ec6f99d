//! One tokio thread: it accepts at once, and its run queue is inside the runtime, where the kernel's
//! counts do not see it.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;

use super::Service;
use super::http::{self, Wanted};
use crate::machine::cpu;

/// A request gives way to the others so many times.
const SLICES: u32 = 4;

/// Serves until it is killed.
///
/// # Errors
/// The listener or the runtime does not work.
pub(super) fn serve(listener: TcpListener, service: &Arc<Service>) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        loop {
            if let Ok((stream, _peer)) = listener.accept().await {
                let service = Arc::clone(service);
                // A peer that goes away in the middle is no fault of the service.
                tokio::spawn(async move { answer(stream, &service).await });
            }
        }
    })
}

/// Answers the requests of a connection until it ends.
async fn answer(stream: TcpStream, service: &Service) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut unread = Vec::new();
    loop {
        while let Some(asked) = http::take(&mut unread)? {
            let answer = answer_to(asked.wanted, service).await;
            write_all(&stream, &answer).await?;
            if asked.close {
                return Ok(());
            }
        }
        stream.readable().await?;
        let mut chunk = [0; 4096];
        match stream.try_read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(count) => unread.extend_from_slice(chunk.get(..count).unwrap_or(&[])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

async fn answer_to(wanted: Wanted, service: &Service) -> Vec<u8> {
    if let Some(answer) = service.unguarded(wanted) {
        return answer;
    }
    let pass = match service.guard.enter(wanted) {
        Ok(pass) => pass,
        Err(refusal) => {
            service.counts.refused();
            return refusal;
        }
    };
    service.counts.admitted();
    let (wait, end) = service.downstream(wanted);
    if !wait.is_zero() {
        wait_for_downstream(wait).await;
    }
    let work = service.toil.next();
    for _slice in 0..SLICES {
        cpu::burn(work / SLICES);
        tokio::task::yield_now().await;
    }
    service.guard.ended(pass, end);
    end.answer()
}

async fn wait_for_downstream(time: Duration) {
    let never = std::future::pending::<()>();
    // It always runs out: nothing answers.
    let _out = tokio::time::timeout(time, never).await;
}

async fn write_all(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or(&[]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
