//! Those who wait: a caller with a channel, or work that was put off. Each is told once.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tidegate_core::hydration::{Absence, FlightFailure, HydrationMode, Ticket, Waiter};
use tokio::sync::oneshot;

use super::Inner;
use crate::copies::EntityCopy;
use crate::outcome::{HydratedEntity, Hydration, HydrationError, MissReason};

/// Deferred work: called once, with what its caller would have got.
pub(super) type Work =
    Box<dyn FnOnce(Result<Hydration, HydrationError>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// How a waiter is reached.
pub(super) enum WaiterHandle {
    Caller(oneshot::Sender<FlightAnswer>),
    Work(Work),
}

/// What those who wait are told.
#[derive(Clone, Debug)]
pub(super) enum FlightAnswer {
    Found(Arc<EntityCopy>),
    NotFound(Absence),
    Failed(FlightFailure),
    Closed,
}

impl FlightAnswer {
    pub(super) fn into_outcome(self, mode: &HydrationMode) -> Result<Hydration, HydrationError> {
        match self {
            Self::Found(copy) => {
                Ok(Hydration::Found(HydratedEntity { copy, mode: mode.clone(), is_stale: false }))
            }
            Self::NotFound(absence) => Ok(Hydration::NotFound(absence)),
            Self::Failed(failure) => Err(HydrationError::Unavailable(MissReason::from(failure))),
            Self::Closed => Err(HydrationError::Closed),
        }
    }
}

/// Removes its waiter when it is dropped, whatever happened to the caller.
pub(super) struct WaiterGuard<'a> {
    pub(super) inner: &'a Inner,
    pub(super) ticket: Ticket,
}

impl Drop for WaiterGuard<'_> {
    fn drop(&mut self) {
        self.inner.with_table(|table| table.cancel(&self.ticket));
    }
}

impl Inner {
    /// Tells all who were taken out of the table. Never under its lock.
    pub(super) fn wake(&self, waiters: Vec<Waiter<WaiterHandle>>, answer: &FlightAnswer) {
        let mut works = Vec::new();
        for waiter in waiters {
            let Waiter { mode, handle, .. } = waiter;
            match handle {
                // A caller that has gone does not matter.
                WaiterHandle::Caller(caller) => drop(caller.send(answer.clone())),
                WaiterHandle::Work(work) => {
                    works.push((work, answer.clone().into_outcome(&mode)));
                }
            }
        }
        if !works.is_empty() {
            self.tasks.spawn(run_in_order(works));
        }
    }
}

/// Resumes deferred work in the order in which it came. One that panics does not stop the others.
async fn run_in_order(works: Vec<(Work, Result<Hydration, HydrationError>)>) {
    for (work, outcome) in works {
        if tokio::spawn(async move { work(outcome).await }).await.is_err() {
            tracing::error!(target: "tidegate::hydration", "deferred work panicked");
        }
    }
}
