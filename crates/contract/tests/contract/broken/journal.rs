//! A broken journal.

use tidegate_core::bounds::JOURNAL_FENCE_MAX;
use tidegate_core::journal::{
    Deployment, DeploymentStage, DeploymentStep, JournalLines, ObjectMapping, StepEvents,
};
use tidegate_store::{Journal, StoreErrorKind, StoreFuture};

use super::{BrokenStore, Quirk};

impl Journal for BrokenStore {
    fn save_deployment(&self, mut deployment: Deployment) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            if self.is(Quirk::JournalIgnoresFence) {
                let known = self.inner.deployment(&deployment.id).await?;
                deployment.fence = known.map_or(deployment.fence, |known| known.fence.max(deployment.fence));
            }
            if self.is(Quirk::JournalKeepsOldOnes) && deployment.id.starts_with('-') {
                deployment.stage = DeploymentStage::Running;
            }
            let kept = self.inner.save_deployment(deployment).await;
            self.forgiven(kept)
        })
    }

    fn write_journal(&self, deployment: &str, fence: u64, mut lines: JournalLines) -> StoreFuture<'_, bool> {
        let mut id = deployment.to_owned();
        Box::pin(async move {
            match self.quirk {
                Quirk::JournalDropsMapped => lines.mapped.clear(),
                Quirk::JournalMixesWriters if id == "writer-03" => id = "writer-04".into(),
                _ => {}
            }
            let fence = if self.is(Quirk::JournalIgnoresFence) { JOURNAL_FENCE_MAX } else { fence };
            let written = self.inner.write_journal(&id, fence, lines).await;
            self.forgiven(written)
        })
    }

    fn deployment(&self, id: &str) -> StoreFuture<'_, Option<Deployment>> {
        self.inner.deployment(id)
    }

    fn deployments(&self, scope: Option<&str>, most: usize) -> StoreFuture<'_, Vec<Deployment>> {
        self.inner.deployments(scope, most)
    }

    fn deployment_steps(&self, id: &str) -> StoreFuture<'_, Vec<DeploymentStep>> {
        let id = id.to_owned();
        Box::pin(async move {
            let mut steps = self.inner.deployment_steps(&id).await?;
            match self.quirk {
                Quirk::JournalSortsByKey => steps.sort_by(|a, b| a.key.cmp(&b.key)),
                Quirk::JournalCutsLines => steps.truncate(8_000),
                Quirk::JournalLosesEmptyNotes => {
                    steps
                        .iter_mut()
                        .for_each(|step| step.note = step.note.take().filter(|note| !note.is_empty()));
                }
                Quirk::ImageLacksHalfOfLines if self.is_image => steps.truncate(steps.len() / 2),
                Quirk::ImageLacksLastLine if self.is_image => drop(steps.pop()),
                _ => {}
            }
            Ok(steps)
        })
    }

    fn deployment_events(&self, id: &str) -> StoreFuture<'_, StepEvents> {
        let id = id.to_owned();
        Box::pin(async move {
            let mut found = self.inner.deployment_events(&id).await?;
            match self.quirk {
                Quirk::JournalForgetsEvents => found.events = self.inner.deployment_steps(&id).await?,
                Quirk::JournalSortsEvents => found.events.sort_by(|a, b| a.key.cmp(&b.key)),
                Quirk::JournalKeepsAllEvents => found.dropped = 0,
                Quirk::ImageLacksEvents if self.is_image => drop(found.events.pop()),
                _ => {}
            }
            Ok(found)
        })
    }

    fn mapped_objects(&self, scope: &str) -> StoreFuture<'_, Vec<ObjectMapping>> {
        self.inner.mapped_objects(scope)
    }
}

impl BrokenStore {
    /// Reports that it kept what it should have refused.
    fn forgiven(&self, answer: tidegate_store::Result<bool>) -> tidegate_store::Result<bool> {
        match answer {
            Err(error)
                if error.kind() == StoreErrorKind::Invalid && self.is(Quirk::JournalTakesZeroBytes) =>
            {
                Ok(true)
            }
            answer => answer,
        }
    }
}
