//! One run of a deployment: read, plan, execute, and repeat when the plan no longer holds. Orders
//! come last, from a guild that was listed after every object was created.

use std::collections::BTreeSet;
use std::time::Duration;

use tidegate_core::journal::DeploymentStage;
use tidegate_limits::LeaseGuard;
use tokio::time::Instant;

use super::active::ActiveDeployment;
use super::error::{Error, Result};
use super::guild_reader::MessageScope;
use super::history::StepHistory;
use super::journal_writer::{AppliedStep, JournalWriter, StepRecord};
use super::postponed::PostponedSteps;
use super::progress::{ProgressEvent, ProgressListener};
use super::queue::GuildQueue;
use super::report::DeployReport;
use super::request::DeployRequest;
use super::room::RoomState;
use super::step::{StepContext, StepOutcome, step_index};
use super::{Deployer, check_standing, guild_reader, mapping};
use crate::guild::Guild;
use crate::journal::GuildJournal;
use crate::plan::{Action, Conflict, Options, Plan, PlanStep, StepTarget};
use crate::template::Template;
use crate::{Id, ObjectKey, ObjectKind};

/// Plans per run. Each object is written to a few times at most, so this many are never needed.
const ROUNDS_MAX: u32 = 50;
/// How long to wait before listing the guild again, so that what may have happened a moment ago
/// shows; doubled with each plan that gets nothing done.
const SETTLE: Duration = Duration::from_millis(500);
/// How often it is doubled.
const DOUBLED_MAX: u32 = 4;

/// A running deployment.
pub(super) struct DeploymentRun<'a> {
    pub(super) deployer: &'a Deployer,
    pub(super) wanted: &'a DeployRequest,
    template: &'a Template,
    pub(super) guard: &'a LeaseGuard,
    pub(super) listener: &'a dyn ProgressListener,
    pub(super) writer: JournalWriter,
    pub(super) journal: GuildJournal,
    pub(super) report: DeployReport,
    /// What was tried with each object.
    pub(super) history: StepHistory,
    /// The messages that this run has written: they are read again before it is done.
    pub(super) written_messages: BTreeSet<ObjectKey>,
    /// When it was last unknown whether something was created.
    pub(super) uncertain_since: Option<Instant>,
    /// The steps that wait for long, and go last.
    pub(super) postponed: PostponedSteps,
    /// Whether removals have to make room.
    pub(super) room: RoomState,
    /// The objects that had the key of a managed one before this run wrote anything.
    namesakes: BTreeSet<Id>,
    _under_way: ActiveDeployment,
}

/// The outcome of executing one plan.
enum RoundOutcome {
    /// The guild was read, and nothing is left to try.
    Settled,
    /// Steps were executed: a new plan shows what is left.
    Executed,
    /// The plan no longer held, for this reason; whether steps were applied all the same.
    Outdated(String, bool),
}

impl<'a> DeploymentRun<'a> {
    pub(super) async fn begin(
        deployer: &'a Deployer,
        wanted: &'a DeployRequest,
        template: &'a Template,
        guard: &'a LeaseGuard,
        listener: &'a dyn ProgressListener,
    ) -> Result<Self> {
        let (store, clock) = (deployer.store.clone(), deployer.clock.clone());
        let (mut pen, resumed) = JournalWriter::resume_or_begin(store, clock, wanted, guard.fence()).await?;
        let report = DeployReport { deployment: pen.id().to_owned(), resumed, ..DeployReport::default() };
        // A plan that was agreed to may no longer hold: then there is no deployment.
        if wanted.plan_digest.is_none() {
            pen.open().await?;
            listener.on_event(&ProgressEvent::Begun { deployment: pen.id(), resumed });
        }
        let withdrawn = deployer.queue(wanted, Some(pen.id()), listener).withdraw_interrupted().await?;
        let journal = mapping::load(&*deployer.store, &wanted.group()).await?;
        // What an interrupted run had sent may have taken effect or not.
        let unsure = (resumed || withdrawn).then(Instant::now);
        let _under_way = ActiveDeployment::new(pen.id());
        Ok(Self {
            deployer,
            wanted,
            template,
            guard,
            listener,
            writer: pen,
            journal,
            report,
            history: StepHistory::default(),
            written_messages: BTreeSet::new(),
            uncertain_since: unsure,
            postponed: PostponedSteps::default(),
            room: RoomState::default(),
            namesakes: BTreeSet::new(),
            _under_way,
        })
    }

    pub(super) async fn finish(mut self) -> Result<DeployReport> {
        let ended = self.run_rounds().await;
        let (stage, note) = match &ended {
            Ok(()) => (DeploymentStage::Done, None),
            Err(_) if !self.writer.is_open() => return ended.map(|()| self.report),
            // The next run resumes it.
            Err(error) if error.is_transient() => {
                tracing::warn!(deployment = self.writer.id(), %error, "the deployment was interrupted");
                return ended.map(|()| self.report);
            }
            Err(error) => (DeploymentStage::Failed, Some(error.to_string())),
        };
        if stage == DeploymentStage::Done {
            self.writer.close_remaining_steps().await?;
        }
        self.post_audit(note.as_deref()).await;
        self.writer.end(stage, note).await?;
        ended.map(|()| self.report)
    }

