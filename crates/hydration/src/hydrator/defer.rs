//! Putting work off: if there is no answer in time, the work is kept and resumed once, by the
//! answer, by its deadline, or when the hydrator closes.

use std::future::Future;

use tidegate_core::hydration::{AskRequest, EntityKey, Waiter, WaiterKind};

use super::get::{AskRefusal, Read};
use super::waiter::{WaiterHandle, Work};
use super::{GetOptions, Hydrator};
use crate::counters::HydrationCount;
use crate::outcome::{Hydration, HydrationError, MissReason};

impl Hydrator {
    /// Reads an entity like [`Hydrator::get`]. If there is no answer in time, returns
    /// [`Hydration::Deferred`] and keeps asking for `defer_for`; `work` is called once, with the
    /// entity, with "not found", or with why there is none. In every other case `work` is not
    /// called.
    ///
    /// Work that waits for one entity is resumed in the order in which it was deferred.
    ///
    /// # Errors
    /// As [`Hydrator::get`]; `Unavailable` with `Refused` when too much work is deferred already.
    pub async fn get_or_defer<F, R>(
        &self,
        key: &EntityKey,
        options: &GetOptions,
        work: F,
    ) -> Result<Hydration, HydrationError>
    where
        F: FnOnce(Result<Hydration, HydrationError>) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        if let Some(usable) = self.inner.read_local(key, options).await? {
            return Ok(usable);
        }
        let read = Read::new(&self.inner, key, options);
        match read.run().await {
            Err(HydrationError::Unavailable(reason)) if !matches!(reason, MissReason::Refused(_)) => {
                read.park(Box::new(|outcome| Box::pin(work(outcome)))).await
            }
            ended => ended,
        }
    }
}

impl Read<'_> {
    async fn park(&self, work: Work) -> Result<Hydration, HydrationError> {
        let until = self.inner.clock.now().after(self.options.defer_for);
        let waiter = self.waiter(WaiterKind::Deferred, WaiterHandle::Work(work));
        let mut request = AskRequest { waiter: Waiter { until, ..waiter }, has_looked_again: false };
        loop {
            match self.ask(request) {
                Ok(_) => {
                    HydrationCount::Deferred.count();
                    return Ok(Hydration::Deferred);
                }
                Err(AskRefusal::Ended(ended)) => return ended,
                Err(AskRefusal::LookAgain(waiter)) => {
                    if let Some(usable) = self.look().await? {
                        return Ok(usable);
                    }
                    request = AskRequest { waiter, has_looked_again: true };
                }
            }
        }
    }
}
