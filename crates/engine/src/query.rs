//! Queries: operations wherever they are (active ones in the model, ended ones in the store),
//! groups, limits, counts, reasons.

use std::sync::Arc;

use tidegate_core::bounds::ARCHIVE_TIMEOUT;
use tidegate_core::model::{ActiveOperation, ActiveQuery, Cause, Counts, GroupView, LimitView};
use tidegate_core::{EndState, Fault, FaultClass, OperationId, Seq, State, Time, bounds};
use tidegate_store::log::{StoredEntry, StoredQuery};
use tidegate_store::{Clock, StoreErrorKind};

use crate::engine::Engine;
use crate::envelope::Envelope;
use crate::error::{Error, ErrorKind, Result};
use crate::owner::Owner;
use crate::prepare::fingerprint;
use crate::reason::{WorkerDemand, wait_reason};
use crate::seal;
use crate::view::{
    Filter, GroupFilter, GroupPage, OperationPage, OperationView, Reason, StoredPayload, SubmissionRules,
};

/// The maximum number of operations shown with a group.
const LINE_MAX: usize = 50;

impl Engine {
    pub(crate) async fn view(&self, seq: Seq) -> Result<OperationView> {
        let active = self.query_owner(move |owner| owner.model.active(seq)).await?;
        match self.stored(seq).await {
            Ok(StoredEntry { result: None, .. }) if active.is_none() => self.view_without_result(seq).await,
            Ok(stored) => self.with_last_response(self.merge(stored, active)).await,
            Err(error) if error.unreadable => self.damaged_view(seq, active, error).await,
            Err(error) => Err(error),
        }
    }

    /// Looks again at an operation that neither the model nor the results had. It may have ended or
    /// have been rerun in between; if not, the store has lost its result.
    async fn view_without_result(&self, seq: Seq) -> Result<OperationView> {
        // A query would be answered by a model that is ahead of a log that cannot be written.
        let active = match self.update_owner(move |owner| owner.model.active(seq)).await {
            Err(error) if error.kind == ErrorKind::StoreUnavailable => {
                let mut view = self.merge(self.stored(seq).await?, None);
                if !view.state.is_ended() {
                    // Its end is not written yet.
                    (view.state, view.fault) = (State::Running, None);
                }
                return Ok(view);
            }
            active => active?,
        };
        let stored = self.stored(seq).await?;
        let is_lost = active.is_none() && stored.result.is_none();
        let view = self.merge(stored, active);
        if is_lost {
            tracing::error!(operation_id = %view.id, "the result of an operation is missing from the store");
        }
        self.with_last_response(view).await
    }

    /// Adds to an operation that did not succeed the id of its job, if it had one; and to one of
    /// unknown outcome the response that left it unknown, or that accepted its job.
    async fn with_last_response(&self, mut view: OperationView) -> Result<OperationView> {
        if !matches!(view.state, State::Unknown | State::Failed | State::Canceled) {
            return Ok(view);
        }
        let Some(last) = self.attempts_of(&view).await?.pop() else { return Ok(view) };
        if view.state == State::Unknown {
            view.result = last.response;
        }
        view.job_id = last.job_id;
        Ok(view)
    }

    /// Returns an operation whose payload or result is damaged without them, with a fault that says
    /// so, unless the result is required.
    async fn damaged_view(
        &self,
        seq: Seq,
        active: Option<ActiveOperation>,
        damage: Error,
    ) -> Result<OperationView> {
        let query = StoredQuery { before: Some(Seq(seq.0 + 1)), limit: 1, ..StoredQuery::default() };
        let mut page = self.store.list(self.options.partition, query).await?;
        let Some(outline) = page.items.pop().filter(|stored| stored.operation.seq == seq) else {
            return Err(damage);
        };
        let view = without_result(self.merge(outline, active));
        let mut view = OperationView { request: None, ..view };
        if view.state == State::Succeeded {
            return Err(damage);
        }
        let class = view.fault.as_ref().map_or(FaultClass::Validation, |fault| fault.class);
        let before = view.fault.map(|fault| format!("{}; ", fault.message)).unwrap_or_default();
        view.fault = Some(Fault::new(class, format!("{before}its stored data: {}", damage.message)));
        Ok(view)
    }

