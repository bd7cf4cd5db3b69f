//! Accepts connections up to a maximum, of which one address may not have all. An idle connection
//! is evicted for a new one; when all are busy, a few more are accepted for health checks and
//! operators.

mod connection;
mod slots;
mod stall;

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::edge::guard::GuardedRouter;
pub(crate) use connection::ReservedConnection;
use slots::SlotOutcome;
pub(crate) use slots::Slots;

/// The pause after a failed accept, for example when no file descriptor is left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The options of accepting connections.
#[derive(Clone)]
pub(crate) struct AcceptOptions {
    pub router: GuardedRouter,
    pub slots: Arc<Slots>,
    pub read_timeout: Duration,
    pub stopping: CancellationToken,
    pub tasks: TaskTracker,
}

/// Accepts connections until the server shuts down.
pub(crate) async fn run(listener: TcpListener, door: AcceptOptions) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = door.stopping.cancelled() => return,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                // Perhaps no file descriptor is left: evicting an idle connection frees one.
                door.slots.evict_one();
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let slot = tokio::select! {
            taken = door.slots.take(peer.ip()) => taken,
            () = door.stopping.cancelled() => return,
        };
        match slot {
            SlotOutcome::Slot(slot) => {
                door.tasks.spawn(connection::serve(stream, peer, slot, door.clone()));
            }
            SlotOutcome::AddressFull => {
                tracing::debug!(%peer, "an address has reached its maximum of connections");
            }
        }
    }
}
