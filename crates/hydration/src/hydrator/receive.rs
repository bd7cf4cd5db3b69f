//! Answers: each is stored first, and then whoever waits is woken. Events of one entity are handled
//! one after the other, those of different entities side by side.

use std::hash::{BuildHasher, RandomState};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tidegate_bus::{BusEvent, BusMessage, BusSubscription};
use tidegate_core::hydration::{Absence, AnswerOrigin, EntityKey, EntityStamp, HydrationMode};
use tokio::sync::mpsc;

use super::Inner;
use super::waiter::FlightAnswer;
use crate::copies::{EntityChange, EntityCopy};
use crate::counters::HydrationCount;
use crate::event::{EntityAbsence, EntityEvent, EntityUpdate};
use crate::{log, random, subjects};

/// Entities whose events are handled at once.
const LANES: usize = 16;
/// Events that wait in a lane; then the bus waits.
const LANE_LEN_MAX: usize = 1_024;

/// Receives events until the bus closes or the hydrator stops.
pub(super) async fn receive_answers(inner: Arc<Inner>, mut subscription: BusSubscription) {
    let lanes: Vec<_> = (0..LANES).map(|_| spawn_lane(&inner)).collect();
    let hasher = RandomState::new();
    loop {
        let event = tokio::select! {
            event = subscription.next() => event,
            () = inner.stop.cancelled() => break,
        };
        match event {
            Some(BusEvent::Message(message)) => {
                let Some(event) = read(&message) else { continue };
                let lane = hasher.hash_one(event.key()) as usize % LANES;
                if lanes[lane].send(event).await.is_err() {
                    break;
                }
            }
            Some(BusEvent::Gap) => {
                HydrationCount::Gap.count();
                let now = inner.clock.now();
                if let Some(shared) = &inner.shared {
                    shared.distrust(now);
                }
                inner.with_table(|table| table.gap(now));
            }
            None => break,
        }
    }
    inner.shut();
}

/// Reads an event that is meant for consumers. Anything else is counted and dropped.
fn read(message: &BusMessage) -> Option<EntityEvent> {
    let refuse = |why: &str| {
        HydrationCount::MalformedEvent.count();
        tracing::warn!(target: "tidegate::hydration", subject = %message.subject, "dropped an event: {why}");
        None
    };
    match EntityEvent::decode(&message.payload) {
        Err(error) => refuse(&error.to_string()),
        // Its own questions, or another's, are none of its business.
        Ok(EntityEvent::Unknown(_)) => None,
        // The subject says which tenant and type its publisher may speak for.
        Ok(event) if subjects::subject_of(&event).ok().as_ref() != Some(&message.subject) => {
            refuse("its tenant or type is not that of its subject")
        }
        Ok(event) => Some(event),
    }
}

fn spawn_lane(inner: &Arc<Inner>) -> mpsc::Sender<EntityEvent> {
    let (sender, mut events) = mpsc::channel(LANE_LEN_MAX);
    let lane = Arc::clone(inner);
    inner.tasks.spawn(async move {
        loop {
            let event = tokio::select! {
                event = events.recv() => event,
                () = lane.stop.cancelled() => None,
            };
            match event {
                Some(EntityEvent::Updated(update)) => lane.receive_update(update).await,
                Some(EntityEvent::NotFound(absence)) => lane.receive_absence(absence).await,
                Some(EntityEvent::Unknown(_)) => {}
                None => break,
            }
        }
    });
    sender
}

