//! The deployer: makes a guild what its template says. It plans from the live guild, hands each step to the queue as an
//! operation of the guild's group, and writes the journal before and after. It decides nothing that the plan or the
//! queue decides, and remembers nothing that is not in the store.

mod audit;
pub mod error;
pub mod executor;
mod known;
mod mapping;
mod payload;
pub mod progress;
mod queue;
mod reading;
mod record;
mod report;
mod run;
mod step;
mod under_way;
mod wanted;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate::Engine;
use tidegate_core::journal::Stage;
use tidegate_limits::{Acquired, Guard, Lease};
use tidegate_store::Store;

pub use error::{Error, Result};
pub use executor::Steps;
pub use progress::{Listener, Quiet, Told};
pub use report::Report;
pub use wanted::{Wanted, group};

use crate::Id;
use crate::guild::Guild;
use crate::plan::{Limits, Options, Plan};
use crate::template::Template;
use queue::Queue;
use run::Run;

/// How long the guild stays held after its holder has died.
const LEASE: Duration = Duration::from_secs(5);
/// How long after a lost answer its effect may still show. Only then is a deployment called done.
const LATE: Duration = Duration::from_secs(5);
/// How long a deployment waits for the guild when nothing else is said: longer than a dead holder's lease.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// Deploys into guilds through one engine.
#[derive(Clone)]
pub struct Deployer {
    engine: Engine,
    store: Arc<dyn Store>,
    patience: Duration,
    lease: Duration,
    late: Duration,
}

/// What would be done.
#[derive(Debug)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// The guild that it was made from.
    pub guild: Guild,
    /// What is known of the limits by now.
    pub limits: Limits,
}

impl Deployer {
    /// Over an engine whose executors carry [`executor::KINDS`], with the journal in its store.
    #[must_use]
    pub fn new(engine: Engine, store: Arc<dyn Store>) -> Self {
        Self { engine, store, patience: PATIENCE, lease: LEASE, late: LATE }
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
    pub fn with_late(self, late: Duration) -> Self {
        Self { late, ..self }
    }

    /// Says what would be done, and changes nothing in the guild. Every channel that holds a message is read. A message
    /// that was deleted or edited by hand is noted in the journal, so that the next deployment puts it right.
    ///
    /// # Errors
    /// When the guild cannot be listed.
    pub async fn plan(
        &self,
        wanted: &Wanted,
        template: &Template,
        listener: &dyn Listener,
    ) -> Result<Planned> {
        let queue = self.queue(wanted, None, listener);
        listener.tell(&Told::Reading);
        let journal = mapping::known(&*self.store, &wanted.group()).await?;
        let guild = reading::guild(&queue, template, &journal, true).await?;
        let plan = Plan::make(template, &guild, &journal, Options { prune: wanted.prune });
        mapping::correct(&*self.store, &wanted.group(), &plan).await?;
        let limits = known::limits(&self.engine, &wanted.upstream, wanted.guild).await?;
        Ok(Planned { plan, guild, limits })
    }

    /// Makes the guild what the template says, or goes on where an interrupted deployment of the same was.
    ///
    /// # Errors
    /// Why it did not come to its end. What was done is in the journal, and the next run goes on from there.
    pub async fn apply(&self, wanted: &Wanted, listener: &dyn Listener) -> Result<Report> {
        let template = wanted.read().map_err(|problems| Error::Invalid(problems.to_string()))?;
        let guard = self.hold(wanted).await?;
        self.run(wanted, &template, guard, listener).await
    }

    /// Goes on with a deployment that was interrupted. One that has come to its end meanwhile, or was replaced by another
    /// one, is left as it is: then there is no report.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub async fn go_on(&self, deployment: &str, listener: &dyn Listener) -> Result<Option<Report>> {
        let Some(kept) = self.store.deployment(deployment).await? else { return Ok(None) };
        if kept.stage != Stage::Running {
            return Ok(None);
        }
        let wanted = Wanted::decode(&kept.request)?;
        let template = wanted.read().map_err(|problems| Error::Invalid(problems.to_string()))?;
        let guard = self.hold(&wanted).await?;
        // Only now nobody else changes it.
        let last = self.store.deployments(Some(&wanted.group()), 1).await?.into_iter().next();
        if last.is_none_or(|last| *last.id != *deployment || last.stage != Stage::Running) {
            let _ = guard.release().await;
            return Ok(None);
        }
        self.run(&wanted, &template, guard, listener).await.map(Some)
    }

    async fn run(
        &self,
        wanted: &Wanted,
        template: &Template,
        guard: Guard,
        listener: &dyn Listener,
    ) -> Result<Report> {
        let done = Run::begin(self, wanted, template, &guard, listener).await?.finish().await;
        // What is not given back runs out.
        let _ = guard.release().await;
        done
    }

    async fn hold(&self, wanted: &Wanted) -> Result<Guard> {
        let scope = wanted.group();
        let lease = Lease::new(Arc::clone(&self.store) as _, format!("deploy:{scope}"), self.lease)?;
        match lease.acquire_within(self.patience).await? {
            Acquired::Held(guard) => Ok(guard),
            Acquired::Busy { .. } => {
                let last = self.store.deployments(Some(&scope), 1).await?.into_iter().next();
                let deployment = last.map(|last| last.id.to_string());
                Err(Error::Busy { guild: wanted.guild, deployment })
            }
        }
    }

    fn queue<'a>(
        &'a self,
        wanted: &'a Wanted,
        deployment: Option<&'a str>,
        listener: &'a dyn Listener,
    ) -> Queue<'a> {
        let (engine, upstream, guild): (_, _, Id) = (&self.engine, wanted.upstream.as_str(), wanted.guild);
        Queue { engine, upstream, guild, deployment, listener }
    }
}

impl fmt::Debug for Deployer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deployer").field("store", &self.store.describe()).finish_non_exhaustive()
    }
}
