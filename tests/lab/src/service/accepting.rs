//! Each worker accepts a connection, asks the guard, works and closes it. Connections that no worker
//! has taken wait in the kernel's accept queue. Tidegate is shown the listener and counts them; a
//! rival does not see them.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use super::Service;
use super::http;

/// Serves until it is killed.
///
/// # Errors
/// No thread left.
pub(super) fn serve(
    listener: &TcpListener,
    service: &Arc<Service>,
    workers: usize,
) -> io::Result<()> {
    std::thread::scope(|scope| {
        for _worker in 0..workers {
            std::thread::Builder::new().spawn_scoped(scope, || {
                loop {
                    if let Ok((stream, _peer)) = listener.accept() {
                        // A peer that goes away in the middle is no fault of the service.
                        let _served: io::Result<()> = answer(stream, service);
                    }
                }
            })?;
        }
        Ok(())
    })
}

/// Answers one request.
fn answer(mut stream: TcpStream, service: &Service) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut unread = Vec::new();
    let asked = loop {
        if let Some(asked) = http::take(&mut unread)? {
            break asked;
        }
        let mut chunk = [0; 4096];
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            return Ok(());
        }
        unread.extend_from_slice(chunk.get(..count).unwrap_or(&[]));
    };
    if let Some(answer) = service.unguarded(asked.wanted) {
        return stream.write_all(&answer);
    }
    match service.guard.enter(asked.wanted) {
        Ok(pass) => {
            service.counts.admitted();
            let end = service.work(asked.wanted);
            service.guard.ended(pass, end);
            stream.write_all(&end.answer())
        }
        Err(refusal) => {
            service.counts.refused();
            stream.write_all(&refusal)
        }
    }
}
