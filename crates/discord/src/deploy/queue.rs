//! Submits the calls of a deployment to the queue: one at a time, each an operation of the guild's
//! group, so that whatever an interrupted run left in flight ends before the next call is made. The
//! reads of a plan have a group of their own, and wait for no deployment.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate::{Engine, Filter, OperationView, Submission};
use tidegate_core::model::Resolution;
use tidegate_core::{Fault, FaultClass, OperationId, State};
use tidegate_upstream::HttpRequest;
use tidegate_upstream::request::Body;
use tokio::time::Instant;

use super::active;
use super::call_times::CallTimes;
use super::error::{Error, Result};
use super::executor::{KINDS, READ};
use super::payload::Payload;
use super::postponed::ScarceLimit;
use super::progress::{ProgressEvent, ProgressListener};
use super::request::group;
use super::token::token_refusal;
use crate::Id;

/// After this long, reports what an operation waits for.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the report is repeated.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);
/// Attempts of a read that a deployment can do without.
const OPTIONAL_ATTEMPTS_MAX: u16 = 2;
/// Operations withdrawn at a time.
const WITHDRAWN_AT_ONCE: usize = 100;
/// Attempts of one step. A step that keeps failing is tried again by the next plan.
const ATTEMPTS_MAX: u16 = 4;

/// Submits operations to Discord for one guild.
pub(super) struct GuildQueue<'a> {
    pub(super) engine: &'a Engine,
    pub(super) upstream: &'a str,
    pub(super) guild: Id,
    pub(super) deployment: Option<&'a str>,
    pub(super) listener: &'a dyn ProgressListener,
    pub(super) call_times: &'a CallTimes,
}

/// How an operation ended.
pub(super) enum OperationOutcome {
    /// It succeeded; the response.
    Done(Option<Box<RawValue>>),
    /// The same operation was submitted before and has ended: the known state of the guild is older
    /// than that.
    Duplicate,
    /// It failed.
    Failed(Fault),
    /// An operator canceled it.
    Canceled,
    /// It would have waited for this limit for long, and was withdrawn.
    Postponed(ScarceLimit),
}

/// How often an operation is tried, and whether it may be put off.
#[derive(Clone, Copy)]
struct Attempts {
    most: Option<u16>,
    can_postpone: bool,
}

#[derive(Deserialize)]
struct ResultBody {
    body: Option<Box<RawValue>>,
}

/// The fields needed from an object in a response.
#[derive(Deserialize)]
pub(super) struct ResponseObject {
    pub(super) id: Id,
}

/// The group of the reads of plans, which wait for no deployment.
fn plan_group(guild: Id) -> String {
    format!("{}/plan", group(guild))
}

