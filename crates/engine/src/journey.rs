//! The way of an operation from its acceptance to its end, with the times of its steps. The owner
//! of a partition keeps the last ones in memory: what happened before it became the owner, and what
//! is forgotten, is not known and not guessed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tidegate_core::model::{Claim, EndedOperation};
use tidegate_core::{FaultClass, OperationId, Seq, State, Time, Verdict};

use crate::carry::{Report, describe};

/// The most journeys that a partition remembers.
const JOURNEYS_MAX: usize = 2_000;
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
            decisions: Vec::new(),
            ended_at: None,
            is_partial: false,
        }
    }

    /// Whether nothing is recorded but when it joined its group.
    const fn is_new(&self) -> bool {
        self.turn_at.is_none() && self.attempts.is_empty() && self.decisions.is_empty()
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

/// The journeys that a partition remembers.
#[derive(Debug)]
pub(crate) struct Journeys {
    /// In the order in which they were first recorded; once there are [`JOURNEYS_MAX`], each new
    /// one replaces the oldest.
    kept: Vec<(Seq, Journey)>,
    places: FxHashMap<Seq, usize>,
    /// The place of the oldest.
    oldest: usize,
    /// Of operations accepted since then, every change of the turn is known.
    known_since: Time,
}

impl Journeys {
    /// Remembers what happens from now on.
    pub(crate) fn new(now: Time) -> Self {
        Self { kept: Vec::new(), places: FxHashMap::default(), oldest: 0, known_since: now }
    }

    fn entry(&mut self, seq: Seq, queued_at: Time, now: Time) -> &mut Journey {
        let place = match self.places.get(&seq) {
            Some(place) => *place,
            None => self.insert(seq, queued_at, now),
        };
        &mut self.kept[place].1
    }

    fn insert(&mut self, seq: Seq, queued_at: Time, now: Time) -> usize {
        let place = if self.kept.len() < JOURNEYS_MAX {
            self.kept.push((seq, Journey::new(queued_at)));
            self.kept.len() - 1
        } else {
            self.replace_oldest(seq, queued_at, now)
        };
        self.places.insert(seq, place);
        place
    }

    fn replace_oldest(&mut self, seq: Seq, queued_at: Time, now: Time) -> usize {
        let place = self.oldest;
        self.oldest = (place + 1) % JOURNEYS_MAX;
        let (forgotten, journey) = &mut self.kept[place];
        // Whoever is claimed next without a record may be the one that was forgotten.
        if journey.ended_at.is_none() && journey.attempts.is_empty() {
            self.known_since = now;
        }
        self.places.remove(forgotten);
        *forgotten = seq;
        // Its list is used again: nearly every operation has an attempt.
        let mut attempts = std::mem::take(&mut journey.attempts);
        attempts.clear();
        *journey = Journey { attempts, ..Journey::new(queued_at) };
        place
    }

    fn find(&mut self, seq: Seq) -> Option<&mut Journey> {
        self.places.get(&seq).map(|place| &mut self.kept[*place].1)
    }

    /// The journey of an operation at the head of its group.
    fn head(&mut self, seq: Seq, queued_at: Time, now: Time) -> &mut Journey {
        let known_since = self.known_since;
        let journey = self.entry(seq, queued_at, now);
        journey.reach_head(known_since);
        journey
    }

    /// An operation was rerun.
    pub(crate) fn reopened(&mut self, seq: Seq, at: Time) {
        *self.entry(seq, at, at) = Journey::new(at);
    }

    /// Limits were granted to an operation, and a worker took it.
    pub(crate) fn claimed(&mut self, claim: &Claim, at: Time) {
        // A poll is part of the attempt whose job it asks about.
        if claim.poll {
            return;
        }
        let known_since = self.known_since;
        let journey = self.entry(claim.seq, claim.accepted_at, at);
        journey.is_partial |= journey.is_new() && claim.attempt > 1;
        journey.reach_head(known_since);
        if journey.attempts.len() == ATTEMPTS_MAX {
            journey.is_partial = true;
            return;
        }
        if journey.attempts.is_empty() {
            // Most need one.
            journey.attempts.reserve_exact(1);
        }
        journey.attempts.push(JourneyAttempt {
            number: claim.attempt,
            claimed_at: at,
            sent_at: None,
            accepted_at: None,
            ended_at: None,
            result: None,
            fault: None,
            status: None,
            upstream: None,
        });
    }

    fn open_attempt(&mut self, seq: Seq) -> Option<&mut JourneyAttempt> {
        self.find(seq)?.attempts.last_mut().filter(|attempt| attempt.ended_at.is_none())
    }

    /// The call of an operation was sent.
    pub(crate) fn sent(&mut self, seq: Seq, at: Time) {
        if let Some(attempt) = self.open_attempt(seq) {
            attempt.sent_at.get_or_insert(at);
        }
    }

    /// An attempt was settled, or its job was accepted.
    pub(crate) fn settled(&mut self, report: &Report, at: Time) {
        let Some(attempt) = self.open_attempt(report.seq) else { return };
        let (result, fault) = describe(&report.verdict);
        attempt.status = report.figures.status.or(attempt.status);
        attempt.upstream = report.figures.upstream.clone().or_else(|| attempt.upstream.take());
        if matches!(report.verdict, Verdict::Accepted { .. }) {
            attempt.accepted_at.get_or_insert(at);
            return;
        }
        // A job whose poll failed is awaited as before, unless its operation ends with it.
        if attempt.accepted_at.is_some()
            && matches!(report.verdict, Verdict::PollFailed { .. } | Verdict::Returned)
        {
            return;
        }
        (attempt.result, attempt.fault) = (Some(result), fault.map(|fault| fault.class));
        attempt.ended_at = Some(at);
    }

    /// The outcome of an operation is unknown, and an operator has to decide.
    pub(crate) fn undecided(&mut self, seq: Seq, at: Time) {
        let Some(journey) = self.find(seq) else { return };
        // What was lost with its worker has no report.
        if let Some(attempt) = journey.attempts.last_mut() {
            attempt.ended_at.get_or_insert(at);
        }
        journey.add_decision(DecisionWait { since: at, until: None });
    }

    /// An operator decided that an operation of unknown outcome is repeated.
    pub(crate) fn repeated(&mut self, seq: Seq, at: Time) {
        if let Some(journey) = self.find(seq) {
            journey.end_decision(at);
        }
    }

    /// An operator resumed a held group.
    pub(crate) fn released(&mut self, head: &ReleasedHead, at: Time) {
        let journey = self.head(head.seq, head.accepted_at, at);
        let since = head.held_since.max(journey.turn_at.unwrap_or(journey.queued_at));
        journey.add_decision(DecisionWait { since, until: Some(at) });
    }

    /// An operation ended, and the next one of its group has its turn.
    pub(crate) fn ended(&mut self, ended: &EndedOperation, now: Time) {
        if let Some(journey) = self.find(ended.seq) {
            journey.ended_at = Some(ended.at);
            journey.end_decision(ended.at);
            if let Some(attempt) = journey.attempts.last_mut() {
                // A batch is sealed a moment after what it settles.
                attempt.ended_at = Some(attempt.ended_at.map_or(ended.at, |at| at.min(ended.at)));
            }
        }
        if let Some((next, queued_at)) = ended.next {
            self.entry(next, queued_at, now).turn_at.get_or_insert(ended.at);
        }
    }

    /// The journey of an operation.
    pub(crate) fn get(&self, seq: Seq) -> Option<&Journey> {
        self.places.get(&seq).map(|place| &self.kept[*place].1)
    }

    /// The times of an operation that is the head of a group which is held since then.
    pub(crate) fn of_held(&self, seq: Seq, queued_at: Time, held_since: Time, now: Time) -> JourneyTimes {
        let known = self.get(seq).filter(|journey| journey.turn_at.is_some());
        let times =
            known.map_or_else(|| self.of_waiting(queued_at, false, now), |journey| journey.times(now));
        let since = held_since.max(known.and_then(|journey| journey.turn_at).unwrap_or(queued_at));
        times.with_decision(now.since(since))
    }

    /// The journey of an operation that was not claimed yet and is the head of its group, or is
    /// behind others.
    pub(crate) fn of_waiting(&self, queued_at: Time, is_behind: bool, now: Time) -> JourneyTimes {
        let is_known = queued_at >= self.known_since;
        match is_behind {
            true => JourneyTimes { turn: Some(now.since(queued_at)), ..JourneyTimes::default() },
            false if is_known => JourneyTimes {
                turn: Some(Duration::ZERO),
                limit: Some(now.since(queued_at)),
                decision: Some(Duration::ZERO),
                ..JourneyTimes::default()
            },
            false => JourneyTimes::default(),
        }
    }
}

#[cfg(test)]
mod tests;
