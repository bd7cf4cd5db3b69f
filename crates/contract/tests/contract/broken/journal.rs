//! A journal that is broken.

use tidegate_core::journal::{Deployment, Lines, Mapped, Stage, Step};
use tidegate_store::journal::FENCE_MAX;
use tidegate_store::{Answer, Journal, Kind};

use super::{Broken, Quirk};

impl Journal for Broken {
    fn keep_deployment(&self, mut deployment: Deployment) -> Answer<'_, bool> {
        Box::pin(async move {
            if self.is(Quirk::JournalIgnoresFence) {
                let known = self.inner.deployment(&deployment.id).await?;
                deployment.fence = known.map_or(deployment.fence, |known| known.fence.max(deployment.fence));
            }
            if self.is(Quirk::JournalKeepsOldOnes) && deployment.id.starts_with('-') {
                deployment.stage = Stage::Running;
            }
            let kept = self.inner.keep_deployment(deployment).await;
            self.forgiven(kept)
        })
    }

    fn write_journal(&self, deployment: &str, fence: u64, mut lines: Lines) -> Answer<'_, bool> {
        let mut id = deployment.to_owned();
        Box::pin(async move {
            match self.quirk {
                Quirk::JournalDropsMapped => lines.mapped.clear(),
                Quirk::JournalMixesWriters if id == "writer-03" => id = "writer-04".into(),
                _ => {}
            }
            let fence = if self.is(Quirk::JournalIgnoresFence) { FENCE_MAX } else { fence };
            let written = self.inner.write_journal(&id, fence, lines).await;
            self.forgiven(written)
        })
    }

    fn deployment(&self, id: &str) -> Answer<'_, Option<Deployment>> {
        self.inner.deployment(id)
    }

    fn deployments(&self, scope: Option<&str>, most: usize) -> Answer<'_, Vec<Deployment>> {
        self.inner.deployments(scope, most)
    }

    fn deployment_steps(&self, id: &str) -> Answer<'_, Vec<Step>> {
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

    fn mapped(&self, scope: &str) -> Answer<'_, Vec<Mapped>> {
        self.inner.mapped(scope)
    }
}

impl Broken {
    /// Says that it kept what it should have refused.
    fn forgiven(&self, answer: tidegate_store::Result<bool>) -> tidegate_store::Result<bool> {
        match answer {
            Err(error) if error.kind() == Kind::Invalid && self.is(Quirk::JournalTakesZeroBytes) => Ok(true),
            answer => answer,
        }
    }
}
