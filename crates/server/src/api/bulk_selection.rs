//! The operations that a bulk command is about: its filter, and how they are found. A cancel begins
//! with the newest, any other command with the oldest.

use std::collections::VecDeque;

use serde_json::value::RawValue;
use tidegate::{Filter, OutcomeFilter};
use tidegate_core::{OperationId, State as OperationState, Time};

use super::bulk_commands::BulkVerb;
use super::command_reason::read_reason;
use super::operations::parse_states;
use crate::error::{Error, ErrorCode, Result};
use crate::state::PartitionState;
use crate::wire::field::Field;
use crate::wire::outcome_filter::{self, OUTCOME_PARTS};
use crate::wire::problems::RequestProblems;

/// The most operations that one call changes in a partition.
const BULK_MAX: usize = 1_000;
/// How many pages of that length are searched for them.
const PAGES_MAX: usize = 200;

/// The fields of a command: the parts of its filter, and what every command takes.
#[rustfmt::skip]
pub(super) const FIELDS: [&str; 14] = [
    "group", "state", "upstream", "kind", "created_after", "created_before", "dry_run", "reason",
    "error", "fault_class", "fault_message", "may_have_happened", "finished_after", "finished_before",
];
/// Where the parts about faults and ends begin.
const OUTCOME: usize = FIELDS.len() - OUTCOME_PARTS.len();

/// Which operations a command is about.
pub(super) struct Selection {
    filter: Filter,
}

impl Selection {
    /// The failed operations of a group, which ended before a time if there is one.
    pub(super) fn failed_of(group: &str, ended_before: Option<Time>) -> Self {
        let mut outcome = OutcomeFilter::default();
        outcome.finished_before = ended_before;
        let filter = Filter::default().with_group(group).with_states([OperationState::Failed]);
        Self { filter: filter.with_outcome(outcome) }
    }

    /// Before when what it finds has ended, if that is a part of it.
    pub(super) fn ended_before(&self) -> Option<Time> {
        self.filter.outcome.finished_before
    }

    /// Reads the filter of a command, which must not be empty: it would find everything.
    pub(super) fn read(
        values: &[Option<&RawValue>],
        verb: BulkVerb,
        problems: &mut RequestProblems,
    ) -> Result<(Self, bool)> {
        let field = |place: usize| Field { name: FIELDS[place], raw: values.get(place).copied().flatten() };
        let mut text = |place: usize| problems.check(field(place).filled_text());
        let [group, states, upstream, kind] = [text(0), text(1), text(2), text(3)];
        let [after, before] = [4, 5].map(|place| problems.check(field(place).time()));
        let outcome = outcome_filter::read_fields(values.get(OUTCOME..).unwrap_or_default(), problems);
        let is_empty = outcome.is_empty()
            && after.or(before).is_none()
            && [&group, &states, &upstream, &kind].into_iter().all(Option::is_none);
        let states = states.and_then(|words| problems.check(read_states(&words, verb).map(Some)));
        let dry_run = problems.check(field(6).flag()).unwrap_or_default();
        problems.check(read_reason(field(7)));
        std::mem::take(problems).finish()?;
        if is_empty {
            let message = "The filter is empty and would find every operation; give a group, a state, \
                           an upstream, a kind, a time or something about the fault.";
            return Err(Error::new(ErrorCode::Invalid, message).field("group"));
        }
        let mut filter = Filter::default()
            .with_states(states.unwrap_or_else(|| verb.default_states().to_vec()))
            .with_created_after(after)
            .with_created_before(before)
            .with_outcome(outcome);
        (filter.group, filter.upstream) = (group.map(Into::into), upstream.map(Into::into));
        filter.kind = kind.map(Into::into);
        Ok((Self { filter }, dry_run))
    }

    /// The operations that a command begins with, in the order in which it changes them, and
    /// whether there may be more.
    pub(super) async fn find(
        &self,
        app: &PartitionState,
        verb: BulkVerb,
    ) -> Result<(Vec<OperationId>, bool)> {
        if verb.is_newest_first() { self.find_newest(app).await } else { self.find_oldest(app).await }
    }

    async fn find_newest(&self, app: &PartitionState) -> Result<(Vec<OperationId>, bool)> {
        let mut filter = self.filter.clone().with_limit(BULK_MAX);
        let mut found = Vec::new();
        for _ in 0..PAGES_MAX {
            let page = app.engine.list_without_requests(filter.clone()).await?;
            found.extend(page.operations.iter().map(|view| view.id));
            filter.before = page.next;
            if filter.before.is_none() || found.len() >= BULK_MAX {
                break;
            }
        }
        let more = filter.before.is_some() || found.len() > BULK_MAX;
        found.truncate(BULK_MAX);
        Ok((found, more))
    }