    /// Returns an operation that the store no longer has.
    pub(crate) async fn archived_view(&self, id: OperationId) -> Result<Option<OperationView>> {
        let Some(archived) = &self.archived else { return Ok(None) };
        let away = |why: String| {
            let message = format!("the store does not have {id}, and the archive is unavailable: {why}");
            Error::new(ErrorKind::StoreUnavailable, message).operation(id)
        };
        match tokio::time::timeout(ARCHIVE_TIMEOUT, archived.archiving.archive.read(vec![id])).await {
            Ok(Ok(mut found)) => Ok(found.pop().flatten().map(|stored| self.merge(stored, None))),
            Ok(Err(error)) => Err(away(error.to_string()).with_source(error)),
            Err(_) => Err(away(format!("it did not respond within {} s", ARCHIVE_TIMEOUT.as_secs()))),
        }
    }

    pub(crate) async fn list_active(&self, filter: Filter, state: State) -> Result<OperationPage> {
        let page = self
            .query_owner(move |owner| {
                owner.model.list(&ActiveQuery {
                    state,
                    group: filter.group.as_deref(),
                    kind: filter.kind.as_deref(),
                    before: filter.before.map(OperationId::seq),
                    limit: filter.limit,
                    scan_max: bounds::QUERY_SCAN_MAX,
                })
            })
            .await?;
        let seqs = page.operations.iter().map(|active| active.seq).collect();
        let next = self.cursor(page.next);
        let views: Vec<OperationView> = match self.store.read(self.options.partition, seqs).await {
            Ok(stored) if stored.iter().flatten().all(|stored| seal::check(&stored.operation).is_ok()) => {
                let found = page.operations.into_iter().zip(stored);
                found.filter_map(|(active, stored)| Some(self.merge(stored?, Some(active)))).collect()
            }
            Err(error) if error.kind() != StoreErrorKind::Unreadable => return Err(error.into()),
            // One of them is damaged: read each separately.
            _ => {
                let mut views = Vec::new();
                for active in page.operations {
                    views.push(self.view(active.seq).await?);
                }
                views
            }
        };
        Ok(OperationPage { operations: views.into_iter().map(without_result).collect(), next })
    }

    /// Builds a cursor. It needs only the sequence number; its time is for people.
    fn cursor(&self, next: Option<Seq>) -> Option<OperationId> {
        next.map(|seq| OperationId::new(Time::ZERO, self.options.partition, seq))
    }

    pub(crate) async fn list_stored(&self, filter: Filter, ended: Option<EndState>) -> Result<OperationPage> {
        let query = StoredQuery {
            group: filter.group,
            kind: filter.kind,
            ended,
            before: filter.before.map(OperationId::seq),
            limit: filter.limit,
        };
        let page = self.store.list(self.options.partition, query).await?;
        let seqs: Vec<Seq> = page.items.iter().map(|stored| stored.operation.seq).collect();
        let actives = self
            .query_owner(move |owner| seqs.into_iter().map(|seq| owner.model.active(seq)).collect::<Vec<_>>())
            .await?;
        let mut operations = Vec::with_capacity(page.items.len());
        for (stored, active) in page.items.into_iter().zip(actives) {
            let view = match (&stored.result, &active) {
                // It ended or was rerun in between, or its result is lost.
                (None, None) => match self.view(stored.operation.seq).await {
                    Err(error) if error.kind == ErrorKind::NoOperation => continue,
                    found => found?,
                },
                _ => self.merge(stored, active),
            };
            operations.push(without_result(view));
        }
        Ok(OperationPage { operations, next: self.cursor(page.next) })
    }

    /// Explains why an operation is not running.
    ///
    /// # Errors
    /// When there is no operation with that id.
    pub async fn why(&self, id: OperationId) -> Result<Reason> {
        let view = self.get(id).await?;
        let (seq, is_ended) = (id.seq(), view.state.is_ended());
        let found = self.query_owner(move |owner| reason_of(owner, seq)).await?.filter(|_| !is_ended);
        Ok(found.unwrap_or_else(|| Reason {
            waiting_for: "nothing",
            name: None,
            until: None,
            starts_at: None,
            behind: None,
            because: format!("It has ended: {}.", view.state),
            cause: None,
        }))
    }

