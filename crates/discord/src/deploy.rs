//! The deployer: brings a guild to the state its template describes. It plans from the live guild,
//! submits each step to the queue as an operation of the guild's group, and writes the journal
//! before and after. It makes no decision that belongs to the plan or the queue, and keeps no state
//! outside the store.

mod active;
mod audit;
mod builder;
mod call_times;
pub mod error;
pub mod executor;
mod guild_reader;
mod history;
mod journal_writer;
mod known_limits;
mod mapping;
mod pace;
mod payload;
mod postponed;
mod preview;
pub mod progress;
mod queue;
mod report;
mod request;
mod room;
mod run;
mod step;
mod token;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate::Engine;
use tidegate_core::journal::DeploymentStage;
use tidegate_limits::{LeaseAcquisition, LeaseGuard, NamedLease};
use tidegate_store::{Clock, Store, WallClock};

pub use builder::DeployerBuilder;
pub use error::{BlockedStep, Error, FailureCause, Result, StepFailure};
pub use executor::StepExecutor;
pub use journal_writer::{FOUND_DONE, NOT_NEEDED};
pub use preview::PlanPreview;
pub use progress::{NoopListener, ProgressEvent, ProgressListener};
pub use report::DeployReport;
pub use request::{DeployRequest, group};

use crate::Id;
use crate::guild::Guild;
use crate::plan::{self, Options, Plan};
use crate::template::Template;
use call_times::CallTimes;
use guild_reader::MessageScope;
use queue::GuildQueue;
use run::DeploymentRun;

/// How long the guild stays locked after its holder has died.
const LEASE: Duration = Duration::from_secs(5);
/// How long after a lost response its effect may still show. A deployment is not done before that.
const RECHECK_DELAY: Duration = Duration::from_secs(5);
/// How long a deployment waits for the guild by default: longer than a dead holder's lease.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// Deploys templates into guilds through one engine.
#[derive(Clone)]
pub struct Deployer {
    engine: Engine,
    store: Arc<dyn Store>,
    patience: Duration,
    lease: Duration,
    recheck_delay: Duration,
    clock: Arc<dyn Clock>,
    call_times: Arc<CallTimes>,
}

impl Deployer {
    /// Creates a deployer over an engine whose executors handle [`executor::KINDS`], with the
    /// journal in the engine's store.
    #[must_use]
    pub fn new(engine: Engine, store: Arc<dyn Store>) -> Self {
        Self {
            engine,
            store,
            patience: PATIENCE,
            lease: LEASE,
            recheck_delay: RECHECK_DELAY,
            clock: Arc::new(WallClock),
            call_times: Arc::default(),
        }
    }

    /// Returns the engine, to drain it before the program ends.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Sets how long to wait for a guild in which another deployment is running.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Sets how long the guild stays locked after its holder has died; 5 s by default.
    #[must_use]
    pub fn with_lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// Sets after how long to look again for objects that may have been created; 5 s by default.
    #[must_use]
    pub fn with_recheck_delay(self, late: Duration) -> Self {
        Self { recheck_delay: late, ..self }
    }

    /// Sets the clock of the journal.
    #[doc(hidden)]
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Makes a plan and changes nothing in the guild. Reads every channel that holds a message.
    /// Records in the journal which messages were deleted or edited by hand, so that the next
    /// deployment repairs them.
    ///
    /// # Errors
    /// When the guild cannot be listed.
    pub async fn plan(
        &self,
        wanted: &DeployRequest,
        template: &Template,
        listener: &dyn ProgressListener,
    ) -> Result<PlanPreview> {
        let queue = self.queue(wanted, None, listener);
        queue.withdraw_interrupted().await?;
        listener.on_event(&ProgressEvent::Reading);
        let journal = mapping::load(&*self.store, &wanted.group()).await?;
        let guild = guild_reader::read_guild(&queue, template, &journal, MessageScope::ALL).await?;
        let mut plan = Plan::make(template, &guild, &journal, Options { prune: wanted.prune });
        check_standing(&queue, wanted, template, &guild, &mut plan).await?;
        mapping::correct_messages(&*self.store, &wanted.group(), &plan).await?;
        let limits = self.known_limits(wanted).await?;
        Ok(PlanPreview { plan, guild, limits })
    }

