//! Taking connections: as many at once as may be, and of one address not all of them. A connection on which nothing is
//! asked for makes room for one that comes later; when all are at work, a few more are taken for health and operators.

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

/// A pause after the system had no connection to give, such as when no file is left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How connections are taken.
#[derive(Clone)]
pub(crate) struct AcceptOptions {
    pub router: GuardedRouter,
    pub slots: Arc<Slots>,
    pub read_timeout: Duration,
    pub stopping: CancellationToken,
    pub tasks: TaskTracker,
}

/// Takes connections until the server stops.
pub(crate) async fn run(listener: TcpListener, door: AcceptOptions) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = door.stopping.cancelled() => return,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                // Perhaps no file is left: one that is held by nothing is given back.
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
                tracing::debug!(%peer, "an address has all the connections it may have");
            }
        }
    }
}
