//! Runs deployments to guilds, next to the engine that executes their steps: started by a request,
//! resumed when an engine opens, and left in the journal when it closes. The deployer decides what
//! a deployment does.

mod once_notifier;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tidegate::{Engine, ErrorKind};
use tidegate_core::journal::{Deployment, DeploymentStage};
use tidegate_discord::deploy::{DeployRequest, Deployer, Error, NoopListener, PlanPreview, Result};
use tidegate_discord::template::Template;
use tidegate_store::Store;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use once_notifier::OnceNotifier;

/// How long a request waits for the guild: a deployment that has just ended releases it sooner.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a request waits for a plan.
const PLANNED: Duration = Duration::from_secs(60);
/// How many deployments are resumed concurrently when an engine opens; the others follow.
const AT_ONCE: usize = 8;
/// The maximum number of running deployments of one engine.
const RUNNING_MAX: usize = 256;
/// How many of the newest deployments are searched for interrupted ones.
const LOOKED_AT: usize = 500;
/// The first and the longest pause before a retry after an obstacle.
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The deployments of one engine.
#[derive(Clone)]
pub(crate) struct DeploymentRunner {
    engine: Engine,
    store: Arc<dyn Store>,
    tasks: TaskTracker,
    ending: CancellationToken,
}

impl DeploymentRunner {
    pub(crate) fn new(engine: Engine, store: Arc<dyn Store>) -> Self {
        Self { engine, store, tasks: TaskTracker::new(), ending: CancellationToken::new() }
    }

    /// Starts a deployment and returns as soon as it is in the journal; it continues in the
    /// background.
    ///
    /// # Errors
    /// Why it was not started.
    pub(crate) async fn begin(&self, wanted: DeployRequest) -> Result<Deployment> {
        if self.tasks.len() >= RUNNING_MAX {
            let message = format!("{RUNNING_MAX} deployments are running. Try again when one has ended.");
            return Err(tidegate::Error::new(ErrorKind::NotNow, message).into());
        }
        let (tell, told) = oneshot::channel();
        let this = self.clone();
        self.spawn(async move {
            let herald = OnceNotifier::new(tell);
            let ended = this.deployer().with_patience(PATIENCE).apply(&wanted, &herald).await;
            match herald.deployment_id() {
                Some(id) => this.retry_until_done(&id, ended.map(drop)).await,
                None => herald.refuse(ended.err()),
            }
        });
        let id = told.await.map_err(|_| stopping())??;
        self.store.deployment(&id).await?.ok_or(Error::LeaseLost)
    }

    /// Plans a deployment without changing anything.
    ///
    /// # Errors
    /// When the guild cannot be listed, or not in time.
    pub(crate) async fn plan(&self, wanted: &DeployRequest, template: &Template) -> Result<PlanPreview> {
        let deployer = self.deployer();
        tokio::select! {
            () = self.ending.cancelled() => Err(stopping()),
            planned = timeout(PLANNED, deployer.plan(wanted, template, &NoopListener)) => planned.unwrap_or(Err(Error::NotListed(PLANNED))),
        }
    }

    /// Resumes all interrupted deployments that belong to this engine.
    pub(crate) fn resume_interrupted(&self, is_here: impl Fn(&DeployRequest) -> bool + Send + 'static) {
        let this = self.clone();
        self.spawn(async move {
            let mut interrupted = this.find_interrupted().await;
            interrupted
                .retain(|one| DeployRequest::decode(&one.request).is_ok_and(|wanted| is_here(&wanted)));
            let each = futures_util::stream::iter(interrupted.into_iter().rev());
            each.for_each_concurrent(AT_ONCE, |one| this.resume(one.id)).await;
        });
    }

    async fn find_interrupted(&self) -> Vec<Deployment> {
        let mut pause = PAUSE;
        loop {
            match self.store.deployments(None, LOOKED_AT).await {
                Ok(mut all) => {
                    all.retain(|one| one.stage == DeploymentStage::Running);
                    return all;
                }
                Err(error) => tracing::warn!(%error, "cannot read the journal of deployments"),
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn resume(&self, id: Arc<str>) {
        tracing::info!(deployment = &*id, "resuming an interrupted deployment");
        let ended = self.deployer().resume(&id, &NoopListener).await;
        self.retry_until_done(&id, ended.map(drop)).await;
    }

    /// Retries a deployment that failed for a temporary reason. If another process has the guild,
    /// it is left to that process.
    async fn retry_until_done(&self, id: &str, mut ended: Result<()>) {
        let mut pause = PAUSE;
        loop {
            match ended {
                Ok(()) => return tracing::info!(deployment = id, "deployment ended"),
                Err(error @ Error::Busy { .. }) => {
                    return tracing::info!(deployment = id, %error, "deployment left to another process");
                }
                Err(error) if !error.is_transient() => {
                    return tracing::warn!(deployment = id, %error, "deployment failed");
                }
                Err(error) => tracing::warn!(deployment = id, %error, "retrying deployment"),
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
            ended = self.deployer().resume(id, &NoopListener).await.map(drop);
        }
    }

    fn deployer(&self) -> Deployer {
        Deployer::new(self.engine.clone(), Arc::clone(&self.store))
    }

    /// Spawns work that runs to its end, or until the engine is shutting down.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let (engine, ending) = (self.engine.clone(), self.ending.clone());
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = ending.cancelled() => {}
                _ = engine.stopped() => {}
                () = work => {}
            }
        });
    }

    /// Stops running deployments and leaves them in the journal: the next process to open the
    /// engine resumes them.
    pub(crate) async fn stop(&self) {
        self.ending.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

fn stopping() -> Error {
    tidegate::Error::new(ErrorKind::Stopping, "The server is shutting down.").into()
}