    /// Brings the guild to the state the template describes, or resumes an interrupted deployment
    /// of the same template.
    ///
    /// # Errors
    /// The reason why the deployment stopped. What was done is in the journal, and the next run
    /// resumes from there.
    pub async fn apply(
        &self,
        wanted: &DeployRequest,
        listener: &dyn ProgressListener,
    ) -> Result<DeployReport> {
        let template = wanted.read().map_err(|problems| Error::Invalid(problems.to_string()))?;
        let guard = self.lock_guild(wanted).await?;
        self.run(wanted, &template, guard, listener).await
    }

    /// Resumes an interrupted deployment. Leaves it alone, and returns no report, when it has ended
    /// or was replaced by another one in the meantime.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub async fn resume(
        &self,
        deployment: &str,
        listener: &dyn ProgressListener,
    ) -> Result<Option<DeployReport>> {
        let Some(kept) = self.store.deployment(deployment).await? else { return Ok(None) };
        if kept.stage != DeploymentStage::Running {
            return Ok(None);
        }
        let wanted = DeployRequest::decode(&kept.request)?;
        let template = wanted.read().map_err(|problems| Error::Invalid(problems.to_string()))?;
        let guard = self.lock_guild(&wanted).await?;
        // Only now can no one else change it.
        let last = self.store.deployments(Some(&wanted.group()), 1).await?.into_iter().next();
        if last.is_none_or(|last| *last.id != *deployment || last.stage != DeploymentStage::Running) {
            let _ = guard.release().await;
            return Ok(None);
        }
        self.run(&wanted, &template, guard, listener).await.map(Some)
    }

    async fn run(
        &self,
        wanted: &DeployRequest,
        template: &Template,
        guard: LeaseGuard,
        listener: &dyn ProgressListener,
    ) -> Result<DeployReport> {
        let done = DeploymentRun::begin(self, wanted, template, &guard, listener).await?.finish().await;
        // A lease that is not released expires.
        let _ = guard.release().await;
        done
    }

    async fn lock_guild(&self, wanted: &DeployRequest) -> Result<LeaseGuard> {
        let scope = wanted.group();
        let lease = NamedLease::new(Arc::clone(&self.store) as _, format!("deploy:{scope}"), self.lease)?;
        match lease.acquire_within(self.patience).await? {
            LeaseAcquisition::Held(guard) => Ok(guard),
            LeaseAcquisition::Busy { .. } => {
                let last = self.store.deployments(Some(&scope), 1).await?.into_iter().next();
                let deployment = last.map(|last| last.id.to_string());
                Err(Error::Busy { guild: wanted.guild, deployment })
            }
        }
    }

    fn queue<'a>(
        &'a self,
        wanted: &'a DeployRequest,
        deployment: Option<&'a str>,
        listener: &'a dyn ProgressListener,
    ) -> GuildQueue<'a> {
        let (engine, upstream, guild): (_, _, Id) = (&self.engine, wanted.upstream.as_str(), wanted.guild);
        GuildQueue { engine, upstream, guild, deployment, listener, call_times: &self.call_times }
    }
}

/// Adds what would keep the bot from applying a plan to the plan's conflicts.
async fn check_standing(
    queue: &GuildQueue<'_>,
    wanted: &DeployRequest,
    template: &Template,
    guild: &Guild,
    plan: &mut Plan,
) -> Result<()> {
    if wanted.skip_preflight || plan.writes().next().is_none() {
        return Ok(());
    }
    if let Some(bot) = guild_reader::read_standing(queue, guild).await? {
        let problems = plan::check_standing(template, plan, guild, &bot);
        plan.remarks.extend(plan::find_lockouts(template, plan, guild, &bot));
        plan.conflicts.extend(problems);
    }
    Ok(())
}

impl fmt::Debug for Deployer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deployer").field("store", &self.store.describe()).finish_non_exhaustive()
    }
}
