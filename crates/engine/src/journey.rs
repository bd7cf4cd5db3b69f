//! The way of an operation from its acceptance to its end, with the times of its steps. What is not
//! known of it is not guessed.

mod kept;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{FaultClass, OperationId, Seq, State, Time};

pub(crate) use kept::Journeys;

/// The most attempts, and the most waits for an operator, of a journey that are remembered, the
/// first ones.
const ATTEMPTS_MAX: usize = 32;

/// One attempt of a journey.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JourneyAttempt {
    /// Its number; the first is 1. An attempt that was throttled or returned keeps its number for
    /// the next one.
    pub number: u16,
    /// When its limits were granted and a worker took it.
    pub claimed_at: Time,
    /// When its call was sent; `None` if this process sent none.
    pub sent_at: Option<Time>,
    /// When its job was accepted, if it ends elsewhere.
    pub accepted_at: Option<Time>,
    /// When it ended.
    pub ended_at: Option<Time>,
    /// How it ended, as metrics name it.
    pub result: Option<&'static str>,
    /// The class of its fault.
    pub fault: Option<FaultClass>,
    /// The status of the response.
    pub status: Option<u16>,
    /// The upstream or the provider, or else the kind.
    pub upstream: Option<Arc<str>>,
}

/// A time in which an operation waited for an operator to decide: its outcome was unknown, or its
/// group was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecisionWait {
    /// When it began to wait.
    pub since: Time,
    /// When the operator decided; `None` if that is still awaited.
    pub until: Option<Time>,
}

/// The first operation of a held group that is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReleasedHead {
    pub seq: Seq,
    pub accepted_at: Time,
    /// When the group was held.
    pub held_since: Time,
}

/// The way of an operation, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Journey {
    /// When it joined its group: when it was accepted, or rerun.
    pub queued_at: Time,
    /// When it was its turn in the group; `None` when that is not known.
    pub turn_at: Option<Time>,
    /// Its attempts since then, in order.
    pub attempts: Vec<JourneyAttempt>,
    /// Those before it was rerun, in order.
    pub earlier_attempts: Vec<JourneyAttempt>,
    /// When it waited for an operator's decision, in order.
    pub decisions: Vec<DecisionWait>,
    /// When it ended.
    pub ended_at: Option<Time>,
    /// Whether earlier attempts are missing.
    pub is_partial: bool,
}

/// How long an operation spent in each step; `None` where that was not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JourneyTimes {
    /// In the queue of its group, behind others.
    pub turn: Option<Duration>,
    /// At the head of the queue, before its attempts and between them: for limits, for a time, for
    /// a free worker, for a paused group.
    pub limit: Option<Duration>,
    /// For an operator to decide: its outcome was unknown, or its group was held.
    pub decision: Option<Duration>,
    /// From its grant until the call was sent.
    pub sent: Option<Duration>,
    /// From the call until its answer, or until its job ended.
    pub answer: Option<Duration>,
}

/// The journey of an operation that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndedJourney {
    /// The operation.
    pub id: OperationId,
    /// Its group.
    pub group: Arc<str>,
    /// Its kind.
    pub kind: Arc<str>,
    /// How it ended.
    pub state: State,
    /// Attempts spent.
    pub attempt: u16,
    /// The class of its last fault.
    pub fault: Option<FaultClass>,
    /// The request id of its submission.
    pub request_id: Option<Arc<str>>,
    /// The way of it.
    pub journey: Journey,
}

/// Receives each operation that ended.
#[derive(Clone)]
pub struct JourneySink(Arc<dyn Fn(EndedJourney) + Send + Sync>);

impl JourneySink {
    /// Calls `receive` from the task that owns the partition, which it must not block.
    pub fn new(receive: impl Fn(EndedJourney) + Send + Sync + 'static) -> Self {
        Self(Arc::new(receive))
    }

    pub(crate) fn pass(&self, ended: EndedJourney) {
        (self.0)(ended);
    }
}

impl fmt::Debug for JourneySink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JourneySink(..)")
    }
}

