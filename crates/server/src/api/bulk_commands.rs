//! Commands about all operations that a filter finds: cancel, rerun, resolve. A dry run counts them
//! and changes nothing.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tidegate::{ErrorKind, Filter, OperationView};
use tidegate_core::bounds::PAGE_ITEMS_MAX;
use tidegate_core::model::Resolution;
use tidegate_core::{OperationId, State as OperationState};

use super::HandlerResult;
use super::commands::RESOLUTIONS;
use super::operations::parse_states;
use crate::audit::AuditHint;
use crate::edge::auth::Caller;
use crate::edge::content::RequestBody;
use crate::error::{Error, ErrorCode, Result};
use crate::state::{PartitionState, SharedPartition};
use crate::wire::field::Field;
use crate::wire::object::{Fields, missing, read};
use crate::wire::problems::RequestProblems;
use crate::wire::time;

/// The most operations that one call changes in a partition.
const BULK_MAX: usize = 1_000;
/// How many pages are searched for them.
const PAGES_MAX: usize = 50;

/// The fields of a command.
const FIELDS: [&str; 8] =
    ["group", "state", "upstream", "kind", "created_after", "created_before", "error", "dry_run"];
/// The fields of a command that says what happened.
const RESOLVE_FIELDS: [&str; 9] =
    ["group", "state", "upstream", "kind", "created_after", "created_before", "error", "dry_run", "as"];

/// What became of a bulk command.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct BulkOut {
    /// Operations that the filter found.
    matched: u64,
    /// Operations that were changed.
    pub(super) changed: u64,
    /// Operations that could not be changed.
    pub(super) refused: u64,
    /// Why the first of those could not.
    pub(super) problem: Option<String>,
    /// Whether there may be more.
    pub(super) more: bool,
    /// Whether it only counted.
    dry_run: bool,
}

impl BulkOut {
    /// Adds up what several partitions say.
    pub(crate) fn merge(parts: Vec<Self>) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.matched += part.matched;
            all.changed += part.changed;
            all.refused += part.refused;
            all.problem = all.problem.or(part.problem);
            all.more |= part.more;
            all.dry_run |= part.dry_run;
        }
        all
    }
}

impl IntoResponse for BulkOut {
    fn into_response(self) -> Response {
        let hint = if self.dry_run { AuditHint::Preview } else { AuditHint::Changed(self.changed) };
        (Extension(hint), Json(self)).into_response()
    }
}

/// What to do with each operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BulkVerb {
    Cancel,
    Rerun,
    Resolve(Resolution),
}

impl BulkVerb {
    const fn name(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Rerun => "rerun",
            Self::Resolve(_) => "resolve",
        }
    }

    /// The states that it is about where none is given. What was canceled on purpose is not rerun.
    const fn default_states(self) -> &'static [OperationState] {
        match self {
            Self::Cancel => &[OperationState::Queued, OperationState::Waiting, OperationState::Running],
            Self::Rerun => &[OperationState::Failed],
            Self::Resolve(_) => &[OperationState::Unknown],
        }
    }

    fn applies_to(self, state: OperationState) -> bool {
        match self {
            Self::Cancel => state.can_cancel(),
            Self::Rerun => state.can_rerun(),
            Self::Resolve(_) => state == OperationState::Unknown,
        }
    }

    /// Does it; whether it took effect.
    async fn apply(self, app: &PartitionState, id: OperationId) -> tidegate::Result<bool> {
        match self {
            // One that ended in the meantime stays as it ended.
            Self::Cancel => app
                .engine
                .cancel(id)
                .await
                .map(|view| view.state == OperationState::Canceled || view.cancel_requested),
            Self::Rerun => app.engine.rerun(id).await.map(|_| true),
            Self::Resolve(resolution) => app.engine.resolve(id, resolution).await.map(|_| true),
        }
    }
}

/// Which operations a command is about.
pub(super) struct Selection {
    filter: Filter,
    /// A text that the last fault has to contain, in lower case.
    error: Option<String>,
}

impl Selection {
    /// The failed operations of a group.
    pub(super) fn failed_of(group: &str) -> Self {
        let filter = Filter::default().with_group(group).with_states([OperationState::Failed]);
        Self { filter, error: None }
    }

