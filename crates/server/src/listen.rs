//! Accepts connections up to a maximum, of which one address may not have all. An idle connection
//! is evicted for a new one; when all are busy, a few more are accepted for health checks and
//! operators.

mod connection;
mod slots;
mod stall;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::edge::guard::GuardedRouter;
pub(crate) use connection::ReservedConnection;
use slots::SlotOutcome;
pub(crate) use slots::{Slots, network};
pub(crate) use tls::{Certificate, PlainConnection, TlsConnection};

/// The pause after a failed accept, for example when no file descriptor is left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How often failed accepts are logged, with their number.
const WARN_EVERY: Duration = Duration::from_secs(10);

/// The options of accepting connections.
#[derive(Clone)]
pub(crate) struct AcceptOptions {
    pub router: GuardedRouter,
    pub slots: Arc<Slots>,
    /// The certificate of a listener with TLS.
    pub certificate: Option<Arc<Certificate>>,
    pub read_timeout: Duration,
    pub stopping: CancellationToken,
    pub tasks: TaskTracker,
}

/// Accepts connections until the server shuts down.
pub(crate) async fn run(listener: TcpListener, options: AcceptOptions) {
    let mut failures = FailureLog::default();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = options.stopping.cancelled() => return,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                if let Some(failures) = failures.record(Instant::now()) {
                    tracing::warn!(%error, failures, "cannot accept connections");
                }
                // Perhaps no file descriptor is left: evicting an idle connection frees one.
                options.slots.evict_one();
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let slot = tokio::select! {
            taken = options.slots.take(peer.ip()) => taken,
            () = options.stopping.cancelled() => return,
        };
        match slot {
            SlotOutcome::Slot(slot) => {
                options.tasks.spawn(connection::serve(stream, peer, slot, options.clone()));
            }
            SlotOutcome::AddressFull => {
                tracing::debug!(%peer, "an address has reached its maximum of connections");
            }
        }
    }
}

/// Decides which failures are logged, so that a lasting cause does not fill the log.
#[derive(Default)]
struct FailureLog {
    logged_at: Option<Instant>,
    /// Failures since then.
    count: u64,
}

impl FailureLog {
    /// Records a failure; returns how many there were since the last line if it is time for one.
    fn record(&mut self, now: Instant) -> Option<u64> {
        self.count += 1;
        if self.logged_at.is_some_and(|last| now < last + WARN_EVERY) {
            return None;
        }
        self.logged_at = Some(now);
        Some(std::mem::take(&mut self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OPS-8: while no connection can be accepted, the log says so now and then.
    #[test]
    fn ops_8_failed_accepts_are_logged_now_and_then() {
        let (mut log, start) = (FailureLog::default(), Instant::now());
        let mut reported = Vec::new();
        for nth in 0..600_u32 {
            reported.extend(log.record(start + ACCEPT_PAUSE * nth));
        }
        assert_eq!(reported, [1, 200, 200], "in 30 s");
    }
}
