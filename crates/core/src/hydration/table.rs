//! All flights of a process, and what it remembers: who joins, what is asked, who is woken, what is
//! forgotten. One step at a time may change it.

pub(super) mod ask;
mod timers;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::copy::EntityStamp;
use super::flight::{Flight, FlightFailure, FlightView, Question, Waiter, WaiterKind};
use super::key::{CorrelationId, EntityKey};
use super::mode::HydrationMode;
use super::negatives::{Absence, NegativeCache, jittered_ttl};
use super::question_rate::QuestionRate;
use super::rules::FlightRules;
use crate::time::Time;

/// The flights of a process, its negative cache and its rate of questions.
#[derive(Debug)]
pub struct FlightTable<W> {
    rules: FlightRules,
    flights: BTreeMap<EntityKey, Flight<W>>,
    pub(super) timers: BTreeSet<(Time, EntityKey)>,
    pub(super) negatives: NegativeCache,
    rate: QuestionRate,
    /// The ids of flights and waiters.
    last_id: u64,
    blocking: usize,
    deferred: usize,
    is_closed: bool,
}

/// Names a waiter, to cancel it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    key: EntityKey,
    waiter: u64,
}

/// What became of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishOutcome {
    /// Someone received it, or the bus does not know.
    Sent,
    /// No one received it.
    NoSubscriber,
    /// It could not be published.
    Failed,
}

/// How a "not found" relates to what this process asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerOrigin {
    /// It answers an open question, or is newer than one.
    Asked,
    /// There is an open question, and it answers another or an older one: it does not count.
    Outdated,
    /// There is no open question: it counts if it proves that it is newer than what is known.
    Unasked,
}

/// What a timer brings about.
#[derive(Debug, PartialEq, Eq)]
pub enum TimerEffect<W> {
    /// Publish this question.
    Publish(Question),
    /// These waited long enough.
    Expire(Vec<Waiter<W>>),
}

impl<W> FlightTable<W> {
    /// Creates a table without flights.
    #[must_use]
    pub fn new(rules: FlightRules) -> Self {
        Self {
            rules,
            flights: BTreeMap::new(),
            timers: BTreeSet::new(),
            negatives: NegativeCache::default(),
            rate: QuestionRate::default(),
            last_id: 0,
            blocking: 0,
            deferred: 0,
            is_closed: false,
        }
    }

    /// The rules.
    #[must_use]
    pub const fn rules(&self) -> &FlightRules {
        &self.rules
    }

    /// How many flights there are, unanswered ones included.
    #[must_use]
    pub fn flights(&self) -> usize {
        self.flights.len()
    }

    /// How many callers wait, and how many pieces of work are deferred.
    #[must_use]
    pub const fn waiters(&self) -> (usize, usize) {
        (self.blocking, self.deferred)
    }

    /// How many entities are remembered as not found; some may have expired.
    #[must_use]
    pub fn negatives(&self) -> usize {
        self.negatives.len()
    }

