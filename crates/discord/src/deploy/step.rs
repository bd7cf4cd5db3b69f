//! Executes one step of a plan: builds its request, submits it to the queue, and records the
//! outcome in the journal.

use serde_json::Value;
use serde_json::value::RawValue;
use tidegate_core::fingerprint::{Fingerprint, hex};
use tidegate_core::{Fault, FaultClass};
use tidegate_upstream::{HttpRequest, Method};
use tokio::time::Instant;

use super::error::{Error, Result};
use super::journal_writer::{AppliedStep, StepRecord};
use super::progress::ProgressEvent;
use super::queue::{OperationOutcome, json_body};
use super::run::DeploymentRun;
use super::token::token_refusal;
use crate::guild::Guild;
use crate::journal::GuildJournalEntry;
use crate::plan::{self, Action, GuildRoute, Plan, PlanStep, PlannedCall, StepTarget};
use crate::{Id, ObjectKind};

/// The outcome of one step.
pub(super) enum StepOutcome {
    /// The step was applied.
    Applied,
    /// It failed for good; others continue.
    Failed,
    /// The guild has changed since the plan was made, or may have.
    Outdated(String),
    /// It would have waited for long, and was put off.
    Postponed,
}

/// What a run knows when it applies a step of a plan.
#[derive(Clone, Copy)]
pub(super) struct StepContext<'p> {
    pub(super) plan: &'p Plan,
    pub(super) guild: &'p Guild,
    /// Whether the guild is known to differ from the plan.
    pub(super) is_outdated: bool,
    /// Whether the step may be put off.
    pub(super) can_postpone: bool,
}

/// A step whose operation has ended.
#[derive(Clone, Copy)]
struct SubmittedStep<'s> {
    /// Its position in the plan.
    nth: u32,
    step: &'s PlanStep,
    operation: &'s str,
}

