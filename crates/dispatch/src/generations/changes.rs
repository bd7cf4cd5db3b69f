//! The stream of changes: every new status of every generation of an engine.

use std::collections::VecDeque;
use std::sync::Arc;

use tidegate::{Change, Event, OperationId, Subscription, Time};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::Generations;
use crate::dispatch::KIND;
use crate::generation::GenerationStatus;

/// A new status of a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenerationChange {
    /// The id of the event, which increases.
    pub event_id: u64,
    /// When it happened.
    pub at: Time,
    /// The generation.
    pub id: OperationId,
    /// The user it is for, if that is at hand.
    pub user: Option<String>,
    /// Its new status.
    pub status: GenerationStatus,
}

/// A listener's stream of changes.
#[derive(Debug)]
pub struct GenerationChanges {
    /// Whether changes were missed: read everything again.
    pub gap: bool,
    missed: VecDeque<Arc<Event>>,
    live: broadcast::Receiver<Arc<Event>>,
}

impl Generations {
    /// Follows the changes of all generations, from now on or after the event with this id.
    #[must_use]
    pub fn changes(&self, after: Option<u64>) -> GenerationChanges {
        let Subscription { missed, gap, live, .. } = self.engine.events(after);
        GenerationChanges { gap, missed: missed.into(), live }
    }
}

impl GenerationChanges {
    /// Waits for the next change; `None` when the engine has stopped. When changes were missed it
    /// sets `gap` and continues with the next one.
    pub async fn next(&mut self) -> Option<GenerationChange> {
        loop {
            let event = match self.missed.pop_front() {
                Some(event) => event,
                None => match self.live.recv().await {
                    Ok(event) => event,
                    Err(RecvError::Lagged(_)) => {
                        self.gap = true;
                        continue;
                    }
                    Err(RecvError::Closed) => return None,
                },
            };
            if let Some(change) = change(&event) {
                return Some(change);
            }
        }
    }
}

fn change(event: &Event) -> Option<GenerationChange> {
    let Change::Operation { id, kind, state, labels, .. } = &event.change else { return None };
    let user = labels.as_ref().and_then(|labels| labels.user.as_deref()).map(str::to_owned);
    let status = GenerationStatus::from(*state);
    let change = GenerationChange { event_id: event.id, at: event.at, id: *id, user, status };
    (&**kind == KIND).then_some(change)
}
