//! A caller asks: it joins a flight, opens one, or learns at once what is remembered.

use super::{FlightTable, Ticket};
use crate::bounds::FLIGHT_UPGRADES_MAX;
use crate::hydration::flight::{Flight, FlightFailure, Question, Waiter, WaiterKind};
use crate::hydration::key::EntityKey;
use crate::hydration::mode::HydrationMode;
use crate::hydration::negatives::Absence;
use crate::time::Time;

/// A caller's request for what its local copy lacks.
#[derive(Clone, Debug)]
pub struct AskRequest<W> {
    /// The caller.
    pub waiter: Waiter<W>,
    /// Whether it was already told to look at the local copy again; it is not told twice.
    pub has_looked_again: bool,
}

/// What a caller is to do. A waiter that was not registered is returned.
#[derive(Debug, PartialEq, Eq)]
pub enum AskOutcome<W> {
    /// It is registered; another's question will be answered.
    Joined(Ticket),
    /// It is registered and opened the flight: look at the local copy again, then publish.
    Opened(Ticket, Question),
    /// It is registered and wants more than the flight asked for: publish.
    Upgraded(Ticket, Question),
    /// What it wants has been stored meanwhile: look at the local copy again.
    LookAgain(Waiter<W>),
    /// The entity is remembered as not found.
    NotFound(Waiter<W>, Absence),
    /// No answer is expected before this time.
    Unanswered(Waiter<W>, FlightFailure, Time),
    /// There is no room.
    Refused(Waiter<W>, FlightBound),
}

/// Why there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlightBound {
    /// Too many flights.
    Flights,
    /// Too many callers wait.
    Waiters,
    /// Too many callers wait for this entity.
    WaitersOfEntity,
    /// Too much work is deferred.
    Deferred,
    /// Too much work is deferred for this entity.
    DeferredOfEntity,
    /// The tenant asks too many questions.
    QuestionRate,
    /// The table was closed.
    Closed,
}

impl<W> FlightTable<W> {
    /// Registers a caller whose local copy lacks what it wants, or returns what is remembered.
    pub fn ask(&mut self, key: &EntityKey, request: AskRequest<W>, now: Time) -> AskOutcome<W> {
        let AskRequest { waiter, has_looked_again } = request;
        if self.is_closed {
            return AskOutcome::Refused(waiter, FlightBound::Closed);
        }
        if let Some(absence) = self.negatives.get(key, now) {
            return AskOutcome::NotFound(waiter, absence);
        }
        if let Some(bound) = self.full(key, waiter.kind) {
            return AskOutcome::Refused(waiter, bound);
        }
        let Some(flight) = self.flights.get(key) else {
            return self.open(key, waiter, now);
        };
        let is_there = flight.brought.as_ref().is_some_and(|brought| brought.covers(&waiter.mode));
        if is_there && !has_looked_again {
            return AskOutcome::LookAgain(waiter);
        }
        if flight.window_end(&self.rules) <= now {
            return self.reopen(key, waiter, now);
        }
        let wants_more = !flight.asked.covers(&waiter.mode) && flight.upgrades < FLIGHT_UPGRADES_MAX;
        match flight.failure(&self.rules, now) {
            Some(failure) if waiter.kind == WaiterKind::Blocking => {
                let until = flight.window_end(&self.rules);
                AskOutcome::Unanswered(waiter, failure, until)
            }
            None if wants_more => self.upgrade(key, waiter, now),
            _ => AskOutcome::Joined(self.register(key, waiter)),
        }
    }

    fn full(&self, key: &EntityKey, kind: WaiterKind) -> Option<FlightBound> {
        let flight = self.flights.get(key);
        let (deferred, all) = flight.map_or((0, 0), |flight| (flight.deferred, flight.waiters.len()));
        match kind {
            WaiterKind::Blocking if self.blocking >= self.rules.waiters_max => Some(FlightBound::Waiters),
            WaiterKind::Blocking if all - deferred >= self.rules.flight_waiters_max => {
                Some(FlightBound::WaitersOfEntity)
            }
            WaiterKind::Deferred if self.deferred >= self.rules.deferred_max => Some(FlightBound::Deferred),
            WaiterKind::Deferred if deferred >= self.rules.deferred_of_entity_max => {
                Some(FlightBound::DeferredOfEntity)
            }
            _ => None,
        }
    }

    fn open(&mut self, key: &EntityKey, waiter: Waiter<W>, now: Time) -> AskOutcome<W> {
        if self.flights.len() >= self.rules.flights_max {
            return AskOutcome::Refused(waiter, FlightBound::Flights);
        }
        if !self.rate.take(key.tenant(), self.rules.questions_per_s, now) {
            return AskOutcome::Refused(waiter, FlightBound::QuestionRate);
        }
        self.last_id += 1;
        let mut flight = Flight::new(self.last_id, waiter.correlation_id.clone(), waiter.mode.clone(), now);
        let question = flight.begin_window(key, &self.rules, now);
        self.flights.insert(key.clone(), flight);
        let ticket = self.register(key, waiter);
        self.reschedule(key);
        AskOutcome::Opened(ticket, question)
    }

    /// The window has ended, and the timer has not come yet.
    fn reopen(&mut self, key: &EntityKey, waiter: Waiter<W>, now: Time) -> AskOutcome<W> {
        if !self.rate.take(key.tenant(), self.rules.questions_per_s, now) {
            return AskOutcome::Refused(waiter, FlightBound::QuestionRate);
        }
        let ticket = self.register(key, waiter);
        let question = self.flights.get_mut(key).map(|flight| flight.begin_round(key, &self.rules, now));
        self.reschedule(key);
        match question {
            Some(question) => AskOutcome::Opened(ticket, question),
            None => AskOutcome::Joined(ticket),
        }
    }

    fn upgrade(&mut self, key: &EntityKey, waiter: Waiter<W>, now: Time) -> AskOutcome<W> {
        if !self.rate.take(key.tenant(), self.rules.questions_per_s, now) {
            return AskOutcome::Refused(waiter, FlightBound::QuestionRate);
        }
        let mode: HydrationMode = waiter.mode.clone();
        let ticket = self.register(key, waiter);
        match self.flights.get_mut(key).map(|flight| flight.upgrade(key, &mode, now)) {
            Some(question) => AskOutcome::Upgraded(ticket, question),
            None => AskOutcome::Joined(ticket),
        }
    }

    fn register(&mut self, key: &EntityKey, waiter: Waiter<W>) -> Ticket {
        self.last_id += 1;
        let ticket = Ticket { key: key.clone(), waiter: self.last_id };
        let Some(flight) = self.flights.get_mut(key) else { return ticket };
        let is_deferred = waiter.kind == WaiterKind::Deferred;
        flight.waiters.insert(ticket.waiter, waiter);
        if is_deferred {
            flight.deferred += 1;
            self.deferred += 1;
            self.reschedule(key);
        } else {
            self.blocking += 1;
        }
        ticket
    }
}
