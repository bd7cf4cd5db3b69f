//! The journal of a store that fails on purpose.

use tidegate_core::journal::{Deployment, Lines, Mapped, Step};
use tidegate_store::{Answer, Journal};

use super::{Faulty, Verb};

impl Journal for Faulty {
    fn keep_deployment(&self, deployment: Deployment) -> Answer<'_, bool> {
        self.pass(Verb::KeepDeployment, move || self.inner.keep_deployment(deployment))
    }

    fn write_journal(&self, deployment: &str, fence: u64, lines: Lines) -> Answer<'_, bool> {
        let id = deployment.to_owned();
        self.pass(Verb::WriteJournal, move || self.inner.write_journal(&id, fence, lines))
    }

    fn deployment(&self, id: &str) -> Answer<'_, Option<Deployment>> {
        let id = id.to_owned();
        self.pass(Verb::Deployment, move || self.inner.deployment(&id))
    }

    fn deployments(&self, scope: Option<&str>, most: usize) -> Answer<'_, Vec<Deployment>> {
        let scope = scope.map(str::to_owned);
        self.pass(Verb::Deployments, move || self.inner.deployments(scope.as_deref(), most))
    }

    fn deployment_steps(&self, id: &str) -> Answer<'_, Vec<Step>> {
        let id = id.to_owned();
        self.pass(Verb::DeploymentSteps, move || self.inner.deployment_steps(&id))
    }

    fn mapped(&self, scope: &str) -> Answer<'_, Vec<Mapped>> {
        let scope = scope.to_owned();
        self.pass(Verb::Mapped, move || self.inner.mapped(&scope))
    }
}
