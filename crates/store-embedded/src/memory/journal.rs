//! The journal of deployments in plain memory: the pure rule behind a lock.

use tidegate_core::journal::{Deployment, Lines, Mapped, Step};
use tidegate_store::journal::{check_deployment, check_lines};
use tidegate_store::{Answer, Journal};

use super::{Memory, at_once};

impl Journal for Memory {
    fn keep_deployment(&self, deployment: Deployment) -> Answer<'_, bool> {
        at_once(move || {
            check_deployment(&deployment)?;
            Ok(self.journal().keep(deployment))
        })
    }

    fn write_journal(&self, deployment: &str, fence: u64, lines: Lines) -> Answer<'_, bool> {
        let id = deployment.to_owned();
        at_once(move || {
            check_lines(fence, &lines)?;
            Ok(self.journal().write(&id, fence, lines))
        })
    }

    fn deployment(&self, id: &str) -> Answer<'_, Option<Deployment>> {
        let id = id.to_owned();
        at_once(move || Ok(self.journal().deployment(&id)))
    }

    fn deployments(&self, scope: Option<&str>, most: usize) -> Answer<'_, Vec<Deployment>> {
        let scope = scope.map(str::to_owned);
        at_once(move || Ok(self.journal().deployments(scope.as_deref(), most)))
    }

    fn deployment_steps(&self, id: &str) -> Answer<'_, Vec<Step>> {
        let id = id.to_owned();
        at_once(move || Ok(self.journal().steps(&id)))
    }

    fn mapped(&self, scope: &str) -> Answer<'_, Vec<Mapped>> {
        let scope = scope.to_owned();
        at_once(move || Ok(self.journal().mapped(&scope)))
    }
}