impl Journey {
    const fn new(queued_at: Time) -> Self {
        Self {
            queued_at,
            turn_at: None,
            attempts: Vec::new(),
            earlier_attempts: Vec::new(),
            decisions: Vec::new(),
            ended_at: None,
            is_partial: false,
        }
    }

    /// Whether nothing is recorded but when it joined its group.
    const fn is_new(&self) -> bool {
        self.turn_at.is_none() && self.attempts.is_empty() && self.decisions.is_empty()
    }

    /// Whether it was begun and has not ended, or was not a plain success: it failed, was tried
    /// again, or an operator decided about it.
    fn is_of_interest(&self) -> bool {
        let has_one = self.attempts.len() == 1 && self.earlier_attempts.is_empty();
        let is_plain = has_one && self.decisions.is_empty();
        self.attempts.last().is_some_and(|last| !is_plain || self.ended_at.is_none() || last.fault.is_some())
    }

    /// It is at the head of its group. Of what joined since `known_since`, every change of the turn
    /// is known.
    fn reach_head(&mut self, known_since: Time) {
        if self.turn_at.is_none() && !self.is_partial && self.queued_at >= known_since {
            // It never was behind another one.
            self.turn_at = Some(self.queued_at);
        }
    }

    /// The way of an operation of which only the beginning and the end are known.
    pub(crate) fn unrecorded(queued_at: Time, ended_at: Time) -> Self {
        Self { ended_at: Some(ended_at), is_partial: true, ..Self::new(queued_at) }
    }

    /// Adds up the time in each step until now, or until its end.
    #[must_use]
    pub fn times(&self, now: Time) -> JourneyTimes {
        let end = self.ended_at.unwrap_or(now);
        let turn = self.turn_at.map(|at| at.since(self.queued_at));
        // A sum in which attempts are missing would say too little.
        if self.is_partial {
            return JourneyTimes { turn, ..JourneyTimes::default() };
        }
        let mut waiting_since = self.turn_at;
        let (mut limit, mut sent, mut answer) = (waiting_since.map(|_| Duration::ZERO), None, None);
        for attempt in &self.attempts {
            let waited = waiting_since.map(|since| attempt.claimed_at.since(since));
            limit = limit.zip(waited).map(|(sum, waited)| sum + waited);
            if let Some(at) = attempt.sent_at {
                add(&mut sent, at.since(attempt.claimed_at));
            }
            let ended = attempt.ended_at.unwrap_or(end);
            add(&mut answer, ended.since(attempt.sent_at.unwrap_or(attempt.claimed_at)));
            waiting_since = Some(ended);
        }
        let waits = self.attempts.last().is_none_or(|last| last.ended_at.is_some());
        let last = waiting_since.filter(|_| waits).map_or(Duration::ZERO, |since| end.since(since));
        // Decisions are made while it waits at the head.
        let decision: Duration =
            self.decisions.iter().map(|wait| wait.until.unwrap_or(end).since(wait.since)).sum();
        let times = JourneyTimes { turn, limit: limit.map(|sum| sum + last), sent, answer, decision: None };
        times.with_decision(decision)
    }

    fn add_decision(&mut self, wait: DecisionWait) {
        if self.decisions.len() == ATTEMPTS_MAX {
            self.is_partial = true;
            return;
        }
        self.decisions.push(wait);
    }

    fn end_decision(&mut self, at: Time) {
        if let Some(wait) = self.decisions.last_mut() {
            wait.until.get_or_insert(at);
        }
    }
}

impl JourneyTimes {
    /// Counts a part of the time at the head of the queue as the wait for a decision.
    fn with_decision(self, waited: Duration) -> Self {
        let decision = self.limit.map(|_| self.decision.unwrap_or_default() + waited);
        Self { limit: self.limit.map(|sum| sum.saturating_sub(waited)), decision, ..self }
    }
}

fn add(sum: &mut Option<Duration>, more: Duration) {
    *sum = Some(sum.unwrap_or_default() + more);
}
