//! Writes the journal of one deployment and its steps.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidegate_core::Time;
use tidegate_core::journal::{
    Deployment, DeploymentStage, DeploymentStep as Line, ForeignObject, JournalLines, ObjectMapping,
    StepState,
};
use tidegate_store::{Clock, Store};

use super::error::{Error, Result};
use super::request::DeployRequest;
use crate::Id;
use crate::plan::{Action, PlanStep, StepTarget};

/// Writes the journal of one deployment.
pub(super) struct JournalWriter {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    deployment: Deployment,
    /// The steps that this deployment has applied: a later plan that finds one done does not record
    /// it again.
    applied: BTreeSet<(Arc<str>, Arc<str>)>,
}

/// The state of a step, as recorded.
pub(super) enum StepRecord<'a> {
    /// It is still to be done.
    Planned,
    /// It was applied.
    Applied(AppliedStep<'a>),
    /// It failed for this reason; the operation that was to execute it.
    Failed(&'a str, Option<&'a str>),
}

/// Details of an applied step.
#[derive(Default)]
pub(super) struct AppliedStep<'a> {
    /// The object.
    pub(super) id: Option<Id>,
    /// The channel of a message.
    pub(super) channel: Option<Id>,
    /// The operation that executed it.
    pub(super) operation: Option<&'a str>,
}

impl JournalWriter {
    /// Resumes the interrupted deployment if the request is the same, or begins a new one. Returns
    /// which of the two.
    pub(super) async fn resume_or_begin(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        wanted: &DeployRequest,
        fence: u64,
    ) -> Result<(Self, bool)> {
        let (scope, request) = (wanted.group(), wanted.encode()?);
        let now = clock.now();
        let last = store.deployments(Some(&scope), 1).await?.into_iter().next();
        let last = last.filter(|last| last.stage == DeploymentStage::Running);
        if let Some(mut last) = last {
            last.fence = fence;
            last.updated_at = now;
            if *last.request == *request {
                last.round += 1;
                let applied = store.deployment_steps(&last.id).await?.into_iter();
                let applied = applied.filter(|step| step.state == StepState::Applied);
                let applied = applied.map(|step| (step.kind, step.key)).collect();
                let pen = Self { store, clock, deployment: last, applied };
                pen.save().await?;
                return Ok((pen, true));
            }
            last.stage = DeploymentStage::Failed;
            last.note = Some("It was interrupted, and another one was started.".into());
            let replaced = Self {
                store: Arc::clone(&store),
                clock: Arc::clone(&clock),
                deployment: last,
                applied: BTreeSet::new(),
            };
            replaced.save().await?;
        }
        let deployment = Deployment {
            id: new_id(now)?.into(),
            scope: scope.into(),
            fence,
            round: 1,
            stage: DeploymentStage::Running,
            request: request.into(),
            note: None,
            started_at: now,
            updated_at: now,
        };
        let pen = Self { store, clock, deployment, applied: BTreeSet::new() };
        pen.save().await?;
        Ok((pen, false))
    }

    async fn save(&self) -> Result<()> {
        match self.store.save_deployment(self.deployment.clone()).await? {
            true => Ok(()),
            false => Err(Error::LeaseLost),
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.deployment.id
    }

    /// Returns the id, followed by the number of the plan from the second plan on: what an earlier
    /// plan submitted without success is submitted again.
    pub(super) fn round_id(&self) -> String {
        match self.deployment.round {
            1 => self.id().to_owned(),
            round => format!("{}.{round}", self.id()),
        }
    }

    /// Returns the steps of the deployment.
    pub(super) async fn steps(&self) -> Result<Vec<Line>> {
        Ok(self.store.deployment_steps(self.id()).await?)
    }

    /// Returns the events of the deployment.
    pub(super) async fn events(&self) -> Result<Vec<Line>> {
        Ok(self.store.deployment_events(self.id()).await?.events)
    }

    /// Starts the next plan.
    pub(super) async fn next_round(&mut self) -> Result<()> {
        self.deployment.round += 1;
        self.deployment.updated_at = self.clock.now();
        self.save().await
    }

    /// Closes the steps that an earlier plan asked for and the last one did not: the guild is as
    /// wanted, so they are no longer needed.
    pub(super) async fn close_remaining_steps(&self) -> Result<()> {
        let open = |step: &Line| step.state != StepState::Applied;
        let mut steps = self.store.deployment_steps(self.id()).await?;
        steps.retain(open);
        for step in &mut steps {
            step.state = StepState::Applied;
            step.note = Some("It turned out not to be needed.".into());
            step.at = self.clock.now();
        }
        if steps.is_empty() {
            return Ok(());
        }
        self.append_lines(JournalLines { steps, mapped: Vec::new() }).await
    }

    /// Records the end of the deployment.
    pub(super) async fn end(&mut self, stage: DeploymentStage, note: Option<String>) -> Result<()> {
        self.deployment.stage = stage;
        self.deployment.note = note.map(Into::into);
        self.deployment.updated_at = self.clock.now();
        self.save().await
    }

    /// Records the state of steps, with their positions in the plan.
    pub(super) async fn write<'s>(
        &mut self,
        steps: impl IntoIterator<Item = (u32, &'s PlanStep, StepRecord<'s>)>,
    ) -> Result<()> {
        let now = self.clock.now();
        let mut lines = JournalLines::default();
        for (nth, step, became) in steps {
            lines.mapped.extend(mapping_of(step, &became));
            let is_new = match became {
                StepRecord::Applied(_) => {
                    self.applied.insert(journal_key(&step.target)) || step.action != Action::Skip
                }
                _ => true,
            };
            if is_new {
                lines.steps.push(step_line(nth, step, &became, now));
            }
        }
        if lines == JournalLines::default() {
            return Ok(());
        }
        self.append_lines(lines).await
    }

