//! One run of a deployment: read, plan, execute, and repeat when the plan no longer holds. Orders
//! come last, from a guild that was listed after every object was created.

use std::time::Duration;

use tidegate_core::journal::DeploymentStage;
use tidegate_limits::LeaseGuard;
use tokio::time::Instant;

use super::active::ActiveDeployment;
use super::audit::AuditLog;
use super::error::{Error, Result};
use super::journal_writer::{AppliedStep, JournalWriter, StepRecord};
use super::progress::{ProgressEvent, ProgressListener};
use super::queue::GuildQueue;
use super::report::DeployReport;
use super::request::DeployRequest;
use super::step::StepOutcome;
use super::{Deployer, guild_reader, mapping};
use crate::ObjectKind;
use crate::guild::Guild;
use crate::journal::GuildJournal;
use crate::plan::{Action, Options, Plan, PlanStep};
use crate::template::Template;

/// Consecutive plans that get nothing done before the run gives up.
const FRUITLESS_MAX: u32 = 5;
/// Plans per run.
const ROUNDS_MAX: u32 = 200;
/// How long to wait before listing the guild again, so that what may have happened a moment ago
/// shows.
const SETTLE: Duration = Duration::from_millis(500);

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
    pub(super) audit: AuditLog,
    /// When it was last unknown whether something was created.
    pub(super) uncertain_since: Option<Instant>,
    _under_way: ActiveDeployment,
}

/// The outcome of executing one plan.
enum RoundOutcome {
    /// All of it is done.
    Complete,
    /// Objects were created: steps that depend on their positions come next.
    ObjectsCreated,
    /// The plan no longer held, for this reason; the number of steps applied before that.
    Outdated(String, usize),
}

impl<'a> DeploymentRun<'a> {
    pub(super) async fn begin(
        deployer: &'a Deployer,
        wanted: &'a DeployRequest,
        template: &'a Template,
        guard: &'a LeaseGuard,
        listener: &'a dyn ProgressListener,
    ) -> Result<Self> {
        let (pen, resumed) =
            JournalWriter::resume_or_begin(deployer.store.clone(), wanted, guard.fence()).await?;
        let report = DeployReport { deployment: pen.id().to_owned(), resumed, ..DeployReport::default() };
        listener.on_event(&ProgressEvent::Begun { deployment: pen.id(), resumed });
        let journal = mapping::load(&*deployer.store, &wanted.group()).await?;
        let audit = AuditLog::default();
        // What an interrupted run had sent may have taken effect or not.
        let (unsure, _under_way) = (resumed.then(Instant::now), ActiveDeployment::new(pen.id()));
        Ok(Self {
            deployer,
            wanted,
            template,
            guard,
            listener,
            writer: pen,
            journal,
            report,
            audit,
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
        for _ in 0..ROUNDS_MAX {
            self.report.rounds += 1;
            match self.run_round().await? {
                RoundOutcome::Complete => return self.ensure_no_duplicates().await,
                RoundOutcome::ObjectsCreated => fruitless = 0,
                RoundOutcome::Outdated(because, applied) => {
                    fruitless = if applied == 0 { fruitless + 1 } else { 0 };
                    if fruitless == FRUITLESS_MAX {
                        return Err(Error::GaveUp { rounds: self.report.rounds, last: because });
                    }
                    self.listener.on_event(&ProgressEvent::Replanning { because: &because });
                    tokio::time::sleep(SETTLE * (1 << fruitless)).await;
                }
            }
            self.writer.next_round().await?;
        }
        Err(Error::GaveUp { rounds: self.report.rounds, last: "the guild keeps changing".into() })
    }

    /// Checks for objects that were created late, after the search for them. Such an object exists
    /// twice, and the error names it.
    async fn ensure_no_duplicates(&self) -> Result<()> {
        let Some(unsure) = self.uncertain_since else { return Ok(()) };
        tokio::time::sleep_until(unsure + self.deployer.recheck_delay).await;
        let guild = guild_reader::read_guild(&self.queue(), self.template, &self.journal, false).await?;
        let plan = Plan::make(self.template, &guild, &self.journal, Options { prune: self.wanted.prune });
        if plan.conflicts.is_empty() { Ok(()) } else { Err(Error::Conflicts(plan.conflicts)) }
    }

    pub(super) fn queue(&self) -> GuildQueue<'_> {
        self.deployer.queue(self.wanted, Some(self.writer.id()), self.listener)
    }

    async fn run_round(&mut self) -> Result<RoundOutcome> {
        self.listener.on_event(&ProgressEvent::Reading);
        let first = self.report.rounds == 1;
        let all = self.wanted.verify && first;
        let guild = guild_reader::read_guild(&self.queue(), self.template, &self.journal, all).await?;
        let plan = Plan::make(self.template, &guild, &self.journal, Options { prune: self.wanted.prune });
        if !plan.conflicts.is_empty() {
            return Err(Error::Conflicts(plan.conflicts));
        }
        self.record_plan(&plan, &guild, first).await?;
        let grows = plan.writes().any(creates_positioned_object);
        let orders = plan.writes().filter(|step| step.action == Action::Order && !grows);
        let mut applied = 0;
        for step in plan.scheduled_steps().into_iter().chain(orders) {
            match self.apply_step(&plan, step, &guild).await? {
                StepOutcome::Applied => applied += 1,
                StepOutcome::Outdated(because) => return Ok(RoundOutcome::Outdated(because, applied)),
            }
        }
        Ok(if grows { RoundOutcome::ObjectsCreated } else { RoundOutcome::Complete })
    }

    /// Records the steps to do, and the objects that need no change.
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
        let lines: Vec<_> = (0..).zip(&plan.steps).map(|(nth, step)| (nth, step, became(step))).collect();
        self.writer.write(lines).await
    }
}

/// Returns whether a step creates an object that has a position among others.
fn creates_positioned_object(step: &PlanStep) -> bool {
    step.action == Action::Create && step.target.kind() != Some(ObjectKind::Message)
}