    /// At most `most` flights behind this entity, or from the first on; for people.
    #[must_use]
    pub fn views(&self, after: Option<&EntityKey>, most: usize, now: Time) -> Vec<FlightView> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let flights = self.flights.range((start, Bound::Unbounded)).take(most);
        flights.map(|(key, flight)| flight.view(key, &self.rules, now)).collect()
    }

    /// Removes a waiter: its caller gave up, or its time is up. The flight continues.
    pub fn cancel(&mut self, ticket: &Ticket) -> Option<Waiter<W>> {
        let flight = self.flights.get_mut(&ticket.key)?;
        let waiter = flight.waiters.remove(&ticket.waiter)?;
        match waiter.kind {
            WaiterKind::Blocking => self.blocking -= 1,
            WaiterKind::Deferred => {
                self.deferred -= 1;
                flight.deferred -= 1;
            }
        }
        Some(waiter)
    }

    /// The asker of a flight's first question looked at the local copy again: `fresh` of it is
    /// current, stored at `stored_at`. Returns whom that satisfies, and whether the question is
    /// still to be published.
    pub fn found(
        &mut self,
        question: &Question,
        fresh: &HydrationMode,
        stored_at: Time,
    ) -> (Vec<Waiter<W>>, bool) {
        if !self.is_of_flight(question) {
            return (Vec::new(), false);
        }
        let woken = self.take_satisfied(&question.key, fresh, stored_at);
        let Some(flight) = self.flights.get_mut(&question.key).filter(|flight| !flight.waiters.is_empty())
        else {
            self.remove_flight(&question.key);
            return (woken, false);
        };
        flight.note_brought(fresh);
        (woken, true)
    }

    /// A question was published. Returns whom it leaves without hope.
    pub fn published(&mut self, question: &Question, outcome: PublishOutcome) -> Vec<Waiter<W>> {
        let is_current = self.is_of_flight(question);
        let Some(flight) =
            self.flights.get_mut(&question.key).filter(|flight| is_current && flight.is_latest(question))
        else {
            return Vec::new();
        };
        let failure = match outcome {
            PublishOutcome::NoSubscriber => FlightFailure::SourceAbsent,
            PublishOutcome::Failed if flight.due.is_none() => FlightFailure::BusFailed,
            PublishOutcome::Failed | PublishOutcome::Sent => return Vec::new(),
        };
        flight.fail(failure);
        let woken = self.take_waiters(&question.key, |waiter| waiter.kind == WaiterKind::Blocking);
        self.reschedule(&question.key);
        woken
    }

    /// The source of an open question could not look. Returns whom that leaves without hope.
    pub fn source_failed(&mut self, key: &EntityKey, id: &CorrelationId) -> Vec<Waiter<W>> {
        let Some(flight) = self.flights.get_mut(key).filter(|flight| flight.asked_by(id).is_some()) else {
            return Vec::new();
        };
        flight.fail(FlightFailure::SourceFailed);
        let woken = self.take_waiters(key, |waiter| waiter.kind == WaiterKind::Blocking);
        self.reschedule(key);
        woken
    }

    /// Whether an update is to be stored: not if it is older than what is remembered as not found.
    #[must_use]
    pub fn admits_update(&self, key: &EntityKey, stamp: &EntityStamp, now: Time) -> bool {
        let absence = self.absence(key, now);
        absence.is_none_or(|absence| absence.stamp.compare(stamp) != Some(std::cmp::Ordering::Greater))
    }

    /// What is remembered of an entity that was not found.
    #[must_use]
    pub fn absence(&self, key: &EntityKey, now: Time) -> Option<Absence> {
        self.negatives.get(key, now)
    }

    /// What the open question with this correlation id asked for.
    #[must_use]
    pub fn asked_by(&self, key: &EntityKey, id: &CorrelationId) -> Option<&HydrationMode> {
        self.flights.get(key)?.asked_by(id)
    }

    /// An update was stored, or the stored copy was newer; `fresh` is what is current of it now,
    /// and `stored_at` when it was stored. Returns whom that satisfies.
    pub fn updated(
        &mut self,
        key: &EntityKey,
        fresh: &HydrationMode,
        stored_at: Time,
        now: Time,
    ) -> Vec<Waiter<W>> {
        self.negatives.remove(key);
        let woken = self.take_satisfied(key, fresh, stored_at);
        if let Some(flight) = self.flights.get_mut(key) {
            if flight.waiters.is_empty() && fresh.covers(&flight.asked) {
                self.remove_flight(key);
            } else {
                flight.begin_epoch(now);
                flight.note_brought(fresh);
            }
        }
        woken
    }

    /// How a "not found" relates to what this process asked.
    #[must_use]
    pub fn origin(&self, key: &EntityKey, id: Option<&CorrelationId>, as_of: Option<Time>) -> AnswerOrigin {
        match self.flights.get(key) {
            None => AnswerOrigin::Unasked,
            Some(flight) if flight.is_answered_by(id, as_of) => AnswerOrigin::Asked,
            Some(_) => AnswerOrigin::Outdated,
        }
    }

    /// A "not found" counts: it is remembered, and the flight ends. Returns who waited.
    pub fn not_found(&mut self, key: &EntityKey, absence: Absence, now: Time, chance: u32) -> Vec<Waiter<W>> {
        let until = now.after(jittered_ttl(self.rules.negative_ttl, chance));
        self.negatives.insert(key.clone(), absence, now, until, self.rules.negatives_max);
        self.remove_flight(key)
    }

    /// Another node knows until then that there is no such entity. Returns who waited; no one if
    /// the question is no longer open.
    pub fn absent_elsewhere(
        &mut self,
        question: &Question,
        absence: Absence,
        now: Time,
        until: Time,
    ) -> Vec<Waiter<W>> {
        if self.origin(&question.key, Some(&question.correlation_id), None) != AnswerOrigin::Asked {
            return Vec::new();
        }
        self.negatives.insert(question.key.clone(), absence, now, until, self.rules.negatives_max);
        self.remove_flight(&question.key)
    }

    /// The entity is to be asked for at its next use: what is remembered is forgotten, and who
    /// waits has it asked again.
    pub fn invalidate(&mut self, key: &EntityKey, now: Time) {
        self.negatives.remove(key);
        let Some(flight) = self.flights.get_mut(key) else { return };
        flight.brought = None;
        if flight.waiters.is_empty() && flight.failure(&self.rules, now).is_some() {
            self.remove_flight(key);
            return;
        }
        if flight.waiters.is_empty() {
            flight.begin_epoch(now);
        } else {
            flight.ask_again(&self.rules, now);
        }
        self.reschedule(key);
    }

    /// Whether anyone waits for an entity.
    #[must_use]
    pub fn is_awaited(&self, key: &EntityKey) -> bool {
        self.flights.get(key).is_some_and(|flight| !flight.waiters.is_empty())
    }

    /// No answer to an earlier question about this entity can be expected: if anyone still waits,
    /// it is asked for again, at once.
    pub fn ask_again(&mut self, key: &EntityKey, now: Time) {
        if let Some(flight) = self.flights.get_mut(key).filter(|flight| !flight.waiters.is_empty()) {
            flight.ask_again(&self.rules, now);
            self.reschedule(key);
        }
    }

    /// A source of this type is there now: what was not answered for lack of one is asked again.
    pub fn source_started(&mut self, entity_type: &str, now: Time) {
        let failed = |(key, flight): (&EntityKey, &Flight<W>)| {
            let has_failed = flight.failure(&self.rules, now).is_some();
            (key.entity_type() == entity_type && has_failed).then(|| key.clone())
        };
        let failed: Vec<_> = self.flights.iter().filter_map(failed).collect();
        for key in failed {
            self.invalidate(&key, now);
        }
    }

    /// Ends everything: no one is let in any more. Returns who waited.
    pub fn close(&mut self) -> Vec<Waiter<W>> {
        self.is_closed = true;
        let keys: Vec<_> = self.flights.keys().cloned().collect();
        keys.iter().flat_map(|key| self.remove_flight(key)).collect()
    }

    fn is_of_flight(&self, question: &Question) -> bool {
        self.flights.get(&question.key).is_some_and(|flight| flight.id == question.flight)
    }

    fn take_satisfied(&mut self, key: &EntityKey, fresh: &HydrationMode, stored_at: Time) -> Vec<Waiter<W>> {
        let woken = self.take_waiters(key, |waiter| waiter.is_satisfied(fresh, stored_at));
        if woken.iter().any(|waiter| waiter.kind == WaiterKind::Deferred) {
            self.reschedule(key);
        }
        woken
    }

    /// Takes waiters out of a flight, in the order in which they came.
    fn take_waiters(&mut self, key: &EntityKey, is_taken: impl Fn(&Waiter<W>) -> bool) -> Vec<Waiter<W>> {
        let Some(flight) = self.flights.get_mut(key) else { return Vec::new() };
        let taken: Vec<_> =
            flight.waiters.extract_if(.., |_, waiter| is_taken(waiter)).map(|(_, waiter)| waiter).collect();
        let deferred = taken.iter().filter(|waiter| waiter.kind == WaiterKind::Deferred).count();
        flight.deferred -= deferred;
        self.deferred -= deferred;
        self.blocking -= taken.len() - deferred;
        taken
    }

    /// Removes a flight and its timer; returns who waited.
    fn remove_flight(&mut self, key: &EntityKey) -> Vec<Waiter<W>> {
        let waiters = self.take_waiters(key, |_| true);
        if let Some(flight) = self.flights.remove(key) {
            self.timers.remove(&(flight.timer, key.clone()));
        }
        waiters
    }
}
