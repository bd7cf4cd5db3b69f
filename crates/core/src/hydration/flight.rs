//! One flight: the questions that were asked about an entity, and who waits for the answer.

use std::collections::BTreeMap;

use super::key::{CorrelationId, EntityKey};
use super::mode::HydrationMode;
use super::rules::FlightRules;
use crate::bounds::WAITERS_SHOWN;
use crate::time::Time;

/// Questions of a flight whose correlation ids are remembered; the oldest are forgotten first.
const QUESTIONS_KEPT: usize = 16;

/// How a waiter waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaiterKind {
    /// A caller that gives up by itself and is failed at once when no answer can be expected.
    Blocking,
    /// Work that was put off; it waits until its own deadline, whatever happens to the flight.
    Deferred,
}

/// Someone who waits for an entity. `W` is how to reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiter<W> {
    /// Its own correlation id, which may never have been published.
    pub correlation_id: CorrelationId,
    /// What it wants.
    pub mode: HydrationMode,
    /// The oldest copy that will do, by when it was stored.
    pub since: Option<Time>,
    /// When it gives up.
    pub until: Time,
    /// How it waits.
    pub kind: WaiterKind,
    /// How to reach it.
    pub handle: W,
}

impl<W> Waiter<W> {
    /// Whether a copy of which `fresh` is current, stored or confirmed at `stored_at`, is enough.
    pub(super) fn is_satisfied(&self, fresh: &HydrationMode, stored_at: Time) -> bool {
        fresh.covers(&self.mode) && self.since.is_none_or(|since| stored_at >= since)
    }
}

/// A question to publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The entity.
    pub key: EntityKey,
    /// What is asked for.
    pub mode: HydrationMode,
    /// What the answer will repeat.
    pub correlation_id: CorrelationId,
    /// The flight that asks.
    pub(super) flight: u64,
}

/// Why no answer is expected any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlightFailure {
    /// No one answered in time.
    TimedOut,
    /// There is no source: no one received the question.
    SourceAbsent,
    /// The question could not be published.
    BusFailed,
    /// The source received the question and could not look.
    SourceFailed,
}

/// A flight, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlightView {
    /// The entity.
    pub key: EntityKey,
    /// What is asked for.
    pub mode: HydrationMode,
    /// When its window began.
    pub opened: Time,
    /// When its window ends.
    pub until: Time,
    /// How many questions it asked.
    pub questions: u32,
    /// Why newcomers fail at once, if they do.
    pub failure: Option<FlightFailure>,
    /// How many callers wait.
    pub waiting: usize,
    /// How many pieces of work are deferred.
    pub deferred: usize,
    /// Who waits: the first of them.
    pub waiters: Vec<WaiterView>,
}

/// A waiter, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaiterView {
    /// Its own correlation id.
    pub correlation_id: CorrelationId,
    /// What it wants.
    pub mode: HydrationMode,
    /// When it gives up.
    pub until: Time,
    /// How it waits.
    pub kind: WaiterKind,
}

#[derive(Debug)]
struct AskedQuestion {
    correlation_id: CorrelationId,
    mode: HydrationMode,
    epoch: u32,
}

#[derive(Debug)]
pub(super) struct Flight<W> {
    pub(super) id: u64,
    /// On whose behalf it asks.
    leader: CorrelationId,
    /// Grows when an earlier "not found" may have become wrong.
    epoch: u32,
    epoch_began: Time,
    pub(super) opened: Time,
    last_asked: Time,
    /// What the questions of this window ask for.
    pub(super) asked: HydrationMode,
    /// What was stored since the window began.
    pub(super) brought: Option<HydrationMode>,
    questions: Vec<AskedQuestion>,
    questions_asked: u32,
    pub(super) upgrades: u8,
    retries_left: u8,
    /// When the next question leaves.
    pub(super) due: Option<Time>,
    failed: Option<FlightFailure>,
    pub(super) waiters: BTreeMap<u64, Waiter<W>>,
    pub(super) deferred: usize,
    /// The time under which the table keeps its timer.
    pub(super) timer: Time,
}

impl<W> Flight<W> {
    pub(super) fn new(id: u64, leader: CorrelationId, asked: HydrationMode, now: Time) -> Self {
        Self {
            id,
            leader,
            epoch: 0,
            epoch_began: now,
            opened: now,
            last_asked: now,
            asked,
            brought: None,
            questions: Vec::with_capacity(2),
            questions_asked: 0,
            upgrades: 0,
            retries_left: 0,
            due: None,
            failed: None,
            waiters: BTreeMap::new(),
            deferred: 0,
            timer: Time::MAX,
        }
    }

    /// Begins a window with its first question.
    pub(super) fn begin_window(&mut self, key: &EntityKey, rules: &FlightRules, now: Time) -> Question {
        self.begin_epoch(now);
        self.opened = now;
        self.brought = None;
        self.upgrades = 0;
        self.retries_left = rules.max_retries.saturating_add(1);
        self.failed = None;
        self.ask(key, rules, now)
    }

    /// Begins another window for those who still wait.
    pub(super) fn begin_round(&mut self, key: &EntityKey, rules: &FlightRules, now: Time) -> Question {
        if let Some(wanted) = self.wanted() {
            self.asked = wanted;
        }
        self.begin_window(key, rules, now)
    }

    /// What all who wait want together.
    fn wanted(&self) -> Option<HydrationMode> {
        let modes = self.waiters.values().map(|waiter| &waiter.mode);
        modes.fold(None, |all, mode| {
            Some(all.map_or_else(|| mode.clone(), |all: HydrationMode| all.union(mode)))
        })
    }