    /// Lists groups by name.
    ///
    /// # Errors
    /// When the engine is stopping.
    pub async fn groups(
        &self,
        which: GroupFilter,
        after: Option<Arc<str>>,
        limit: usize,
    ) -> Result<GroupPage> {
        self.query_owner(move |owner| {
            let (model, after) = (&owner.model, after.as_deref());
            let mut groups: Vec<GroupView> = match which {
                GroupFilter::All => model.groups(after).take(limit + 1).collect(),
                GroupFilter::Stopped => model.stopped_groups(after).take(limit + 1).collect(),
                GroupFilter::Held => model.held_groups(after).take(limit + 1).collect(),
                GroupFilter::Paused => model
                    .stopped_groups(after)
                    .filter(|group| group.paused.is_some())
                    .take(limit + 1)
                    .collect(),
            };
            let more = groups.len() > limit;
            groups.truncate(limit);
            let next = groups.last().filter(|_| more).map(|group| Arc::clone(&group.name));
            let groups = groups.into_iter().map(|group| {
                let why = group_reason(owner, &group);
                (group, why)
            });
            GroupPage { groups: groups.collect(), next }
        })
        .await
    }

    /// Returns a group, what it waits for, and the first operations of its queue.
    ///
    /// # Errors
    /// When the group is unknown.
    pub async fn group(&self, name: &str) -> Result<(GroupView, Option<Reason>, Vec<OperationView>)> {
        let group: Arc<str> = name.into();
        let found = self.query_owner(move |owner| {
            let view = owner.model.group(&group)?;
            let why = group_reason(owner, &view);
            let line: Vec<OperationView> = owner
                .model
                .group_queue(&group)
                .take(LINE_MAX)
                .map(|active| from_active(owner, active))
                .collect();
            Some((view, why, line))
        });
        found.await?.ok_or_else(|| no_group_error(name))
    }

    /// Returns the current state of all limits.
    ///
    /// # Errors
    /// When the engine is stopping.
    pub async fn limits(&self) -> Result<Vec<LimitView>> {
        self.query_owner(|owner| owner.model.limits(owner.clock.now()).collect()).await
    }

    /// Returns the current state of one limit.
    ///
    /// # Errors
    /// When there is no limit of that name.
    pub async fn limit(&self, name: &str) -> Result<LimitView> {
        let limit: Arc<str> = name.into();
        let found = self.query_owner(move |owner| owner.model.limit(&limit, owner.clock.now())).await?;
        found.ok_or_else(|| Error::new(ErrorKind::NoLimit, format!("there is no limit {name:?}")))
    }

    /// Returns the number of operations in each state.
    ///
    /// # Errors
    /// When the engine is stopping.
    pub async fn counts(&self) -> Result<Counts> {
        self.query_owner(|owner| owner.model.counts()).await
    }

    /// Whether an upstream is configured: operations for others wait until it is.
    ///
    /// # Errors
    /// When the engine is stopping.
    pub async fn is_configured(&self, upstream: &str) -> Result<bool> {
        let upstream = upstream.to_owned();
        self.query_owner(move |owner| owner.is_configured(&upstream)).await
    }

