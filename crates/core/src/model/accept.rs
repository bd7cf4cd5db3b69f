//! Acceptance: an operation joins its group, is recognized as already accepted, or is refused with
//! a reason. There is no partial acceptance.

use std::sync::Arc;

use super::entry::Cost;
use super::group::GroupPlacement;
use super::{LimitRefusal, Model};
use crate::bounds;
use crate::bucket::Readiness;
use crate::fact::{Acceptance, AcceptedOperation, Fact};
use crate::id::Seq;
use crate::operation::{Charge, Draft, InvalidField};
use crate::state::{EndState, State};
use crate::time::Time;

/// The outcome of submitting a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceptOutcome {
    /// The partition accepted it.
    New(Seq),
    /// The same request was accepted under its key before.
    Duplicate(Seq),
    /// A different request was accepted under its key before.
    Conflict(Seq),
    /// The draft was refused.
    Refused(DraftRefusal),
}

/// Why a draft was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DraftRefusal {
    /// A field is out of bounds.
    Invalid(InvalidField),
    /// It charges a limit that does not exist.
    UnknownLimit(Arc<str>),
    /// It opens a limit, and there are too many, or its figures are out of bounds.
    CannotOpen(LimitRefusal),
    /// It charges the same limit twice.
    ChargedTwice(Arc<str>),
    /// It costs more than the limit can ever hold, in micro-tokens.
    TooCostly {
        /// The name of the limit.
        limit: Arc<str>,
        /// The cost of the operation.
        cost: u64,
        /// The capacity of the limit.
        capacity: u64,
    },
    /// The known limits do not let it start in time.
    TooLate {
        /// The earliest time it could start.
        earliest: Time,
    },
}

/// Why an operation was not accepted again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RerunRefusal {
    /// It has not ended, or was accepted again already.
    NotEnded,
    /// It succeeded: what succeeded stays.
    Succeeded,
    /// It would be refused as a new one, too.
    Draft(DraftRefusal),
}

impl Model {
    /// Accepts an operation.
    pub fn accept(&mut self, now: Time, draft: Draft, facts: &mut Vec<Fact>) -> AcceptOutcome {
        let now = self.now(now);
        if let Err(invalid) = draft.validate(now) {
            return AcceptOutcome::Refused(DraftRefusal::Invalid(invalid));
        }
        if let Some(dedupe) = &draft.dedupe
            && let Some(known) = self.keys.get(&dedupe.key)
            && known.expires > now
            && known.expires >= draft.dedupe_from
        {
            let same = known.fingerprint == dedupe.fingerprint;
            return if same {
                AcceptOutcome::Duplicate(known.seq)
            } else {
                AcceptOutcome::Conflict(known.seq)
            };
        }
        let draft = with_whole_alternatives(draft);
        let opened = self.open(now, &draft.opens, facts).map_err(DraftRefusal::CannotOpen);
        if let Err(refusal) = opened.and_then(|()| self.check_charges(&draft, now)) {
            return AcceptOutcome::Refused(refusal);
        }
        let seq = self.counters.next_seq;
        self.enlist(seq, now, draft, Acceptance::New, facts);
        AcceptOutcome::New(seq)
    }

    /// Accepts an operation again that ended as `ended`, at the end of its group, or as its head if
    /// it is the one that the group is held for. It keeps the time `at` of its first acceptance,
    /// which is part of its id.
    ///
    /// # Errors
    /// When it has not ended, succeeded, or is refused.
    pub fn reopen(
        &mut self,
        now: Time,
        (seq, at): (Seq, Time),
        ended: EndState,
        draft: Draft,
        facts: &mut Vec<Fact>,
    ) -> Result<(), RerunRefusal> {
        if self.by_seq.get(seq).is_some() {
            return Err(RerunRefusal::NotEnded);
        }
        if !State::from(ended).can_rerun() {
            return Err(RerunRefusal::Succeeded);
        }
        let now = self.now(now);
        let draft = Draft { deadline: None, start_by: None, not_before: None, dedupe: None, ..draft };
        let draft = with_whole_alternatives(draft);
        let opened = self.open(now, &draft.opens, facts).map_err(DraftRefusal::CannotOpen);
        opened.and_then(|()| self.check_charges(&draft, now)).map_err(RerunRefusal::Draft)?;
        let acceptance = self.rerun_acceptance(seq, &draft.group);
        let doubt = draft.doubt.clone();
        self.enlist(seq, at, draft, acceptance, facts);
        if let Some(fault) = doubt.filter(|fault| fault.may_have_happened) {
            self.decide(facts, Fact::Doubted { seq, fault: Box::new(fault) });
        }
        Ok(())
    }

    /// Where an operation that runs again joins its group: one that waits for an operator because
    /// of it continues with it.
    fn rerun_acceptance(&self, seq: Seq, group: &str) -> Acceptance {
        let group = self.by_group.get(group).map(|ix| &self.groups[ix.at()]);
        let held = group.filter(|group| group.run.is_none()).and_then(|group| group.held.as_ref());
        if held.is_some_and(|held| held.seq == seq) { Acceptance::RerunFirst } else { Acceptance::Rerun }
    }

