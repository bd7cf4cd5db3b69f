//! SIGTERM and SIGINT: the first signal asks for a graceful shutdown, the second stops at once.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::CliError;

/// Listens for both signals from its creation on.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn new() -> Result<Self, CliError> {
        let listen = |kind| {
            signal(kind).map_err(|error| CliError::new(format!("Cannot listen for signals: {error}.")))
        };
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Finishes `work`, unless another signal comes first.
    pub(crate) async fn run_until_signal(&mut self, work: impl Future<Output = ()>) -> Result<(), CliError> {
        tokio::select! {
            () = work => Ok(()),
            () = self.next() => Err(CliError::new("Stopped at once; calls in flight are settled at the next start.")),
        }
    }
}
