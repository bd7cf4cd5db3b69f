//! Deployments into guilds, beside the engine that carries their steps: begun by a call, gone on with when an engine opens,
//! and left in the journal when it closes. What a deployment does is decided in the deployer.

mod once_notifier;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tidegate::{Engine, ErrorCode};
use tidegate_core::journal::{Deployment, DeploymentStage};
use tidegate_discord::deploy::{DeployRequest, Deployer, Error, NoopListener, PlanPreview, Result};
use tidegate_discord::template::Template;
use tidegate_store::Store;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use once_notifier::OnceNotifier;

/// How long a call waits for the guild: whoever has just ended gives it back in less.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a call waits for a plan.
const PLANNED: Duration = Duration::from_secs(60);
/// Deployments that are gone on with at once when an engine opens; the others follow.
const AT_ONCE: usize = 8;
/// Deployments that one engine has under way at the most.
const RUNNING_MAX: usize = 256;
/// The newest deployments, among which those that were interrupted are looked for.
const LOOKED_AT: usize = 500;
/// Before something that was in the way is tried again, and the longest such pause.
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

    /// Begins one, and answers as soon as it is in the journal; it goes on by itself.
    ///
    /// # Errors
    /// Why it was not begun.
    pub(crate) async fn begin(&self, wanted: DeployRequest) -> Result<Deployment> {
        if self.tasks.len() >= RUNNING_MAX {
            let message = format!("{RUNNING_MAX} deployments are under way. Try again when one has ended.");
            return Err(tidegate::Error::new(ErrorCode::NotNow, message).into());
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

    /// What would be done.
    ///
    /// # Errors
    /// When the guild cannot be listed, or not in time.
    pub(crate) async fn plan(&self, wanted: &DeployRequest, template: &Template) -> Result<PlanPreview> {
        let deployer = self.deployer();
        tokio::select! {
            () = self.ending.cancelled() => Err(stopping()),
            planned = timeout(PLANNED, deployer.plan(wanted, template, &NoopListener)) => planned.unwrap_or_else(|_| {
                let message = format!("The guild was not listed within {} s.", PLANNED.as_secs());
                Err(tidegate::Error::new(ErrorCode::NotInTime, message).into())
            }),
        }
    }

    /// Goes on with everything that was interrupted and has its place here.
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
                Err(error) => tracing::warn!(%error, "the journal of deployments cannot be read"),
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn resume(&self, id: Arc<str>) {
        tracing::info!(deployment = &*id, "a deployment that was interrupted is gone on with");
        let ended = self.deployer().resume(&id, &NoopListener).await;
        self.retry_until_done(&id, ended.map(drop)).await;
    }

    /// Tries again what only had something in its way. Where another process has the guild it is left to that one.
    async fn retry_until_done(&self, id: &str, mut ended: Result<()>) {
        let mut pause = PAUSE;
        loop {
            match ended {
                Ok(()) => return tracing::info!(deployment = id, "a deployment has come to its end"),
                Err(error @ Error::Busy { .. }) => {
                    return tracing::info!(deployment = id, %error, "it is left to another process");
                }
                Err(error) if !error.is_transient() => {
                    return tracing::warn!(deployment = id, %error, "a deployment has failed");
                }
                Err(error) => tracing::warn!(deployment = id, %error, "a deployment is tried again"),
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
            ended = self.deployer().resume(id, &NoopListener).await.map(drop);
        }
    }

    fn deployer(&self) -> Deployer {
        Deployer::new(self.engine.clone(), Arc::clone(&self.store))
    }

    /// Until its end, or until the engine is about to stop.
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

    /// Leaves those under way in the journal: whoever opens the engine next goes on with them.
    pub(crate) async fn stop(&self) {
        self.ending.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

fn stopping() -> Error {
    tidegate::Error::new(ErrorCode::Stopping, "The server is about to stop.").into()
}
