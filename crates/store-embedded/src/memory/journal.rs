//! The journal of deployments in plain memory: the pure rule behind a lock.

use tidegate_core::journal::{Deployment, DeploymentStep, JournalLines, ObjectMapping, StepEvents};
use tidegate_store::journal::{check_deployment, check_lines};
use tidegate_store::{Journal, StoreFuture};

use super::{MemoryStore, ready};

impl Journal for MemoryStore {
    fn save_deployment(&self, deployment: Deployment) -> StoreFuture<'_, bool> {
        ready(move || {
            check_deployment(&deployment)?;
            Ok(self.journal().save_deployment(deployment))
        })
    }

    fn write_journal(&self, deployment: &str, fence: u64, lines: JournalLines) -> StoreFuture<'_, bool> {
        let id = deployment.to_owned();
        ready(move || {
            check_lines(fence, &lines)?;
            Ok(self.journal().write_lines(&id, fence, lines))
        })
    }

    fn deployment(&self, id: &str) -> StoreFuture<'_, Option<Deployment>> {
        let id = id.to_owned();
        ready(move || Ok(self.journal().deployment(&id)))
    }

    fn deployments(&self, scope: Option<&str>, most: usize) -> StoreFuture<'_, Vec<Deployment>> {
        let scope = scope.map(str::to_owned);
        ready(move || Ok(self.journal().deployments(scope.as_deref(), most)))
    }

    fn deployment_steps(&self, id: &str) -> StoreFuture<'_, Vec<DeploymentStep>> {
        let id = id.to_owned();
        ready(move || Ok(self.journal().steps(&id)))
    }

    fn deployment_events(&self, id: &str) -> StoreFuture<'_, StepEvents> {
        let id = id.to_owned();
        ready(move || Ok(self.journal().events(&id)))
    }

    fn mapped_objects(&self, scope: &str) -> StoreFuture<'_, Vec<ObjectMapping>> {
        let scope = scope.to_owned();
        ready(move || Ok(self.journal().mapped_objects(&scope)))
    }
}