    /// Reads the filter of a command, which must not be empty: it would find everything.
    fn read(
        values: &[Option<&RawValue>],
        verb: BulkVerb,
        problems: &mut RequestProblems,
    ) -> Result<(Self, bool)> {
        let field = |place: usize| Field { name: FIELDS[place], raw: values.get(place).copied().flatten() };
        let mut text = |place: usize| problems.check(read_text(field(place)));
        let [group, states, upstream, kind] = [text(0), text(1), text(2), text(3)];
        let [after, before, error] = [text(4), text(5), text(6)];
        let is_empty =
            [&group, &states, &upstream, &kind, &after, &before, &error].into_iter().all(Option::is_none);
        let states = states.and_then(|words| problems.check(read_states(&words, verb).map(Some)));
        let after = after.and_then(|text| problems.check(read_time(FIELDS[4], &text).map(Some)));
        let before = before.and_then(|text| problems.check(read_time(FIELDS[5], &text).map(Some)));
        let dry_run = problems.check(field(7).flag()).unwrap_or_default();
        std::mem::take(problems).finish()?;
        if is_empty {
            let message = "The filter is empty and would find every operation; give a group, a state, \
                           an upstream, a kind, a time or the text of an error.";
            return Err(Error::new(ErrorCode::Invalid, message).field("group"));
        }
        let mut filter = Filter::default()
            .with_states(states.unwrap_or_else(|| verb.default_states().to_vec()))
            .with_created_after(after)
            .with_created_before(before);
        (filter.group, filter.upstream, filter.kind) =
            (group.map(Into::into), upstream.map(Into::into), kind.map(Into::into));
        Ok((Self { filter, error: error.map(|text| text.to_lowercase()) }, dry_run))
    }

    fn matches(&self, view: &OperationView) -> bool {
        let Some(error) = &self.error else { return true };
        let Some(fault) = &view.fault else { return false };
        fault.message.to_lowercase().contains(error) || fault.class.as_str().contains(error.as_str())
    }

    /// The operations that it finds, newest first, and whether there may be more.
    async fn find(&self, app: &PartitionState) -> Result<(Vec<OperationId>, bool)> {
        let page_len = usize::try_from(PAGE_ITEMS_MAX).unwrap_or(BULK_MAX);
        let mut filter = self.filter.clone().with_limit(page_len);
        let mut found = Vec::new();
        for _ in 0..PAGES_MAX {
            let page = app.engine.list(filter.clone()).await?;
            found.extend(page.operations.iter().filter(|view| self.matches(view)).map(|view| view.id));
            filter.before = page.next;
            if filter.before.is_none() || found.len() >= BULK_MAX {
                break;
            }
        }
        let more = filter.before.is_some() || found.len() > BULK_MAX;
        found.truncate(BULK_MAX);
        Ok((found, more))
    }
}

