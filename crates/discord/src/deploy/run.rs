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
use super::progress::{ProgressEvent, ProgressListener};
use super::queue::GuildQueue;
use super::report::DeployReport;
use super::request::DeployRequest;
use super::step::{StepOutcome, step_index};
use super::{Deployer, check_standing, guild_reader, mapping};
use crate::guild::Guild;
use crate::journal::GuildJournal;
use crate::plan::{Action, Options, Plan, PlanStep, StepTarget};
use crate::template::Template;
use crate::{ObjectKey, ObjectKind};

/// Plans per run. Each object is written to a few times at most, so this many are never needed.
const ROUNDS_MAX: u32 = 50;
/// How long to wait before listing the guild again, so that what may have happened a moment ago
/// shows; doubled with each plan that gets nothing done.
const SETTLE: Duration = Duration::from_millis(500);
/// How often it is doubled.
const DOUBLED_MAX: u32 = 4;

/// A running deployment.
pub(super) struct DeploymentRun<'a> {
    deployer: &'a Deployer,
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
        let (pen, resumed) = JournalWriter::resume_or_begin(store, clock, wanted, guard.fence()).await?;
        let report = DeployReport { deployment: pen.id().to_owned(), resumed, ..DeployReport::default() };
        listener.on_event(&ProgressEvent::Begun { deployment: pen.id(), resumed });
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
            _under_way,
        })
    }

    pub(super) async fn finish(mut self) -> Result<DeployReport> {
        let ended = self.run_rounds().await;
        let (stage, note) = match &ended {
            Ok(()) => (DeploymentStage::Done, None),
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
        if plan.conflicts.is_empty() { Ok(()) } else { Err(Error::Conflicts(plan.conflicts)) }
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
        if first {
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
        self.record_plan(&plan, &guild, first).await?;
        let (open, unkept) = self.history.select(&plan);
        self.record_unkept(&plan, &unkept).await?;
        self.execute(&plan, open, &guild).await
    }

    async fn read_guild(&self, all: bool) -> Result<Guild> {
        let messages = MessageScope { all, written: &self.written_messages };
        guild_reader::read_guild(&self.queue(), self.template, &self.journal, messages).await
    }

    /// Executes the steps that are still to be tried. One that fails holds back only those that
    /// need it.
    async fn execute(&mut self, plan: &Plan, open: Vec<&PlanStep>, guild: &Guild) -> Result<RoundOutcome> {
        let mut unmade: BTreeSet<_> = plan.writes().filter_map(created_object).collect();
        let is_open = |step: &&PlanStep| plan.unmet_need(step, &failed_creates(&self.history)).is_none();
        // Positions come from a guild that was listed after every object was created.
        let grows = open.iter().filter(|step| is_open(step)).any(|step| creates_positioned_object(step));
        let (mut executed, mut applied, mut outdated) = (false, false, None);
        for step in open {
            if grows && step.action == Action::Order {
                continue;
            }
            if let Some(needs) = self.find_obstacle(plan, step, &unmade) {
                self.history.block(step, needs);
                continue;
            }
            executed = true;
            match self.apply_step(plan, step, guild, outdated.is_some()).await? {
                StepOutcome::Applied => {
                    applied = true;
                    unmade.retain(|made| created_object(step).as_ref() != Some(made));
                }
                StepOutcome::Failed => {}
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