    /// Combines the stored operation with the model, which takes precedence while the operation has
    /// not ended. One that neither the model has nor a result exists for has ended in an unknown
    /// way.
    pub(crate) fn merge(&self, stored: StoredEntry, active: Option<ActiveOperation>) -> OperationView {
        let StoredEntry { operation, result } = stored;
        let envelope = Envelope::decode(&operation.envelope);
        let rules = SubmissionRules::from(&envelope);
        let known = !operation.payload.is_empty();
        let hash = || fingerprint(&operation.group, &operation.kind, &operation.payload);
        let fingerprint = known.then(hash);
        let executor = self.executors.get(&operation.kind).filter(|_| known);
        let request = executor.and_then(|executor| executor.request_line(&operation.payload));
        let payload = StoredPayload(operation.payload);
        let mut view = OperationView {
            id: OperationId::new(operation.at, self.options.partition, operation.seq),
            state: State::Queued,
            kind: operation.kind,
            group: operation.group,
            attempt: 0,
            created_at: operation.at,
            finished_at: None,
            result: None,
            fault: None,
            dedupe_key: operation.key,
            request_id: envelope.request_id,
            deployment_id: envelope.deployment_id,
            upstream: envelope.upstream,
            user: envelope.user,
            request,
            job_id: None,
            deadline_at: envelope.deadline_at.map(Time::from_micros),
            cancel_requested: false,
            max_attempts: envelope.max_attempts.unwrap_or(bounds::ATTEMPTS_DEFAULT),
            rules,
            fingerprint,
            payload,
        };
        if let Some(active) = active {
            (view.state, view.attempt, view.fault) = (active.state, active.attempt, active.fault);
            // An operator may have lifted it.
            view.deadline_at = active.deadline;
            view.cancel_requested = active.cancel_requested;
        } else if let Some(result) = result {
            view.state = result.state.into();
            view.attempt = result.attempt;
            view.finished_at = Some(result.at);
            view.fault = result.fault;
            view.result = Some(result.body).filter(|body| !body.is_empty());
        } else {
            view.state = State::Unknown;
            view.fault = Some(Fault::new(
                FaultClass::Transient,
                "it has ended, and how it ended is missing from the store",
            ));
        }
        view
    }
}

/// The error for a group of which the model knows nothing.
pub(crate) fn no_group_error(group: &str) -> Error {
    let message = format!("Group {group:?} has nothing queued and is not stopped.");
    Error::new(ErrorKind::NoGroup, message)
}

/// What a group waits for: what keeps its head, or, if nothing is queued, who or what stopped it.
pub(crate) fn group_reason(owner: &Owner, group: &GroupView) -> Option<Reason> {
    match &group.head {
        Some(head) => reason_of(owner, head.seq),
        None => {
            let why = owner.model.why_stopped(&group.name)?;
            let demand = WorkerDemand::NeverSince(owner.owner_since);
            Some(wait_reason(why, None, None, demand, owner.clock.now()))
        }
    }
}

fn reason_of(owner: &Owner, seq: Seq) -> Option<Reason> {
    let now = owner.clock.now();
    let why = owner.model.why(seq, now)?;
    let behind = why.behind.and_then(|(head, _)| {
        let head_view = owner.model.active(head)?;
        Some(owner.id_of(head, head_view.at))
    });
    let missing = owner.unconfigured_upstream(&why.cause).map(str::to_owned);
    let demand = match &why.cause {
        Cause::RemoteWorker { kind } if owner.model.is_missing(kind) => WorkerDemand::Missing,
        Cause::RemoteWorker { kind } => owner
            .asked
            .get(kind)
            .map_or_else(|| WorkerDemand::NeverSince(owner.owner_since), |last| WorkerDemand::Last(*last)),
        _ => WorkerDemand::NeverSince(owner.owner_since),
    };
    let mut reason = wait_reason(why, behind, missing.as_deref(), demand, now);
    if owner.model.active(seq).is_some_and(|active| active.cancel_requested) {
        reason.because.push_str(" A cancel was requested.");
    }
    Some(reason)
}

fn from_active(owner: &Owner, active: ActiveOperation) -> OperationView {
    OperationView {
        id: owner.id_of(active.seq, active.at),
        state: active.state,
        kind: active.kind,
        group: active.group,
        attempt: active.attempt,
        created_at: active.at,
        finished_at: None,
        result: None,
        fault: active.fault,
        dedupe_key: None,
        request_id: None,
        deployment_id: None,
        upstream: None,
        user: None,
        request: None,
        job_id: None,
        deadline_at: active.deadline,
        cancel_requested: active.cancel_requested,
        max_attempts: bounds::ATTEMPTS_DEFAULT,
        rules: SubmissionRules::default(),
        fingerprint: None,
        payload: StoredPayload::default(),
    }
}

pub(crate) fn without_result(view: OperationView) -> OperationView {
    OperationView { result: None, payload: StoredPayload::default(), ..view }
}