/// Reads a text that is not empty.
fn read_text(field: Field<'_>) -> Result<Option<String>> {
    let text = field.text()?;
    match text {
        Some(text) if text.is_empty() => {
            let message = format!("The field {:?} is empty; give it a value, or leave it out.", field.name);
            Err(Error::new(ErrorCode::Malformed, message).field(field.name))
        }
        text => Ok(text),
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

fn read_time(name: &'static str, text: &str) -> Result<tidegate_core::Time> {
    time::parse(text).ok_or_else(|| {
        let message = format!("The field {name:?} must be a time of RFC 3339, as in 2031-05-06T07:08:09Z.");
        Error::new(ErrorCode::Malformed, message).field(name)
    })
}

pub(super) async fn cancel(
    State(app): State<SharedPartition>,
    Extension(caller): Extension<Caller>,
    body: RequestBody,
) -> HandlerResult {
    command_filtered(&app, &caller, body, BulkVerb::Cancel).await
}

pub(super) async fn rerun(
    State(app): State<SharedPartition>,
    Extension(caller): Extension<Caller>,
    body: RequestBody,
) -> HandlerResult {
    command_filtered(&app, &caller, body, BulkVerb::Rerun).await
}

async fn command_filtered(
    app: &PartitionState,
    caller: &Caller,
    body: RequestBody,
    verb: BulkVerb,
) -> HandlerResult {
    let body = body.read().await?;
    let Fields { values, mut problems } = read(&body, &FIELDS)?;
    let (selection, dry_run) = Selection::read(&values, verb, &mut problems)?;
    respond(app, caller, verb, &selection, dry_run).await
}

pub(super) async fn resolve(
    State(app): State<SharedPartition>,
    Extension(caller): Extension<Caller>,
    body: RequestBody,
) -> HandlerResult {
    let body = body.read().await?;
    let Fields { values, mut problems } = read(&body, &RESOLVE_FIELDS)?;
    let resolution = Field { name: "as", raw: values[8] }.word(&RESOLUTIONS);
    let resolution = resolution.and_then(|word| word.map(Some).ok_or_else(|| missing("as")));
    // The states are the same whatever happened.
    let resolution = problems.check(resolution).unwrap_or(Resolution::Failed);
    let verb = BulkVerb::Resolve(resolution);
    let (selection, dry_run) = Selection::read(&values, verb, &mut problems)?;
    respond(&app, &caller, verb, &selection, dry_run).await
}

async fn respond(
    app: &PartitionState,
    caller: &Caller,
    verb: BulkVerb,
    selection: &Selection,
    dry_run: bool,
) -> HandlerResult {
    if dry_run {
        let (found, more) = selection.find(app).await?;
        let matched = found.len() as u64;
        return Ok(BulkOut { matched, more, dry_run, ..BulkOut::default() }.into_response());
    }
    let done = apply(app, verb, selection).await?;
    let (order, changed, refused) = (verb.name(), done.changed, done.refused);
    tracing::info!(by = &*caller.0, order, changed, refused, "a person's order about several operations");
    Ok(done.into_response())
}

/// Applies a command to everything that a selection finds.
pub(super) async fn apply(app: &PartitionState, verb: BulkVerb, selection: &Selection) -> Result<BulkOut> {
    let (mut found, more) = selection.find(app).await?;
    // Those that run again keep their order. Canceled from the end of a queue, none starts because
    // the one before it was canceled.
    if verb != BulkVerb::Cancel {
        found.sort_unstable();
    }
    let mut done = BulkOut { matched: found.len() as u64, more, ..BulkOut::default() };
    for id in found {
        match verb.apply(app, id).await {
            Ok(true) => done.changed += 1,
            Ok(false) => done.refused += 1,
            Err(error) if concerns_all(error.kind) => return Err(error.into()),
            // It is not there any more, was changed a moment ago, or cannot be.
            Err(error) => {
                done.refused += 1;
                done.problem.get_or_insert(error.message);
            }
        }
    }
    Ok(done)
}

/// Whether the next operation would fail in the same way.
const fn concerns_all(kind: ErrorKind) -> bool {
    use ErrorKind::{Internal, Stopping, StoreRefused, StoreUnavailable};
    matches!(kind, StoreUnavailable | Stopping | StoreRefused | Internal)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            (r#"{"group":"g","state":"failed"}"#, BulkVerb::Resolve(Resolution::Failed), "state"),
            (r#"{"created_before":"today"}"#, BulkVerb::Cancel, "created_before"),
            (r#"{"grup":"g"}"#, BulkVerb::Cancel, "grup"),
            (r#"{"group":"g","dry_run":1}"#, BulkVerb::Cancel, "dry_run"),
        ];
        for (body, verb, field) in table {
            let error = selection(body, verb).err().map(|error| error.field);
            assert_eq!(error, Some(Some(field.into())), "{body}");
        }
    }

    #[test]
    fn a_command_is_about_the_states_that_it_can_change() {
        let states = |body, verb| selection(body, verb).unwrap().0.filter.states;
        assert_eq!(states(r#"{"group":"g"}"#, BulkVerb::Rerun), [OperationState::Failed]);
        let both = states(r#"{"state":"canceled,failed"}"#, BulkVerb::Rerun);
        assert_eq!(both, [OperationState::Failed, OperationState::Canceled]);
        for verb in [BulkVerb::Cancel, BulkVerb::Rerun, BulkVerb::Resolve(Resolution::Repeat)] {
            assert!(verb.default_states().iter().all(|state| verb.applies_to(*state)), "{verb:?}");
        }
    }
}