impl Inner {
    async fn receive_update(&self, update: EntityUpdate) {
        let (mode, is_admitted) = self.with_table(|table| {
            let asked = update.correlation_id.as_ref().and_then(|id| table.asked_by(&update.key, id));
            (level_of(&update, asked), table.admits_update(&update.key, &update.stamp, self.clock.now()))
        });
        if !is_admitted {
            HydrationCount::OutdatedAnswer.count();
            return;
        }
        let EntityUpdate { key, correlation_id, source_module, data, stamp, .. } = update;
        let change = EntityChange::Updated { data, mode, stamp, source_module, at: self.clock.now() };
        let copy = match self.store(&key, &change).await {
            Some(stored) => stored,
            // It could not be stored; those who wait have their answer all the same.
            None => change.apply(None).map(Arc::new),
        };
        let Some((copy, fresh)) = copy.and_then(|copy| Some((Arc::clone(&copy), copy.state.fresh.clone()?)))
        else {
            HydrationCount::OutdatedAnswer.count();
            return;
        };
        HydrationCount::Updated.count();
        let now = self.clock.now();
        let (was_absent, woken) = self.with_table(|table| {
            let was_absent = table.absence(&key, now).is_some();
            (was_absent, table.updated(&key, &fresh, copy.stored_at, now))
        });
        log::answer(&key, correlation_id.as_ref(), &self.module, "updated", woken.len());
        if woken.is_empty() {
            HydrationCount::LateAnswer.count();
        }
        self.wake(woken, &FlightAnswer::Found(copy));
        if let Some(shared) = self.shared.as_ref().filter(|_| was_absent) {
            shared.forget_absence(&key).await;
        }
    }

    async fn receive_absence(&self, absence: EntityAbsence) {
        let EntityAbsence { key, correlation_id, source_module, reason, stamp } = absence;
        let origin = || self.with_table(|table| table.origin(&key, correlation_id.as_ref(), stamp.as_of));
        let is_asked = match origin() {
            AnswerOrigin::Asked => true,
            AnswerOrigin::Unasked if stamp != EntityStamp::default() => false,
            AnswerOrigin::Unasked | AnswerOrigin::Outdated => return HydrationCount::OutdatedAnswer.count(),
        };
        let change = EntityChange::NotFound { reason, stamp, is_asked, source_module, at: self.clock.now() };
        let stored = self.store(&key, &change).await;
        let is_outvoted = match stored {
            Some(copy) => copy.is_some_and(|copy| copy.is_present()),
            None => !is_asked,
        };
        // Since then the entity may have been invalidated, or messages lost.
        if is_outvoted || origin() == AnswerOrigin::Outdated {
            return HydrationCount::OutdatedAnswer.count();
        }
        HydrationCount::NotFound.count();
        let is_own = correlation_id
            .as_ref()
            .is_some_and(|id| self.with_table(|table| table.asked_by(&key, id).is_some()));
        let (now, chance) = (self.clock.now(), random::chance());
        let absence = Absence { reason, stamp };
        let woken = self.with_table(|table| table.not_found(&key, absence, now, chance));
        log::answer(&key, correlation_id.as_ref(), &self.module, "not-found", woken.len());
        self.wake(woken, &FlightAnswer::NotFound(absence));
        // Of all nodes that receive it, the one that asked.
        if let Some(shared) = self.shared.as_ref().filter(|_| is_own) {
            shared.remember_absence(&key, reason).await;
        }
    }

    /// Applies a change to the local copy; `None` when that failed or panicked.
    async fn store(&self, key: &EntityKey, change: &EntityChange) -> Option<Option<Arc<EntityCopy>>> {
        let update = async { self.copies.update(key, change).await };
        match AssertUnwindSafe(update).catch_unwind().await {
            Ok(Ok(copy)) => return Some(copy),
            Ok(Err(error)) => {
                tracing::error!(target: "tidegate::hydration", "the local copy failed: {error}");
            }
            Err(_) => tracing::error!(target: "tidegate::hydration", "the local copy panicked"),
        }
        HydrationCount::CopyFailed.count();
        None
    }
}

/// How much an update brings: what it states, and at least what was asked if it answers a question
/// of this process; everything if it is a change that no one asked about; otherwise its fields.
fn level_of(update: &EntityUpdate, asked: Option<&HydrationMode>) -> HydrationMode {
    match (&update.mode, asked) {
        (Some(stated), Some(asked)) => stated.union(asked),
        (Some(stated), None) => stated.clone(),
        (None, Some(asked)) => asked.clone(),
        (None, None) if update.correlation_id.is_none() => HydrationMode::Full,
        (None, None) => {
            HydrationMode::partial(update.data.keys().cloned()).unwrap_or(HydrationMode::Existence)
        }
    }
}
