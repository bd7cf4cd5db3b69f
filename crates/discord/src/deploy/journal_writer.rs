//! Writes the journal of one deployment and its steps.

use std::collections::{BTreeMap, BTreeSet};
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

/// The note of a step whose effect was found in the guild: a call was made for it, and its response
/// was lost.
pub const FOUND_DONE: &str = "It was found done: the response to its call was lost.";
/// The note of a step that turned out not to be needed.
pub const NOT_NEEDED: &str = "It turned out not to be needed.";

/// The kind and key of a step.
type JournalKey = (Arc<str>, Arc<str>);

/// Writes the journal of one deployment.
pub(super) struct JournalWriter {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    deployment: Deployment,
    /// The steps that this deployment has applied: a later plan that finds one done does not record
    /// it again.
    applied: BTreeSet<JournalKey>,
    /// The steps that this deployment has planned and not applied, with their actions.
    unapplied: BTreeMap<JournalKey, Arc<str>>,
    /// Steps that were found done.
    found: usize,
    /// An interrupted deployment that this one replaces.
    replaced: Option<Deployment>,
    is_open: bool,
}

/// The state of a step, as recorded.
pub(super) enum StepRecord<'a> {
    /// It is still to be done.
    Planned,
    /// It was applied.
    Applied(AppliedStep<'a>),
    /// It turned out not to be needed.
    Unneeded,
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
    /// which of the two. Writes nothing before it is [opened](Self::open).
    pub(super) async fn resume_or_begin(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        wanted: &DeployRequest,
        fence: u64,
    ) -> Result<(Self, bool)> {
        let (scope, request) = (wanted.group(), wanted.encode()?);
        let now = clock.now();
        let last = store.deployments(Some(&scope), 1).await?.into_iter().next();
        let mut last = last.filter(|last| last.stage == DeploymentStage::Running);
        if let Some(last) = &mut last {
            last.fence = fence;
            last.updated_at = now;
        }
        if let Some(mut last) = last.take_if(|last| *last.request == *request) {
            last.round += 1;
            let mut pen = Self::new(store, clock, last);
            for step in pen.steps().await? {
                let key = (step.kind, step.key);
                match step.state {
                    StepState::Applied => drop(pen.applied.insert(key)),
                    StepState::Planned | StepState::Failed => drop(pen.unapplied.insert(key, step.action)),
                }
            }
            return Ok((pen, true));
        }
        if let Some(last) = &mut last {
            last.stage = DeploymentStage::Failed;
            last.note = Some("It was interrupted, and another one was started.".into());
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
        Ok((Self { replaced: last, ..Self::new(store, clock, deployment) }, false))
    }

    fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, deployment: Deployment) -> Self {
        let (applied, unapplied) = (BTreeSet::new(), BTreeMap::new());
        Self { store, clock, deployment, applied, unapplied, found: 0, replaced: None, is_open: false }
    }

    /// Begins to write: from here on the deployment is in the journal.
    pub(super) async fn open(&mut self) -> Result<()> {
        if let Some(replaced) = self.replaced.take() {
            self.save_deployment(replaced).await?;
        }
        self.save().await?;
        self.is_open = true;
        Ok(())
    }

    /// Returns whether the deployment is in the journal.
    pub(super) const fn is_open(&self) -> bool {
        self.is_open
    }

    async fn save(&self) -> Result<()> {
        self.save_deployment(self.deployment.clone()).await
    }

    async fn save_deployment(&self, deployment: Deployment) -> Result<()> {
        match self.store.save_deployment(deployment).await? {
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

    /// Returns the number of steps that were found done.
    pub(super) const fn found(&self) -> usize {
        self.found
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
            step.note = Some(NOT_NEEDED.into());
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
            let (key, mut line) = (journal_key(&step.target), step_line(nth, step, &became, now));
            let is_new = match became {
                StepRecord::Applied(_) | StepRecord::Unneeded => {
                    let planned = self.unapplied.remove(&key).filter(|_| step.action == Action::Skip);
                    if let Some(action) = planned {
                        (line.action, line.note) = (action, Some(FOUND_DONE.into()));
                        self.found += 1;
                    }
                    self.applied.insert(key) || step.action != Action::Skip
                }
                StepRecord::Planned | StepRecord::Failed(..) => {
                    self.unapplied.insert(key, step.action.as_str().into());
                    true
                }
            };
            if is_new {
                lines.steps.push(line);
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
    let (kind, key) = target.words();
    (kind.into(), key.into())
}

fn step_line(nth: u32, step: &PlanStep, became: &StepRecord<'_>, at: Time) -> Line {
    let (kind, key) = journal_key(&step.target);
    let id = |id: &Id| Arc::from(id.to_string());
    let (state, operation, foreign_id, note) = match became {
        StepRecord::Planned => (StepState::Planned, None, step.id.as_ref().map(id), None),
        StepRecord::Applied(applied) => {
            (StepState::Applied, applied.operation.map(Arc::from), applied.id.as_ref().map(id), None)
        }
        StepRecord::Unneeded => (StepState::Applied, None, step.id.as_ref().map(id), Some(NOT_NEEDED.into())),
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