    async fn run_rounds(&mut self) -> Result<()> {
        let mut fruitless = 0;
        let mut last = String::new();
        for _ in 0..ROUNDS_MAX {
            self.report.rounds += 1;
            match self.run_round().await? {
                RoundOutcome::Settled => {
                    self.ensure_no_duplicates().await?;
                    return self.check_failures();
                }
                RoundOutcome::Executed => fruitless = 0,
                RoundOutcome::Outdated(because, applied) => {
                    fruitless = if applied { 0 } else { fruitless + 1 };
                    self.listener.on_event(&ProgressEvent::Replanning { because: &because });
                    tokio::time::sleep(SETTLE * (1 << fruitless.min(DOUBLED_MAX))).await;
                    last = because;
                }
            }
            self.writer.next_round().await?;
        }
        Err(Error::GaveUp { rounds: self.report.rounds, last })
    }

    /// Fails if some steps have failed.
    fn check_failures(&mut self) -> Result<()> {
        if !self.history.has_failures() {
            return Ok(());
        }
        let (failures, blocked) = self.history.take_failures();
        Err(Error::Incomplete { failures, blocked, applied: self.report.writes() })
    }

    /// Checks for objects that were created late, after the search for them. Such an object exists
    /// twice, and the error names it.
    async fn ensure_no_duplicates(&self) -> Result<()> {
        let Some(unsure) = self.uncertain_since else { return Ok(()) };
        tokio::time::sleep_until(unsure + self.deployer.recheck_delay).await;
        let guild = self.read_guild(false).await?;
        let plan = Plan::make(self.template, &guild, &self.journal, Options { prune: self.wanted.prune });
        let late = plan.namesakes.iter().filter(|other| !self.namesakes.contains(&other.id));
        let late = late.map(|other| Conflict::DuplicateKey {
            kind: other.kind,
            key: other.key.clone(),
            ids: vec![other.managed_id, other.id],
            names: Vec::new(),
        });
        let conflicts: Vec<_> = late.chain(plan.conflicts).collect();
        if conflicts.is_empty() { Ok(()) } else { Err(Error::Conflicts(conflicts)) }
    }