    /// Reads the list, which is newest first, to its end, and keeps the last of it.
    async fn find_oldest(&self, app: &PartitionState) -> Result<(Vec<OperationId>, bool)> {
        let mut filter = self.filter.clone().with_limit(BULK_MAX);
        let mut found = VecDeque::new();
        let mut more = false;
        for _ in 0..PAGES_MAX {
            let page = app.engine.list_without_requests(filter.clone()).await?;
            found.extend(page.operations.iter().map(|view| view.id));
            let newer = found.len().saturating_sub(BULK_MAX);
            more |= newer > 0;
            found.drain(..newer);
            filter.before = page.next;
            if filter.before.is_none() {
                return Ok((found.into_iter().rev().collect(), more));
            }
        }
        let message = "There are too many operations to find the oldest of them; give a \
                       created_before, and a later one with the next call.";
        Err(Error::new(ErrorCode::Invalid, message).field("created_before"))
    }
}

fn read_states(words: &str, verb: BulkVerb) -> Result<Vec<OperationState>> {
    let states = parse_states(words)?;
    match states.iter().find(|state| !verb.applies_to(**state)) {
        None => Ok(states),
        Some(state) => {
            let message = format!("An operation that is {state} cannot be changed by {}.", verb.name());
            Err(Error::new(ErrorCode::Invalid, message).field("state"))
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate::SeenOutcome;
    use tidegate_core::model::Resolution;

    use super::*;
    use crate::wire::object::{Fields, read};

    fn selection(body: &str, verb: BulkVerb) -> Result<(Selection, bool)> {
        let Fields { values, mut problems } = read(body.as_bytes(), &FIELDS)?;
        Selection::read(&values, verb, &mut problems)
    }

    #[test]
    fn a_filter_is_read_strictly_and_is_never_empty() {
        let table = [
            ("{}", BulkVerb::Cancel, "group"),
            (r#"{"dry_run":true}"#, BulkVerb::Rerun, "group"),
            (r#"{"group":""}"#, BulkVerb::Rerun, "group"),
            (r#"{"group":"g","state":"succeeded"}"#, BulkVerb::Rerun, "state"),
            (r#"{"group":"g","state":"failed"}"#, BulkVerb::Cancel, "state"),
            (r#"{"group":"g","state":"lost"}"#, BulkVerb::Cancel, "state"),
            (
                r#"{"group":"g","state":"failed"}"#,
                BulkVerb::Resolve(Resolution::Failed, SeenOutcome::default()),
                "state",
            ),
            (r#"{"created_before":"today"}"#, BulkVerb::Cancel, "created_before"),
            (r#"{"grup":"g"}"#, BulkVerb::Cancel, "grup"),
            (r#"{"group":"g","dry_run":1}"#, BulkVerb::Cancel, "dry_run"),
            (r#"{"may_have_happened":"no"}"#, BulkVerb::Rerun, "may_have_happened"),
            (r#"{"fault_class":"odd"}"#, BulkVerb::Rerun, "fault_class"),
            (r#"{"fault_message":""}"#, BulkVerb::Rerun, "fault_message"),
            (r#"{"finished_after":"today"}"#, BulkVerb::Rerun, "finished_after"),
            (r#"{"finished_before":""}"#, BulkVerb::Rerun, "finished_before"),
        ];
        for (body, verb, field) in table {
            let error = selection(body, verb).err().map(|error| error.field);
            assert_eq!(error, Some(Some(field.into())), "{body}");
        }
    }

    #[test]
    fn the_parts_about_faults_are_the_last_fields() {
        assert_eq!(FIELDS[OUTCOME..], OUTCOME_PARTS);
    }

    #[test]
    fn a_command_is_about_the_states_that_it_can_change() {
        let states = |body, verb| selection(body, verb).unwrap().0.filter.states;
        assert_eq!(states(r#"{"group":"g"}"#, BulkVerb::Rerun), [OperationState::Failed]);
        let both = states(r#"{"state":"canceled,failed"}"#, BulkVerb::Rerun);
        assert_eq!(both, [OperationState::Failed, OperationState::Canceled]);
        for verb in
            [BulkVerb::Cancel, BulkVerb::Rerun, BulkVerb::Resolve(Resolution::Repeat, SeenOutcome::default())]
        {
            assert!(verb.default_states().iter().all(|state| verb.applies_to(*state)), "{verb:?}");
        }
    }
}
