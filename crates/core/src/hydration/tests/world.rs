//! A table with a clock, and callers that are numbers.

use std::time::Duration;

use super::super::*;
use crate::time::Time;

pub(super) type Table = FlightTable<u32>;

pub(super) struct World {
    pub(super) table: Table,
    pub(super) now: Time,
    /// Every question that left.
    pub(super) published: Vec<Question>,
}

/// The outcome of an ask, as short as tests want it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Joined,
    Opened,
    Upgraded,
    LookAgain,
    NotFound,
    Failed(FlightFailure),
    Refused(FlightBound),
}

pub(super) fn key(id: &str) -> EntityKey {
    EntityKey::new("acme", "customer", id).unwrap()
}

pub(super) fn fields(names: &[&str]) -> HydrationMode {
    HydrationMode::partial(names.iter().copied()).unwrap()
}

pub(super) fn absence() -> Absence {
    Absence { reason: AbsenceReason::DeletedOrNeverExisted, stamp: EntityStamp::default() }
}

pub(super) fn handles(woken: &[Waiter<u32>]) -> Vec<u32> {
    woken.iter().map(|waiter| waiter.handle).collect()
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(FlightRules::default())
    }

    pub(super) fn with(rules: FlightRules) -> Self {
        let now = Time::from_millis(1_000_000);
        Self { table: FlightTable::new(rules), now, published: Vec::new() }
    }

    pub(super) fn waiter(&self, who: u32, mode: &HydrationMode, kind: WaiterKind) -> Waiter<u32> {
        let wait = match kind {
            WaiterKind::Blocking => Duration::from_millis(500),
            WaiterKind::Deferred => Duration::from_secs(60),
        };
        let correlation_id = CorrelationId::new(&format!("c{who}")).unwrap();
        Waiter {
            correlation_id,
            mode: mode.clone(),
            since: None,
            until: self.now.after(wait),
            kind,
            handle: who,
        }
    }

    pub(super) fn ask(&mut self, id: &str, who: u32, mode: &HydrationMode) -> (Reply, Option<Ticket>) {
        let waiter = self.waiter(who, mode, WaiterKind::Blocking);
        self.ask_as(&key(id), waiter)
    }

    pub(super) fn defer(&mut self, id: &str, who: u32) -> Reply {
        let waiter = self.waiter(who, &HydrationMode::Full, WaiterKind::Deferred);
        self.ask_as(&key(id), waiter).0
    }

    pub(super) fn ask_as(&mut self, key: &EntityKey, waiter: Waiter<u32>) -> (Reply, Option<Ticket>) {
        match self.table.ask(key, AskRequest { waiter, has_looked_again: false }, self.now) {
            AskOutcome::Joined(ticket) => (Reply::Joined, Some(ticket)),
            AskOutcome::Opened(ticket, question) => {
                self.published.push(question);
                (Reply::Opened, Some(ticket))
            }
            AskOutcome::Upgraded(ticket, question) => {
                self.published.push(question);
                (Reply::Upgraded, Some(ticket))
            }
            AskOutcome::LookAgain(_) => (Reply::LookAgain, None),
            AskOutcome::NotFound(..) => (Reply::NotFound, None),
            AskOutcome::Unanswered(_, failure, _) => (Reply::Failed(failure), None),
            AskOutcome::Refused(_, bound) => (Reply::Refused(bound), None),
        }
    }

    /// Moves the clock from timer to timer; returns whose time was up.
    pub(super) fn advance(&mut self, millis: u64) -> Vec<u32> {
        let end = self.now.after(Duration::from_millis(millis));
        let mut expired = Vec::new();
        while let Some(next) = self.table.next_timer().filter(|next| *next <= end) {
            self.now = next.max(self.now);
            expired.extend(self.tick());
        }
        self.now = end;
        expired
    }

    pub(super) fn tick(&mut self) -> Vec<u32> {
        let mut expired = Vec::new();
        for effect in self.table.tick(self.now) {
            match effect {
                TimerEffect::Publish(question) => self.published.push(question),
                TimerEffect::Expire(waiters) => expired.extend(handles(&waiters)),
            }
        }
        expired
    }

    pub(super) fn last(&self) -> Question {
        self.published.last().unwrap().clone()
    }

    pub(super) fn not_found(&mut self, id: &str) -> Vec<u32> {
        handles(&self.table.not_found(&key(id), absence(), self.now, 0))
    }

    pub(super) fn updated(&mut self, id: &str, fresh: &HydrationMode) -> Vec<u32> {
        handles(&self.table.updated(&key(id), fresh, self.now, self.now))
    }
}
