//! Records the ways of operations from batches that are durable, and passes on those that ended.

use tidegate_core::model::{ActiveOperation, EndedOperation, OperationIdentity};
use tidegate_core::{OperationId, State, Time};
use tidegate_store::Clock;

use super::Owner;
use super::batch::SealedBatch;
use crate::envelope::Envelope;
use crate::journey::{EndedJourney, Journey, JourneyAttempt, JourneyTimes};

impl Owner {
    /// Records a durable batch, before its calls are sent.
    pub(super) fn record_journeys(&mut self, sealed: &SealedBatch) {
        for report in &sealed.reports {
            self.journeys.settled(report, sealed.at);
        }
        for seq in &sealed.unknown {
            self.journeys.undecided(*seq, sealed.at);
        }
        for seq in &sealed.repeated {
            self.journeys.repeated(*seq, sealed.at);
        }
        for ended in &sealed.ended {
            self.journeys.ended(ended, sealed.at);
        }
        for head in &sealed.released {
            self.journeys.released(head, sealed.at);
        }
        for seq in &sealed.reopened {
            self.journeys.reopened(*seq, sealed.at);
        }
        let handed_out = sealed.takers.iter().flat_map(|taker| taker.claims.iter().flatten());
        for claim in sealed.claims.iter().chain(handed_out) {
            self.journeys.claimed(claim, sealed.at);
        }
        if let Some(sink) = self.options.journey_sink.clone() {
            let ended = sealed.ended.iter().filter_map(|ended| self.ended_journey(ended));
            ended.for_each(|ended| sink.pass(ended));
        }
    }

    /// The way of an operation that ended.
    fn ended_journey(&self, ended: &EndedOperation) -> Option<EndedJourney> {
        let operation = self.payloads.get(ended.seq);
        let journey = self.journeys.get(ended.seq).cloned();
        let OperationIdentity { accepted_at, group, kind } = ended.identity.clone()?;
        Some(EndedJourney {
            id: OperationId::new(accepted_at, self.options.partition, ended.seq),
            group,
            kind,
            state: State::from(ended.state),
            attempt: ended.attempt,
            fault: ended.fault.as_ref().map(|fault| fault.class),
            request_id: operation.and_then(|operation| Envelope::decode(&operation.envelope).request_id),
            journey: journey.unwrap_or_else(|| Journey::unrecorded(accepted_at, ended.at)),
        })
    }

    /// How long an operation spent in each step so far.
    pub(crate) fn journey_times(&self, id: OperationId, active: Option<&ActiveOperation>) -> JourneyTimes {
        let (seq, now) = (id.seq(), self.clock.now());
        if let Some((active, since)) = active.and_then(|active| Some((active, self.held_since(active)?))) {
            let queued_at = self.journeys.get(seq).map_or(active.at, |journey| journey.queued_at);
            return self.journeys.of_held(seq, queued_at, since, now);
        }
        let is_behind = || self.model.why(seq, now).is_some_and(|why| why.behind.is_some());
        match (self.journeys.get(seq), active) {
            (Some(journey), _) if !journey.attempts.is_empty() || journey.ended_at.is_some() => {
                journey.times(now)
            }
            (Some(journey), Some(_)) if journey.turn_at.is_some() => journey.times(now),
            (journey, Some(active)) => {
                let queued_at = journey.map_or(active.at, |journey| journey.queued_at);
                self.journeys.of_waiting(queued_at, is_behind(), now)
            }
            (_, None) => JourneyTimes::default(),
        }
    }

    /// The attempts of an operation, as far as they were seen and are remembered.
    pub(crate) fn seen_attempts(&self, id: OperationId) -> Vec<JourneyAttempt> {
        let journey = self.journeys.get(id.seq()).into_iter();
        journey
            .flat_map(|journey| journey.earlier_attempts.iter().chain(&journey.attempts))
            .cloned()
            .collect()
    }

    /// Since when an operation waits as the first one of a group that is held after a failure.
    fn held_since(&self, active: &ActiveOperation) -> Option<Time> {
        let group = self.model.group(&active.group)?;
        let is_head = group.head.is_some_and(|head| head.seq == active.seq);
        group.held.filter(|held| is_head && !held.unknown).map(|held| held.since)
    }
}