    /// Adds an operation to its group.
    fn enlist(
        &mut self,
        seq: Seq,
        at: Time,
        mut draft: Draft,
        acceptance: Acceptance,
        facts: &mut Vec<Fact>,
    ) {
        let alternatives = draft.alternatives.take();
        self.decide(facts, accepted(seq, at, draft, acceptance));
        if let Some(alternatives) = alternatives {
            self.decide(facts, Fact::Chained { seq, alternatives: Box::new(alternatives) });
        }
    }

    fn check_charges(&self, draft: &Draft, now: Time) -> Result<(), DraftRefusal> {
        let earliest = match &draft.alternatives {
            None => self.earliest_start(draft, &draft.charges, now)?,
            Some(alternatives) => {
                let mut first = Time::MAX;
                for alternative in &alternatives.list {
                    first = first.min(self.earliest_start(draft, &alternative.charges, now)?);
                }
                first
            }
        };
        match draft.start_by.or(draft.deadline) {
            Some(latest) if earliest >= latest => Err(DraftRefusal::TooLate { earliest }),
            _ => Ok(()),
        }
    }

    /// The earliest time at which these charges of a draft can be granted, as far as it matters.
    fn earliest_start(&self, draft: &Draft, charges: &[Charge], now: Time) -> Result<Time, DraftRefusal> {
        let has_end = draft.start_by.or(draft.deadline).is_some();
        let mut earliest = draft.not_before.unwrap_or(now).max(now);
        // What has no end can wait for as long as it takes.
        if has_end && let Some(until) = self.asleep_until(&draft.group) {
            earliest = earliest.max(until);
        }
        for (place, charge) in charges.iter().enumerate() {
            if charges[..place].iter().any(|other| other.limit == charge.limit) {
                return Err(DraftRefusal::ChargedTwice(Arc::clone(&charge.limit)));
            }
            let ix = self.by_limit.get(&charge.limit);
            let ix = *ix.ok_or_else(|| DraftRefusal::UnknownLimit(Arc::clone(&charge.limit)))?;
            let limit = &self.limits[ix.at()];
            let cost = Cost { micro: charge.cost, estimated: charge.estimated };
            if limit.ready(cost, now) == Readiness::Never {
                let capacity = match limit.shape() {
                    crate::fact::LimitShape::Drip { capacity, .. } => capacity,
                    crate::fact::LimitShape::Window { limit, .. } => limit,
                    _ => 0,
                };
                return Err(DraftRefusal::TooCostly {
                    limit: Arc::clone(&charge.limit),
                    cost: charge.cost,
                    capacity,
                });
            }
            if has_end {
                let ahead = self.ahead(&draft.group, ix);
                if let Readiness::At(at) = limit.ready_for_all(&ahead, cost, now) {
                    earliest = earliest.max(at);
                }
            }
        }
        Ok(earliest)
    }

    /// The time for which the first operation of a group waits.
    fn asleep_until(&self, group: &str) -> Option<Time> {
        match self.groups[self.by_group.get(group)?.at()].placement {
            GroupPlacement::Asleep(until) => Some(until),
            _ => None,
        }
    }

    /// The costs that the operations ahead in this group charge to a limit, up to the number that
    /// is counted.
    fn ahead(&self, group: &str, limit: super::LimitIx) -> Vec<Cost> {
        let Some(ix) = self.by_group.get(group) else { return Vec::new() };
        let group = &self.groups[ix.at()];
        let first = if group.run.is_some() {
            group.head.and_then(|head| self.entries[head.at()].next)
        } else {
            group.head
        };
        std::iter::successors(first, |ix| self.entries[ix.at()].next)
            .take(bounds::AHEAD_COUNTED_MAX)
            .filter_map(|ix| self.entries[ix.at()].charges.iter().find(|(of, _)| *of == limit))
            .map(|(_, cost)| *cost)
            .collect()
    }
}

/// Adds what every alternative charges to each of them: an operation with alternatives charges
/// nothing apart from them.
fn with_whole_alternatives(mut draft: Draft) -> Draft {
    if let Some(alternatives) = &mut draft.alternatives {
        for alternative in &mut alternatives.list {
            alternative.charges.extend_from_slice(&draft.charges);
        }
        draft.charges.clear();
    }
    draft
}

fn accepted(seq: Seq, at: Time, draft: Draft, acceptance: Acceptance) -> Fact {
    Fact::Accepted(Box::new(AcceptedOperation {
        seq,
        at,
        group: draft.group,
        kind: draft.kind,
        charges: draft.charges,
        deadline: draft.deadline,
        not_before: draft.not_before,
        max_attempts: draft.max_attempts,
        priority: draft.priority,
        on_unknown: draft.on_unknown,
        on_failure: draft.on_failure,
        dedupe: draft.dedupe,
        acceptance,
    }))
}
