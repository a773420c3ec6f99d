//! Ending early, and tidily: Ctrl-C and SIGTERM are seen between two steps.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};

/// Whether the lab was told to end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Begins to listen.
    ///
    /// # Errors
    /// No thread, or no signals.
    pub(crate) fn listen() -> io::Result<Self> {
        let interrupt = Self::default();
        let told = interrupt.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    if let (Ok(mut int), Ok(mut term)) = (
                        signal(SignalKind::interrupt()),
                        signal(SignalKind::terminate()),
                    ) {
                        tokio::select! { _ = int.recv() => {} _ = term.recv() => {} }
                        // Relaxed: the flag says all there is.
                        told.0.store(true, Ordering::Relaxed);
                    }
                });
            })?;
        Ok(interrupt)
    }

    /// Fails once it was told to end.
    ///
    /// # Errors
    /// It was.
    pub(crate) fn check(&self) -> io::Result<()> {
        if self.0.load(Ordering::Relaxed) {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "told to end"));
        }
        Ok(())
    }
}
