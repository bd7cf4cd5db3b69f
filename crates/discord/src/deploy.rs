//! The deployer: makes a guild what its template says. It plans from the live guild, hands each step to the queue as an
//! operation of the guild's group, and writes the journal before and after. It decides nothing that the plan or the
//! queue decides, and remembers nothing that is not in the store.

mod active;
mod audit;
pub mod error;
pub mod executor;
mod guild_reader;
mod journal_writer;
mod known_limits;
mod mapping;
mod payload;
pub mod progress;
mod queue;
mod report;
mod request;
mod run;
mod step;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate::Engine;
use tidegate_core::journal::DeploymentStage;
use tidegate_limits::{LeaseAcquisition, LeaseGuard, NamedLease};
use tidegate_store::Store;

pub use error::{Error, Result};
pub use executor::StepExecutor;
pub use progress::{NoopListener, ProgressEvent, ProgressListener};
pub use report::DeployReport;
pub use request::{DeployRequest, group};

use crate::Id;
use crate::guild::Guild;
use crate::plan::{KnownLimits, Options, Plan};
use crate::template::Template;
use queue::GuildQueue;
use run::DeploymentRun;

/// How long the guild stays held after its holder has died.
const LEASE: Duration = Duration::from_secs(5);
/// How long after a lost answer its effect may still show. Only then is a deployment called done.
const RECHECK_DELAY: Duration = Duration::from_secs(5);
/// How long a deployment waits for the guild when nothing else is said: longer than a dead holder's lease.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// Deploys into guilds through one engine.
#[derive(Clone)]
pub struct Deployer {
    engine: Engine,
    store: Arc<dyn Store>,
    patience: Duration,
    lease: Duration,
    recheck_delay: Duration,
}

/// What would be done.
#[derive(Debug)]
pub struct PlanPreview {
    /// The plan.
    pub plan: Plan,
    /// The guild that it was made from.
    pub guild: Guild,
    /// What is known of the limits by now.
    pub limits: KnownLimits,
}

impl Deployer {
    /// Over an engine whose executors carry [`executor::KINDS`], with the journal in its store.
    #[must_use]
    pub fn new(engine: Engine, store: Arc<dyn Store>) -> Self {
        Self { engine, store, patience: PATIENCE, lease: LEASE, recheck_delay: RECHECK_DELAY }
    }

    /// Waits so long for a guild in which another deployment is under way.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The guild stays held for so long after its holder has died; 5 s when nothing is said.
    #[must_use]
    pub fn with_lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// What may have been made is looked for once more after so long; 5 s when nothing is said.
    #[must_use]
    pub fn with_recheck_delay(self, late: Duration) -> Self {
        Self { recheck_delay: late, ..self }
    }

    /// Says what would be done, and changes nothing in the guild. Every channel that holds a message is read. A message
    /// that was deleted or edited by hand is noted in the journal, so that the next deployment puts it right.
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
        listener.on_event(&ProgressEvent::Reading);
        let journal = mapping::load(&*self.store, &wanted.group()).await?;
        let guild = guild_reader::read_guild(&queue, template, &journal, true).await?;
        let plan = Plan::make(template, &guild, &journal, Options { prune: wanted.prune });
        mapping::correct_messages(&*self.store, &wanted.group(), &plan).await?;
        let limits = known_limits::load(&self.engine, &wanted.upstream, wanted.guild).await?;
        Ok(PlanPreview { plan, guild, limits })
    }

    /// Makes the guild what the template says, or goes on where an interrupted deployment of the same was.
    ///
    /// # Errors
    /// Why it did not come to its end. What was done is in the journal, and the next run goes on from there.
    pub async fn apply(
        &self,
        wanted: &DeployRequest,
        listener: &dyn ProgressListener,
    ) -> Result<DeployReport> {
        let template = wanted.read().map_err(|problems| Error::Invalid(problems.to_string()))?;
        let guard = self.lock_guild(wanted).await?;
        self.run(wanted, &template, guard, listener).await
    }

    /// Goes on with a deployment that was interrupted. One that has come to its end meanwhile, or was replaced by another
    /// one, is left as it is: then there is no report.
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
        // Only now nobody else changes it.
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
        // What is not given back runs out.
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
        GuildQueue { engine, upstream, guild, deployment, listener }
    }
}

impl fmt::Debug for Deployer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deployer").field("store", &self.store.describe()).finish_non_exhaustive()
    }
}
