//! The journal of a store with fault injection.

use tidegate_core::journal::{Deployment, DeploymentStep, JournalLines, ObjectMapping, StepEvents};
use tidegate_store::{Journal, StoreFuture};

use super::{FaultyStore, StoreMethod};

impl Journal for FaultyStore {
    fn save_deployment(&self, deployment: Deployment) -> StoreFuture<'_, bool> {
        self.call_with_fault(StoreMethod::SaveDeployment, move || self.inner.save_deployment(deployment))
    }

    fn write_journal(&self, deployment: &str, fence: u64, lines: JournalLines) -> StoreFuture<'_, bool> {
        let id = deployment.to_owned();
        self.call_with_fault(StoreMethod::WriteJournal, move || self.inner.write_journal(&id, fence, lines))
    }

    fn deployment(&self, id: &str) -> StoreFuture<'_, Option<Deployment>> {
        let id = id.to_owned();
        self.call_with_fault(StoreMethod::Deployment, move || self.inner.deployment(&id))
    }

    fn deployments(&self, scope: Option<&str>, most: usize) -> StoreFuture<'_, Vec<Deployment>> {
        let scope = scope.map(str::to_owned);
        self.call_with_fault(StoreMethod::Deployments, move || self.inner.deployments(scope.as_deref(), most))
    }

    fn deployment_steps(&self, id: &str) -> StoreFuture<'_, Vec<DeploymentStep>> {
        let id = id.to_owned();
        self.call_with_fault(StoreMethod::DeploymentSteps, move || self.inner.deployment_steps(&id))
    }

    fn deployment_events(&self, id: &str) -> StoreFuture<'_, StepEvents> {
        let id = id.to_owned();
        self.call_with_fault(StoreMethod::DeploymentEvents, move || self.inner.deployment_events(&id))
    }

    fn mapped_objects(&self, scope: &str) -> StoreFuture<'_, Vec<ObjectMapping>> {
        let scope = scope.to_owned();
        self.call_with_fault(StoreMethod::MappedObjects, move || self.inner.mapped_objects(&scope))
    }
}
