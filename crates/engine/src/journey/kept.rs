//! The journeys that the owner of a partition keeps in memory, a bounded number of the last ones.
//! What happened before it became the owner, and what is forgotten, is not known.

use std::time::Duration;

use rustc_hash::FxHashMap;
use tidegate_core::model::{Claim, EndedOperation};
use tidegate_core::{Seq, Time, Verdict};

use super::{ATTEMPTS_MAX, DecisionWait, Journey, JourneyAttempt, JourneyTimes, ReleasedHead};
use crate::carry::{Report, describe};

/// The most journeys that a partition remembers.
const JOURNEYS_MAX: usize = 2_000;
/// The most journeys that are passed over, because someone may ask for them, to find one that may
/// be forgotten.
const PASSED_OVER_MAX: usize = 32;

/// The journeys that a partition remembers.
#[derive(Debug)]
pub(crate) struct Journeys {
    /// In the order in which they were first recorded; once there are [`JOURNEYS_MAX`], each new
    /// one takes the place of an old one.
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
        let place = self.place_to_reuse();
        self.oldest = (place + 1) % JOURNEYS_MAX;
        let (forgotten, journey) = &mut self.kept[place];
        // Whoever waits or is claimed without a record may be the one that was forgotten.
        if journey.ended_at.is_none() {
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

    /// The place of the oldest journey that no one is likely to ask for: people look at what goes
    /// on, at what is unknown and at what failed, long after thousands of others have succeeded.
    fn place_to_reuse(&self) -> usize {
        let mut places = (0..PASSED_OVER_MAX).map(|nth| (self.oldest + nth) % JOURNEYS_MAX);
        places.find(|place| !self.kept[*place].1.is_of_interest()).unwrap_or(self.oldest)
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
        let journey = self.entry(seq, at, at);
        let mut earlier = std::mem::take(&mut journey.earlier_attempts);
        earlier.append(&mut journey.attempts);
        earlier.drain(..earlier.len().saturating_sub(ATTEMPTS_MAX));
        *journey = Journey { earlier_attempts: earlier, ..Journey::new(at) };
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
