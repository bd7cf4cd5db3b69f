//! A read: the local copy, what is remembered, a question, a wait, the local copy again.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::Time;
use tidegate_core::hydration::{
    AskOutcome, AskRequest, CorrelationId, EntityKey, FlightBound, Ticket, Waiter, WaiterKind,
};
use tokio::sync::oneshot;
use tokio::time::timeout_at;

use super::waiter::{FlightAnswer, WaiterGuard, WaiterHandle};
use super::{FailureMode, GetOptions, Hydrator, Inner};
use crate::copies::EntityCopy;
use crate::counters::HydrationCount;
use crate::outcome::{HydratedEntity, Hydration, HydrationError, MissReason};
use crate::{log, random};

/// A read that the local copy did not satisfy.
pub(crate) struct Read<'a> {
    pub(super) inner: &'a Arc<Inner>,
    pub(crate) key: &'a EntityKey,
    pub(crate) options: &'a GetOptions,
    pub(crate) correlation_id: CorrelationId,
    /// How long the caller waits in total.
    pub(crate) wait: Duration,
    /// When the caller gives up.
    until: Time,
    /// The oldest copy that will do.
    since: Option<Time>,
}

/// What registering led to.
enum Registration {
    Waiting(Ticket, oneshot::Receiver<FlightAnswer>),
    Ended(Result<Hydration, HydrationError>),
}

impl Hydrator {
    /// Reads an entity: from the local copy if that has what is wanted, otherwise from its owner,
    /// who is asked once however many callers want it.
    ///
    /// Dropping the future gives up the wait and nothing else.
    ///
    /// # Errors
    /// `Unavailable` when there is no answer in time (with [`FailureMode::FailFast`]), `Owned` for
    /// a type of the module's own, `Copies` when the local copy failed, `Closed`.
    pub async fn get(&self, key: &EntityKey, options: &GetOptions) -> Result<Hydration, HydrationError> {
        if let Some(usable) = self.inner.read_local(key, options).await? {
            return Ok(usable);
        }
        let read = Read::new(&self.inner, key, options);
        match read.run().await {
            Err(HydrationError::Unavailable(reason)) => read.fail(reason).await,
            ended => ended,
        }
    }
}

fn found(copy: Arc<EntityCopy>, options: &GetOptions) -> Hydration {
    Hydration::Found(HydratedEntity { copy, mode: options.mode.clone(), is_stale: false })
}

impl Inner {
    /// Looks at the local copy of an entity that the module does not own.
    pub(super) async fn read_local(
        &self,
        key: &EntityKey,
        options: &GetOptions,
    ) -> Result<Option<Hydration>, HydrationError> {
        if self.owned_types.iter().any(|owned| owned == key.entity_type()) {
            return Err(HydrationError::Owned(key.entity_type().to_owned()));
        }
        let since = options.max_age.map(|age| self.clock.now().before(age));
        let copy = self.load(key).await?.filter(|copy| copy.satisfies(&options.mode, since));
        if copy.is_some() {
            HydrationCount::LocalHit.count();
        }
        Ok(copy.map(|copy| found(copy, options)))
    }

    async fn load(&self, key: &EntityKey) -> Result<Option<Arc<EntityCopy>>, HydrationError> {
        self.copies.load(key).await.map_err(HydrationError::Copies)
    }
}

impl<'a> Read<'a> {
    pub(super) fn new(inner: &'a Arc<Inner>, key: &'a EntityKey, options: &'a GetOptions) -> Self {
        let now = inner.clock.now();
        let wait = options.wait.unwrap_or_else(|| inner.with_table(|table| table.rules().wait_timeout));
        Self {
            inner,
            key,
            options,
            correlation_id: options.correlation_id.clone().unwrap_or_else(random::correlation_id),
            wait,
            until: now.after(wait),
            since: options.max_age.map(|age| now.before(age)),
        }
    }

    /// The module that reads.
    pub(crate) fn module(&self) -> &str {
        &self.inner.module
    }

    /// Waits for what the local copy lacks.
    pub(super) async fn run(&self) -> Result<Hydration, HydrationError> {
        let (ticket, answer) = match self.register().await? {
            Registration::Waiting(ticket, answer) => (ticket, answer),
            Registration::Ended(ended) => return ended,
        };
        let _guard = WaiterGuard { inner: self.inner, ticket };
        let told = timeout_at(self.inner.clock.instant(self.until), answer).await;
        let outcome = match told {
            Ok(Ok(answer)) => answer.into_outcome(&self.options.mode),
            // The flight ended at the very moment this caller gave up.
            Ok(Err(_)) | Err(_) => Err(HydrationError::Unavailable(MissReason::TimedOut)),
        };
        match outcome {
            Err(HydrationError::Unavailable(reason)) => {
                let late = self.look().await?;
                log::caller(self, if late.is_some() { "updated" } else { "timeout" }, false);
                late.ok_or(HydrationError::Unavailable(reason))
            }
            ended => {
                log::caller(self, log::result_of(&ended), false);
                ended
            }
        }
    }