    /// Asks one of the questions that are left.
    pub(super) fn ask(&mut self, key: &EntityKey, rules: &FlightRules, now: Time) -> Question {
        self.retries_left = self.retries_left.saturating_sub(1);
        self.due = (self.retries_left > 0).then(|| now.after(rules.retry_backoff));
        self.question(key, now)
    }

    /// Asks for more. This is not one of the questions that are counted.
    pub(super) fn upgrade(&mut self, key: &EntityKey, mode: &HydrationMode, now: Time) -> Question {
        let is_first = self.upgrades == 0;
        self.asked = if is_first { self.asked.union(mode) } else { HydrationMode::Full };
        self.upgrades += 1;
        self.question(key, now)
    }

    fn question(&mut self, key: &EntityKey, now: Time) -> Question {
        self.last_asked = now;
        self.questions_asked = self.questions_asked.saturating_add(1);
        // Flights have different ids, so questions of all flights of a table differ.
        let number = self.id.wrapping_shl(16) | u64::from(self.questions_asked & 0xffff);
        let correlation_id = self.leader.of_question(number);
        if self.questions.len() >= QUESTIONS_KEPT {
            self.questions.remove(0);
        }
        let (mode, epoch) = (self.asked.clone(), self.epoch);
        self.questions.push(AskedQuestion {
            correlation_id: correlation_id.clone(),
            mode: mode.clone(),
            epoch,
        });
        Question { key: key.clone(), mode, correlation_id, flight: self.id }
    }

    /// From now on a "not found" that answers an earlier question does not count.
    pub(super) fn begin_epoch(&mut self, now: Time) {
        self.epoch += 1;
        self.epoch_began = now;
    }

    /// Something was stored that not all who wait are satisfied with.
    pub(super) fn note_brought(&mut self, fresh: &HydrationMode) {
        let both = self.brought.take().map_or_else(|| fresh.clone(), |brought| brought.union(fresh));
        self.brought = Some(both);
    }

    /// The answer may have been lost: asks again, at most once in the time of a retry.
    pub(super) fn ask_again(&mut self, rules: &FlightRules, now: Time) {
        self.begin_epoch(now);
        self.opened = now;
        self.failed = None;
        // Deferred work may have joined after the flight failed, and want more.
        if let Some(wanted) = self.wanted() {
            self.asked = self.asked.union(&wanted);
        }
        self.retries_left = self.retries_left.max(1);
        self.due = Some(self.last_asked.after(rules.retry_backoff).max(now));
    }

    /// Gives up on an answer; it may come all the same.
    pub(super) fn fail(&mut self, failure: FlightFailure) {
        self.failed = Some(failure);
        self.due = None;
    }

    /// Why no answer is expected any more; `None` while one is.
    pub(super) fn failure(&self, rules: &FlightRules, now: Time) -> Option<FlightFailure> {
        let is_spent = self.due.is_none() && now >= self.last_asked.after(rules.wait_timeout);
        self.failed.or(is_spent.then_some(FlightFailure::TimedOut))
    }

    /// Whether a "not found" with this correlation id or time answers a question of this epoch.
    pub(super) fn is_answered_by(&self, id: Option<&CorrelationId>, as_of: Option<Time>) -> bool {
        let is_own =
            |question: &AskedQuestion| question.epoch == self.epoch && Some(&question.correlation_id) == id;
        // Events carry whole milliseconds.
        let is_newer = |as_of: Time| as_of.as_millis() >= self.epoch_began.as_millis();
        self.questions.iter().any(is_own) || as_of.is_some_and(is_newer)
    }

    /// What the question with this correlation id asked for.
    pub(super) fn asked_by(&self, id: &CorrelationId) -> Option<&HydrationMode> {
        self.questions.iter().find(|question| question.correlation_id == *id).map(|question| &question.mode)
    }

    /// Whether this is the last question that was asked.
    pub(super) fn is_latest(&self, question: &Question) -> bool {
        self.questions.last().is_some_and(|last| last.correlation_id == question.correlation_id)
    }

    pub(super) fn window_end(&self, rules: &FlightRules) -> Time {
        self.opened.after(rules.in_flight_window)
    }

    /// When something is to be done about this flight.
    pub(super) fn next_timer(&self, rules: &FlightRules) -> Time {
        let mut next = self.window_end(rules).min(self.due.unwrap_or(Time::MAX));
        if self.deferred > 0 {
            let deferred = self.waiters.values().filter(|waiter| waiter.kind == WaiterKind::Deferred);
            next = deferred.fold(next, |next, waiter| next.min(waiter.until));
        }
        next
    }

    pub(super) fn view(&self, key: &EntityKey, rules: &FlightRules, now: Time) -> FlightView {
        let waiter = |waiter: &Waiter<W>| WaiterView {
            correlation_id: waiter.correlation_id.clone(),
            mode: waiter.mode.clone(),
            until: waiter.until,
            kind: waiter.kind,
        };
        FlightView {
            key: key.clone(),
            mode: self.asked.clone(),
            opened: self.opened,
            until: self.window_end(rules),
            questions: self.questions_asked,
            failure: self.failure(rules, now),
            waiting: self.waiters.len() - self.deferred,
            deferred: self.deferred,
            waiters: self.waiters.values().take(WAITERS_SHOWN).map(waiter).collect(),
        }
    }
}