impl DeploymentRun<'_> {
    /// Applies a step of a plan.
    pub(super) async fn apply_step(
        &mut self,
        step: &PlanStep,
        StepContext { plan, guild, is_outdated, can_postpone }: StepContext<'_>,
    ) -> Result<StepOutcome> {
        let Some(call) = &step.call else { return Ok(StepOutcome::Applied) };
        if !self.guard.is_held() {
            return Err(Error::LeaseLost);
        }
        self.listener.on_event(&ProgressEvent::Started(step));
        let nth = step_index(plan, step);
        let begun = Instant::now();
        let Some(request) = self.request(step, call, guild)? else {
            self.history.record_applied(&step.target, &[]);
            self.writer.write([(nth, step, StepRecord::Unneeded)]).await?;
            return Ok(StepOutcome::Applied);
        };
        let asked = call.request(guild, &self.journal)?.and_then(|request| request.body);
        let key = step.operation_key(self.wanted.guild, &self.writer.round_id());
        let (queue, kind) = (self.queue(), step.operation());
        let (operation, ended) = match can_postpone {
            true => queue.submit_or_postpone(kind, request, Some(key)).await?,
            false => queue.submit_and_wait(kind, request, Some(key)).await?,
        };
        match ended {
            OperationOutcome::Done(answer) => {
                let submitted = SubmittedStep { nth, step, operation: &operation };
                self.record_done(submitted, call, asked.as_ref(), answer.as_deref()).await?;
                self.listener.on_event(&ProgressEvent::Applied { step, took: begun.elapsed() });
                Ok(StepOutcome::Applied)
            }
            OperationOutcome::Duplicate => match self.history.record_duplicate(step) {
                true => Ok(StepOutcome::Outdated(format!("{}: an earlier plan applied it", step.target))),
                false => Ok(StepOutcome::Failed),
            },
            OperationOutcome::Failed(fault) => {
                let submitted = SubmittedStep { nth, step, operation: &operation };
                self.record_fault(submitted, fault, is_outdated).await
            }
            OperationOutcome::Canceled => Err(Error::Canceled(step.target.to_string())),
            OperationOutcome::Postponed(limit) => {
                self.postponed.record(step, limit);
                self.listener.on_event(&ProgressEvent::Postponed(step));
                Ok(StepOutcome::Postponed)
            }
        }
    }

    /// Records a step that succeeded.
    async fn record_done(
        &mut self,
        SubmittedStep { nth, step, operation }: SubmittedStep<'_>,
        call: &PlannedCall,
        asked: Option<&Value>,
        answer: Option<&RawValue>,
    ) -> Result<()> {
        let answered = answer.and_then(|body| serde_json::from_str::<Value>(body.get()).ok());
        let answered_id = || answered.as_ref()?.get("id")?.as_str()?.parse().ok();
        let id = step.id.or_else(answered_id);
        if id.is_none() && matches!(step.target, StepTarget::Object(..)) {
            return Err(Error::NoId(step.target.clone()));
        }
        let unkept = match (asked, &answered) {
            (Some(asked), Some(answered)) => plan::unkept_fields(asked, answered),
            _ => Vec::new(),
        };
        self.history.record_applied(&step.target, &unkept);
        if let StepTarget::Object(ObjectKind::Message, key) = &step.target {
            self.written_messages.insert(key.clone());
        }
        let channel = call.route.channel().and_then(|handle| handle.id(&self.journal).ok());
        self.remember(step, id, channel);
        let channel = self.channel_of(step);
        let applied = AppliedStep { id, channel, operation: Some(operation) };
        self.writer.write([(nth, step, StepRecord::Applied(applied))]).await?;
        self.report.count(step.action);
        Ok(())
    }

    /// Records a step that failed.
    async fn record_fault(
        &mut self,
        SubmittedStep { nth, step, operation }: SubmittedStep<'_>,
        fault: Fault,
        is_outdated: bool,
    ) -> Result<StepOutcome> {
        let why = format!("{} ({})", fault.message, fault.class);
        self.writer.write([(nth, step, StepRecord::Failed(&why, Some(operation)))]).await?;
        if fault.class == FaultClass::Conflict {
            self.uncertain_since = Some(Instant::now());
        }
        // Every other call would wait for the token, and fail too.
        if let Some(refusal) = token_refusal(&fault) {
            return Err(refusal);
        }
        if self.room.wants(&fault) {
            return Ok(StepOutcome::Outdated(format!("{}: there is no room for it yet", step.target)));
        }
        if self.history.record_fault(step, &fault, is_outdated) {
            return Ok(StepOutcome::Outdated(format!("{}: {}", step.target, fault.message)));
        }
        self.listener.on_event(&ProgressEvent::Failed { step, because: &fault.message });
        Ok(StepOutcome::Failed)
    }

    /// Builds the complete request of a step; `None` when nothing is left to do.
    fn request(&self, step: &PlanStep, call: &PlannedCall, guild: &Guild) -> Result<Option<HttpRequest>> {
        let Some(request) = call.request(guild, &self.journal)? else { return Ok(None) };
        let mut sent = request.body;
        if let (GuildRoute::MessageCreate(_), Some(fields)) =
            (&call.route, sent.as_mut().and_then(|body| body.as_object_mut()))
        {
            // For some minutes, Discord treats messages with one nonce as the same message.
            let nonce = Fingerprint::of("discord nonce")
                .part(self.writer.round_id().as_bytes())
                .part(step.target.to_string().as_bytes());
            fields.insert("nonce".into(), hex(&nonce.finish()[..12]).into());
            fields.insert("enforce_nonce".into(), true.into());
        }
        let method = match request.method {
            plan::WriteMethod::Post => Method::Post,
            plan::WriteMethod::Patch => Method::Patch,
            plan::WriteMethod::Delete => Method::Delete,
        };
        let mut http = HttpRequest::new(method, request.path);
        let reason = format!("Tidegate {}: {} {}", self.writer.id(), step.action.as_str(), step.target);
        http.headers.push(("X-Audit-Log-Reason".into(), reason));
        http.body = json_body(sent.as_ref())?;
        Ok(Some(http))
    }

    /// Records the outcome for an object, for the requests and plans that follow.
    pub(super) fn remember(&mut self, step: &PlanStep, id: Option<Id>, channel: Option<Id>) {
        let StepTarget::Object(kind, key) = &step.target else { return };
        if step.action == Action::Remove {
            self.journal.forget(*kind, key);
        } else if let Some(id) = id {
            let known =
                self.journal.get(*kind, key).filter(|entry| entry.id == id).and_then(|entry| entry.channel);
            let channel = if *kind == ObjectKind::Message { channel.or(known) } else { None };
            let entry = GuildJournalEntry { id, channel, fingerprint: step.fingerprint.clone() };
            self.journal.record(*kind, key.clone(), entry);
        }
    }

    pub(super) fn channel_of(&self, step: &PlanStep) -> Option<Id> {
        let StepTarget::Object(kind, key) = &step.target else { return None };
        self.journal.get(*kind, key).and_then(|entry| entry.channel)
    }
}

/// Returns the position of a step in its plan.
pub(super) fn step_index(plan: &Plan, step: &PlanStep) -> u32 {
    let at = plan.steps.iter().position(|known| known.target == step.target).unwrap_or(plan.steps.len());
    u32::try_from(at).unwrap_or(u32::MAX)
}
