//! Starts operations before the time that a verdict said, when their executor learns that what they
//! waited for is over. A report may be lost: then an operation waits for its time.

use std::time::Duration;

use tidegate_core::{OperationId, State};
use tidegate_store::Clock;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc::WeakSender;
use tokio::sync::{oneshot, watch};

use super::Engine;
use crate::error::Error;
use crate::owner::{Command, Owner};

/// How often an operation is looked at that still runs: the verdict by which it waits may not be
/// settled yet.
const LOOKS_MAX: u32 = 10;
/// The pause between two such looks.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

impl Engine {
    /// Follows the reports of all executors until the engine stops.
    pub(super) fn follow_early_starts(&self) {
        for starts in self.executors.values().filter_map(|executor| executor.early_starts()) {
            // It must not keep the engine from being dropped.
            tokio::spawn(follow(self.commands.downgrade(), starts, self.stopped.clone()));
        }
    }
}

async fn follow(
    commands: WeakSender<Command>,
    mut starts: Receiver<OperationId>,
    mut stopped: watch::Receiver<Option<Error>>,
) {
    loop {
        let start = tokio::select! {
            start = starts.recv() => start,
            _ = stopped.wait_for(Option::is_some) => return,
        };
        match start {
            Ok(id) if wake(&commands, id).await.is_none() => return,
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

/// Wakes an operation that waits, or is about to; `None` when the engine is gone.
async fn wake(commands: &WeakSender<Command>, id: OperationId) -> Option<()> {
    for _ in 0..LOOKS_MAX {
        let (reply, is_done) = oneshot::channel();
        let update = Command::Update(Box::new(move |owner: &mut Owner| {
            // Whoever asked may be gone.
            let _ = reply.send(wake_now(owner, id));
        }));
        commands.upgrade()?.send(update).await.ok()?;
        if is_done.await.unwrap_or(true) {
            break;
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
    Some(())
}

/// Wakes an operation of this partition if it waits; returns `false` while it runs.
fn wake_now(owner: &mut Owner, id: OperationId) -> bool {
    let (now, seq) = (owner.clock.now(), id.seq());
    let Some(active) = owner.model.active(seq).filter(|active| owner.id_of(seq, active.at) == id) else {
        return true;
    };
    owner.model.wake_operation(now, seq, &mut owner.building.facts) || active.state != State::Running
}
