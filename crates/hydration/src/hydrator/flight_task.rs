//! What flights do by themselves: they look again, publish, and keep time. No caller's fate touches
//! them.

use std::sync::Arc;
use std::time::Duration;

use tidegate_bus::Delivery;
use tidegate_core::hydration::{FlightFailure, PublishOutcome, Question, TimerEffect};
use tokio::time::{sleep_until, timeout};

use super::Inner;
use super::shared_memory::SharedAdmission;
use super::waiter::FlightAnswer;
use crate::counters::HydrationCount;
use crate::event::{EntityEvent, EntityQuestion};
use crate::log;

/// How long a bus may take to publish a question.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(5);
/// How often levels are reported although nothing happens.
const REPORT_EVERY: Duration = Duration::from_secs(5);

impl Inner {
    /// Looks at the local copy again, then publishes the first question of a flight.
    pub(super) fn spawn_first_question(self: &Arc<Self>, question: Question) {
        let inner = Arc::clone(self);
        self.tasks.spawn(async move {
            // A copy that cannot be read is a copy that is not there.
            let copy = inner.copies.load(&question.key).await.ok().flatten();
            let mut is_wanted = true;
            if let Some((copy, fresh)) = copy.and_then(|copy| Some((copy.clone(), copy.state.fresh.clone()?)))
            {
                let (woken, still_wanted) =
                    inner.with_table(|table| table.found(&question, &fresh, copy.stored_at));
                inner.wake(woken, &FlightAnswer::Found(copy));
                is_wanted = still_wanted;
            }
            if is_wanted {
                inner.publish(question).await;
            }
        });
    }

    pub(super) fn spawn_question(self: &Arc<Self>, question: Question) {
        let inner = Arc::clone(self);
        self.tasks.spawn(async move { inner.publish(question).await });
    }

    async fn publish(&self, question: Question) {
        if !self.is_admitted(&question).await {
            return;
        }
        let event = EntityEvent::Unknown(EntityQuestion {
            key: question.key.clone(),
            correlation_id: question.correlation_id.clone(),
            requester_module: self.module.clone(),
            mode: question.mode.clone(),
        });
        let outcome = self.publish_event(&event).await;
        log::question(&question, &self.module, outcome);
        let woken = self.with_table(|table| table.published(&question, outcome));
        let failure = match outcome {
            PublishOutcome::NoSubscriber => FlightFailure::SourceAbsent,
            PublishOutcome::Failed | PublishOutcome::Sent => FlightFailure::BusFailed,
        };
        self.wake(woken, &FlightAnswer::Failed(failure));
    }

    /// Whether no other node has asked, or knows that there is no such entity.
    async fn is_admitted(&self, question: &Question) -> bool {
        let Some(shared) = &self.shared else { return true };
        let now = self.clock.now();
        match shared.admit(question, now).await {
            SharedAdmission::Publish => true,
            SharedAdmission::AskedElsewhere => false,
            SharedAdmission::NotFound(absence, until) => {
                // Of what this node has seen, only its owner can say that it is gone.
                let copy = self.copies.load(&question.key).await.ok().flatten();
                if copy.is_some_and(|copy| copy.is_present()) {
                    return true;
                }
                let woken = self.with_table(|table| table.absent_elsewhere(question, absence, now, until));
                self.wake(woken, &FlightAnswer::NotFound(absence));
                false
            }
        }
    }

    /// The source of this process could not look: whoever waits learns it at once.
    pub(super) fn report_source_failure(&self, question: &EntityQuestion) {
        let woken = self.with_table(|table| table.source_failed(&question.key, &question.correlation_id));
        self.wake(woken, &FlightAnswer::Failed(FlightFailure::SourceFailed));
    }

    async fn publish_event(&self, event: &EntityEvent) -> PublishOutcome {
        HydrationCount::Published.count();
        match timeout(PUBLISH_TIMEOUT, event.publish(&*self.bus)).await {
            Ok(Ok(Delivery::NoSubscriber)) => PublishOutcome::NoSubscriber,
            Ok(Ok(Delivery::Received | Delivery::Unknown)) => PublishOutcome::Sent,
            Ok(Err(_)) | Err(_) => PublishOutcome::Failed,
        }
    }

    fn tick(self: &Arc<Self>) {
        let now = self.clock.now();
        for effect in self.with_table(|table| table.tick(now)) {
            match effect {
                TimerEffect::Publish(question) => self.spawn_question(question),
                TimerEffect::Expire(waiters) => {
                    self.wake(waiters, &FlightAnswer::Failed(FlightFailure::TimedOut));
                }
            }
        }
    }
}

/// Does what is due, when it is due, until the hydrator stops.
pub(super) async fn keep_time(inner: Arc<Inner>) {
    let mut reported = tokio::time::Instant::now();
    loop {
        let next = inner.with_table(|table| table.next_timer());
        let report_at = reported + REPORT_EVERY;
        let wake_at = next.map_or(report_at, |next| inner.clock.instant(next).min(report_at));
        tokio::select! {
            () = sleep_until(wake_at) => {}
            () = inner.earlier.notified() => {}
            () = inner.stop.cancelled() => break,
        }
        inner.tick();
        if tokio::time::Instant::now() >= report_at {
            reported = tokio::time::Instant::now();
            inner.report();
        }
    }
    inner.shut();
}