    /// Looks at the local copy.
    pub(super) async fn look(&self) -> Result<Option<Hydration>, HydrationError> {
        let copy = self.inner.load(self.key).await?;
        let usable = copy.filter(|copy| copy.satisfies(&self.options.mode, self.since));
        Ok(usable.map(|copy| found(copy, self.options)))
    }

    async fn register(&self) -> Result<Registration, HydrationError> {
        let mut has_looked_again = false;
        loop {
            let (caller, answer) = oneshot::channel();
            let waiter = self.waiter(WaiterKind::Blocking, WaiterHandle::Caller(caller));
            match self.ask(AskRequest { waiter, has_looked_again }) {
                Ok(ticket) => return Ok(Registration::Waiting(ticket, answer)),
                Err(AskRefusal::Ended(ended)) => return Ok(Registration::Ended(ended)),
                Err(AskRefusal::LookAgain(_)) => {
                    if let Some(usable) = self.look().await? {
                        return Ok(Registration::Ended(Ok(usable)));
                    }
                    has_looked_again = true;
                }
            }
        }
    }

    pub(super) fn waiter<W>(&self, kind: WaiterKind, handle: W) -> Waiter<W> {
        let (correlation_id, mode) = (self.correlation_id.clone(), self.options.mode.clone());
        Waiter { correlation_id, mode, since: self.since, until: self.until, kind, handle }
    }

    /// Registers a waiter and sets off the question, if there is one to ask.
    pub(super) fn ask(&self, request: AskRequest<WaiterHandle>) -> Result<Ticket, AskRefusal> {
        let now = self.inner.clock.now();
        match self.inner.with_table(|table| table.ask(self.key, request, now)) {
            AskOutcome::Joined(ticket) => {
                HydrationCount::Joined.count();
                Ok(ticket)
            }
            AskOutcome::Opened(ticket, question) => {
                self.inner.spawn_first_question(question);
                Ok(ticket)
            }
            AskOutcome::Upgraded(ticket, question) => {
                HydrationCount::Upgraded.count();
                self.inner.spawn_question(question);
                Ok(ticket)
            }
            AskOutcome::LookAgain(waiter) => Err(AskRefusal::LookAgain(waiter)),
            AskOutcome::NotFound(_, absence) => {
                HydrationCount::NegativeHit.count();
                log::caller(self, "not-found", true);
                Err(AskRefusal::Ended(Ok(Hydration::NotFound(absence))))
            }
            AskOutcome::Unanswered(_, failure, _) => {
                HydrationCount::FailureHit.count();
                log::caller(self, "timeout", false);
                Err(AskRefusal::Ended(Err(HydrationError::Unavailable(failure.into()))))
            }
            AskOutcome::Refused(_, FlightBound::Closed) => {
                Err(AskRefusal::Ended(Err(HydrationError::Closed)))
            }
            AskOutcome::Refused(_, bound) => {
                HydrationCount::Refused.count();
                let reason = MissReason::Refused(bound);
                Err(AskRefusal::Ended(Err(HydrationError::Unavailable(reason))))
            }
        }
    }

    /// There is no answer: the failure mode.
    async fn fail(&self, reason: MissReason) -> Result<Hydration, HydrationError> {
        match reason {
            MissReason::TimedOut => HydrationCount::TimedOut.count(),
            MissReason::SourceAbsent => HydrationCount::SourceAbsent.count(),
            MissReason::BusFailed => HydrationCount::BusFailed.count(),
            // Counted where it failed.
            MissReason::SourceFailed | MissReason::Refused(_) => {}
        }
        if self.options.on_failure == FailureMode::FailFast {
            return Err(HydrationError::Unavailable(reason));
        }
        HydrationCount::Degraded.count();
        let copy = self.inner.load(self.key).await?.filter(|copy| copy.is_present());
        Ok(copy.map_or(Hydration::Unknown(reason), |copy| {
            Hydration::Found(HydratedEntity { copy, mode: self.options.mode.clone(), is_stale: true })
        }))
    }
}

/// A waiter that was not registered.
pub(super) enum AskRefusal {
    Ended(Result<Hydration, HydrationError>),
    /// What it wants has been stored meanwhile.
    LookAgain(Waiter<WaiterHandle>),
}