impl GuildQueue<'_> {
    /// Submits a step and waits for its end. Also returns which operation it was.
    pub(super) async fn submit_and_wait(
        &self,
        kind: &str,
        request: HttpRequest,
        key: Option<String>,
    ) -> Result<(String, OperationOutcome)> {
        self.submit(kind, request, key, Attempts { most: Some(ATTEMPTS_MAX), can_postpone: false }).await
    }

    /// The same, unless it would wait for long for a limit that others need not wait for.
    pub(super) async fn submit_or_postpone(
        &self,
        kind: &str,
        request: HttpRequest,
        key: Option<String>,
    ) -> Result<(String, OperationOutcome)> {
        self.submit(kind, request, key, Attempts { most: Some(ATTEMPTS_MAX), can_postpone: true }).await
    }

    async fn submit(
        &self,
        kind: &str,
        request: HttpRequest,
        key: Option<String>,
        attempts: Attempts,
    ) -> Result<(String, OperationOutcome)> {
        // A read belongs to no plan: it may be done whoever asked for it.
        let deployment = self.deployment.filter(|_| kind != READ).map(str::to_owned);
        let payload = Payload { deployment, upstream: self.upstream.to_owned(), request };
        let payload = payload.encode().map_err(|refusal| Error::Invalid(refusal.to_string()))?;
        let group = match self.deployment {
            Some(_) => group(self.guild),
            None => plan_group(self.guild),
        };
        let mut submission = Submission::new(kind, group, payload)
            .with_upstream(self.upstream)
            .with_max_attempts(attempts.most);
        submission.dedupe_key = key.map(Into::into);
        submission.deployment_id = self.deployment.map(Into::into);
        let begun = Instant::now();
        let receipt = self.engine.submit(submission).await?;
        let id = receipt.id.to_string();
        if receipt.deduplicated && receipt.state.is_ended() {
            return Ok((id, OperationOutcome::Duplicate));
        }
        let mut most = PATIENCE;
        loop {
            let view = self.engine.wait(receipt.id, most).await?;
            if view.state.is_ended() {
                self.call_times.record(begun.elapsed());
                return Ok((id, operation_outcome(view)?));
            }
            most = REPORT_INTERVAL;
            let reason = self.engine.why(receipt.id).await?;
            let starts_at = reason.starts_at.or(reason.until);
            let left = starts_at.map(|at| at.since(self.engine.now())).filter(|left| !left.is_zero());
            if attempts.can_postpone
                && let Some(limit) = ScarceLimit::of_wait(self.upstream, &reason, left)
                && self.engine.withdraw(receipt.id).await?.state == State::Canceled
            {
                return Ok((id, OperationOutcome::Postponed(limit)));
            }
            let because = self.describe_wait(&reason);
            self.listener.on_event(&ProgressEvent::Waiting { because: &because, left });
            self.check_token(receipt.id, &reason).await?;
            let head = reason.behind.unwrap_or(receipt.id);
            if self.fail_held_step(head).await? && head == receipt.id {
                let message = "It may have been created. The next plan looks for it by its key.";
                return Ok((id, OperationOutcome::Failed(Fault::new(FaultClass::Conflict, message))));
            }
        }
    }

    /// Withdraws what an interrupted run left in the guild's queue and did not send: the next plan
    /// decides again, and nothing waits for it meanwhile. Returns whether there was anything.
    pub(super) async fn withdraw_interrupted(&self) -> Result<bool> {
        self.withdraw_from(&plan_group(self.guild)).await?;
        self.withdraw_from(&group(self.guild)).await
    }

    async fn withdraw_from(&self, group: &str) -> Result<bool> {
        let (mut is_any, mut before) = (false, None);
        loop {
            let mut filter = Filter::default().with_group(group);
            (filter.states, filter.before) = (vec![State::Queued, State::Waiting], before);
            filter.limit = WITHDRAWN_AT_ONCE;
            let page = self.engine.list(filter).await?;
            for view in page.operations {
                if KINDS.contains(&&*view.kind) && self.is_left_behind(&view).await? {
                    self.engine.withdraw(view.id).await?;
                    is_any = true;
                }
            }
            before = page.next;
            if before.is_none() {
                return Ok(is_any);
            }
        }
    }

    /// Whether no one waits for an operation: its deployment was interrupted, or it is a read of a
    /// plan with another address or token, which is not sent under this configuration.
    async fn is_left_behind(&self, view: &OperationView) -> Result<bool> {
        match (&view.deployment_id, &view.upstream) {
            (Some(deployment), _) => Ok(!active::is_active(deployment)),
            (None, Some(upstream)) => Ok(!self.engine.is_configured(upstream).await?),
            (None, None) => Ok(false),
        }
    }

    /// Fails a step that waits for an operator to decide what became of it: the next plan looks,
    /// which is what an operator would do. Leaves alone anything that is no step, or that someone
    /// has paused.
    async fn fail_held_step(&self, head: OperationId) -> Result<bool> {
        let view = self.engine.get(head).await?;
        if view.state != State::Unknown || !KINDS.contains(&&*view.kind) {
            return Ok(false);
        }
        self.engine.resolve(head, Resolution::Failed).await?;
        Ok(true)
    }

    /// Reads something that may be gone.
    pub(super) async fn find(&self, path: String) -> Result<Option<Box<RawValue>>> {
        match self.read(path).await {
            Ok(body) => Ok(Some(body)),
            Err(Error::ReadFailed(fault)) if fault.class == FaultClass::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads something.
    pub(super) async fn read(&self, path: String) -> Result<Box<RawValue>> {
        self.read_within(path, None).await
    }

    /// Reads something that a deployment can do without.
    pub(super) async fn read_optional(&self, path: String) -> Result<Box<RawValue>> {
        self.read_within(path, Some(OPTIONAL_ATTEMPTS_MAX)).await
    }

    async fn read_within(&self, path: String, attempts: Option<u16>) -> Result<Box<RawValue>> {
        let request = HttpRequest::new(tidegate_upstream::Method::Get, path);
        let attempts = Attempts { most: attempts, can_postpone: false };
        match self.submit(READ, request, None, attempts).await?.1 {
            OperationOutcome::Done(Some(body)) => Ok(body),
            OperationOutcome::Done(None) | OperationOutcome::Duplicate => {
                Err(Error::ReadFailed(Fault::new(FaultClass::Transient, "The response was empty.")))
            }
            OperationOutcome::Failed(fault) => Err(token_refusal(&fault).unwrap_or(Error::ReadFailed(fault))),
            OperationOutcome::Canceled | OperationOutcome::Postponed(_) => {
                Err(Error::Canceled("reading of the guild".into()))
            }
        }
    }
}

fn operation_outcome(view: OperationView) -> Result<OperationOutcome> {
    match view.state {
        State::Succeeded => {
            let kept = view.result.as_deref().map(serde_json::from_slice::<ResultBody>).transpose();
            let unreadable = |_| Error::Invalid("A result in the store cannot be read.".into());
            Ok(OperationOutcome::Done(kept.map_err(unreadable)?.and_then(|kept| kept.body)))
        }
        State::Canceled => Ok(OperationOutcome::Canceled),
        _ => Ok(OperationOutcome::Failed(
            view.fault.unwrap_or_else(|| Fault::new(FaultClass::Transient, "It failed.")),
        )),
    }
}

/// Encodes a body as it is sent.
pub(super) fn json_body(value: Option<&serde_json::Value>) -> Result<Body> {
    let Some(value) = value else { return Ok(Body::Empty) };
    let raw = serde_json::value::to_raw_value(value);
    raw.map(Body::Json).map_err(|error| Error::Invalid(format!("A body cannot be encoded: {error}.")))
}