    /// Records that an object is not in the state that it was brought to: the server did not keep
    /// it, which is no change by hand.
    pub(super) async fn mark_unkept(&self, step: &PlanStep, channel: Option<Id>) -> Result<()> {
        let (kind, key) = journal_key(&step.target);
        let (Some(id), StepTarget::Object(..)) = (step.id, &step.target) else { return Ok(()) };
        let place = channel.map(|place| place.to_string().into());
        let object = ForeignObject { id: id.to_string().into(), place, fingerprint: "not kept".into() };
        let mapped = vec![ObjectMapping { kind, key, object: Some(object) }];
        self.append_lines(JournalLines { steps: Vec::new(), mapped }).await
    }

    async fn append_lines(&self, lines: JournalLines) -> Result<()> {
        match self.store.write_journal(self.id(), self.deployment.fence, lines).await? {
            true => Ok(()),
            false => Err(Error::LeaseLost),
        }
    }
}

/// Returns the kind and key under which the journal knows a target.
pub(super) fn journal_key(target: &StepTarget) -> (Arc<str>, Arc<str>) {
    match target {
        StepTarget::Object(kind, key) => (kind.to_string().into(), key.as_str().into()),
        StepTarget::RoleOrder => ("order".into(), "roles".into()),
        StepTarget::ChannelOrder => ("order".into(), "channels".into()),
    }
}

fn step_line(nth: u32, step: &PlanStep, became: &StepRecord<'_>, at: Time) -> Line {
    let (kind, key) = journal_key(&step.target);
    let id = |id: &Id| Arc::from(id.to_string());
    let (state, operation, foreign_id, note) = match became {
        StepRecord::Planned => (StepState::Planned, None, step.id.as_ref().map(id), None),
        StepRecord::Applied(applied) => {
            (StepState::Applied, applied.operation.map(Arc::from), applied.id.as_ref().map(id), None)
        }
        StepRecord::Failed(why, operation) => {
            let note = why.replace('\0', "").into();
            (StepState::Failed, operation.map(Arc::from), step.id.as_ref().map(id), Some(note))
        }
    };
    let (action, fingerprint) = (step.action.as_str().into(), step.fingerprint.as_str().into());
    Line { kind, key, nth, action, fingerprint, state, operation, foreign_id, note, at }
}

fn mapping_of(step: &PlanStep, became: &StepRecord<'_>) -> Option<ObjectMapping> {
    let (StepRecord::Applied(applied), StepTarget::Object(..)) = (became, &step.target) else { return None };
    let (kind, key) = journal_key(&step.target);
    if step.action == Action::Remove {
        return Some(ObjectMapping { kind, key, object: None });
    }
    let (id, fingerprint) = (applied.id.as_ref()?.to_string().into(), step.fingerprint.as_str().into());
    let place = applied.channel.map(|place| place.to_string().into());
    Some(ObjectMapping { kind, key, object: Some(ForeignObject { id, place, fingerprint }) })
}

/// Creates an id. Ids sort by time; what follows the time keeps two of the same moment apart.
fn new_id(now: Time) -> Result<String> {
    let mut chance = [0; 4];
    getrandom::fill(&mut chance)
        .map_err(|error| Error::Invalid(format!("The system has no source of randomness: {error}.")))?;
    Ok(format!("{:011x}{:08x}", now.as_millis(), u32::from_be_bytes(chance)))
}