    pub(super) fn queue(&self) -> GuildQueue<'_> {
        self.deployer.queue(self.wanted, Some(self.writer.id()), self.listener)
    }

    async fn run_round(&mut self) -> Result<RoundOutcome> {
        self.listener.on_event(&ProgressEvent::Reading);
        let first = self.report.rounds == 1;
        let all = first && !self.wanted.trust_journal;
        let guild = self.read_guild(all).await?;
        let options = Options { prune: self.wanted.prune };
        let mut plan = Plan::make(self.template, &guild, &self.journal, options);
        plan.prunes_first |= self.room.begin_round(&plan);
        if first {
            self.namesakes = plan.namesakes.iter().map(|other| other.id).collect();
            check_standing(&self.queue(), self.wanted, self.template, &guild, &mut plan).await?;
        }
        if !plan.conflicts.is_empty() {
            return Err(Error::Conflicts(plan.conflicts));
        }
        if let Some(agreed) = self.wanted.plan_digest.as_ref().filter(|_| first)
            && *agreed != plan.digest()
        {
            return Err(Error::Changed);
        }
        if !self.writer.is_open() {
            self.writer.open().await?;
            let (deployment, resumed) = (self.writer.id(), self.report.resumed);
            self.listener.on_event(&ProgressEvent::Begun { deployment, resumed });
        }
        self.record_plan(&plan, &guild, first).await?;
        let (open, unkept) = self.history.select(&plan);
        self.record_unkept(&plan, &unkept).await?;
        let outcome = self.execute(&plan, open, &guild).await?;
        if let RoundOutcome::Settled = outcome {
            self.report.found = self.writer.found();
        }
        Ok(outcome)
    }

    async fn read_guild(&self, all: bool) -> Result<Guild> {
        let messages = MessageScope { all, written: &self.written_messages };
        guild_reader::read_guild(&self.queue(), self.template, &self.journal, messages).await
    }

    /// Executes the steps that are still to be tried. One that fails holds back only those that
    /// need it.
    async fn execute(
        &mut self,
        plan: &Plan,
        mut open: Vec<&PlanStep>,
        guild: &Guild,
    ) -> Result<RoundOutcome> {
        self.postponed.begin_round(plan, &mut open);
        let mut unmade: BTreeSet<_> = plan.writes().filter_map(created_object).collect();
        let is_open = |step: &&PlanStep| plan.unmet_need(step, &failed_creates(&self.history)).is_none();
        // Positions come from a guild that was listed after every object was created.
        let grows = open.iter().filter(|step| is_open(step)).any(|step| creates_positioned_object(step));
        let (mut executed, mut applied, mut outdated) = (false, false, None);
        self.report_rest(&open).await?;
        for (nth, step) in open.iter().copied().enumerate() {
            if grows && step.action == Action::Order || self.postponed.holds(plan, step) {
                continue;
            }
            if let Some(needs) = self.find_obstacle(plan, step, &unmade) {
                self.history.block(step, needs);
                continue;
            }
            executed = true;
            let rest = open.get(nth + 1..).unwrap_or_default();
            let can_postpone = self.postponed.can_postpone(step, rest);
            let context = StepContext { plan, guild, is_outdated: outdated.is_some(), can_postpone };
            match self.apply_step(step, context).await? {
                StepOutcome::Applied => {
                    applied = true;
                    unmade.retain(|made| created_object(step).as_ref() != Some(made));
                    self.report_rest(rest).await?;
                }
                StepOutcome::Failed | StepOutcome::Postponed => {}
                StepOutcome::Outdated(because) => outdated = Some(because),
            }
        }
        Ok(match outdated {
            Some(because) => RoundOutcome::Outdated(because, applied),
            None if executed => RoundOutcome::Executed,
            None => RoundOutcome::Settled,
        })
    }

    /// Returns the step that has to be applied before this one. Nothing is removed while anything
    /// has failed: it may be what a removed object was to be replaced by.
    fn find_obstacle(
        &self,
        plan: &Plan,
        step: &PlanStep,
        unmade: &BTreeSet<(ObjectKind, ObjectKey)>,
    ) -> Option<StepTarget> {
        let failed = self.history.failed_targets().into_iter().next();
        let held = failed.filter(|_| step.action == Action::Remove).cloned();
        plan.unmet_need(step, unmade).or(held)
    }

    /// Records the steps that were accepted and did not stick.
    async fn record_unkept(&mut self, plan: &Plan, unkept: &[&PlanStep]) -> Result<()> {
        for step in unkept {
            let message = self.history.failure(&step.target).map(|failure| failure.message.clone());
            let message = message.unwrap_or_default();
            let record = StepRecord::Failed(&message, None);
            self.writer.write([(step_index(plan, step), *step, record)]).await?;
            self.writer.mark_unkept(step, self.channel_of(step)).await?;
            self.listener.on_event(&ProgressEvent::Failed { step, because: &message });
        }
        Ok(())
    }

    /// Records the steps to do, and the objects that need no change. What has failed for good is
    /// still in the plan; it is not tried again, and stays failed in the journal.
    async fn record_plan(&mut self, plan: &Plan, guild: &Guild, first: bool) -> Result<()> {
        let calls = plan.writes().count();
        self.listener.on_event(&ProgressEvent::Planned { plan, calls, round: self.report.rounds });
        self.report.leftovers = plan.leftovers.len();
        for step in &plan.steps {
            if step.adopted {
                self.report.adopted += 1;
            }
            if step.call.is_none() {
                if first {
                    self.report.count(Action::Skip);
                }
                let channel = step.id.and_then(|id| guild.channel_of_message(id));
                self.remember(step, step.id, channel);
            }
        }
        let became = |step: &PlanStep| match step.call {
            Some(_) => StepRecord::Planned,
            None => StepRecord::Applied(AppliedStep {
                id: step.id,
                channel: self.channel_of(step),
                operation: None,
            }),
        };
        let has_failed =
            |step: &PlanStep| step.call.is_some() && self.history.failure(&step.target).is_some();
        let steps = (0..).zip(&plan.steps).filter(|(_, step)| !has_failed(step));
        let lines: Vec<_> = steps.map(|(nth, step)| (nth, step, became(step))).collect();
        self.writer.write(lines).await
    }
}

/// Returns the object that a step creates.
fn created_object(step: &PlanStep) -> Option<(ObjectKind, ObjectKey)> {
    match (&step.target, step.action) {
        (StepTarget::Object(kind, key), Action::Create) => Some((*kind, key.clone())),
        _ => None,
    }
}

/// Returns the objects that could not be created.
fn failed_creates(history: &StepHistory) -> BTreeSet<(ObjectKind, ObjectKey)> {
    let object = |target: &StepTarget| match target {
        StepTarget::Object(kind, key) => Some((*kind, key.clone())),
        StepTarget::RoleOrder | StepTarget::ChannelOrder => None,
    };
    history.failed_targets().into_iter().filter_map(object).collect()
}

/// Returns whether a step creates an object that has a position among others.
fn creates_positioned_object(step: &PlanStep) -> bool {
    step.action == Action::Create && step.target.kind() != Some(ObjectKind::Message)
}
