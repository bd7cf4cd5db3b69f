//! The journal of deployments on SQLite: each write is one step of the writer, durable before it
//! returns. It is in the same file as the shared records.

use std::sync::Arc;

use tidegate_core::journal::{Deployment, DeploymentStep, JournalLines, ObjectMapping, StepEvents};
use tidegate_store::journal::{check_deployment, check_lines};
use tidegate_store::{Journal, StoreFuture};

use super::writer::StepContext;
use super::{EmbeddedStore, SHARED_IN, journal_events as events, journal_rows as rows};

impl Journal for EmbeddedStore {
    fn save_deployment(&self, deployment: Deployment) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            check_deployment(&deployment)?;
            let file = self.partition(SHARED_IN).await?;
            file.write_and_mark(1, move |desk| rows::keep(desk.sql, &deployment).map(Ok), |_| {}).await
        })
    }

    fn write_journal(&self, deployment: &str, fence: u64, lines: JournalLines) -> StoreFuture<'_, bool> {
        let id = deployment.to_owned();
        Box::pin(async move {
            check_lines(fence, &lines)?;
            let file = self.partition(SHARED_IN).await?;
            let count = 2 * lines.steps.len() + lines.mapped.len();
            let step = move |desk: &mut StepContext<'_>| rows::write(desk.sql, &id, fence, &lines).map(Ok);
            file.write_and_mark(count, step, |_| {}).await
        })
    }

    fn deployment(&self, id: &str) -> StoreFuture<'_, Option<Deployment>> {
        let id = id.to_owned();
        Box::pin(
            async move { self.partition(SHARED_IN).await?.read(move |sql| rows::deployment(sql, &id)).await },
        )
    }

    fn deployments(&self, scope: Option<&str>, most: usize) -> StoreFuture<'_, Vec<Deployment>> {
        let scope: Option<Arc<str>> = scope.map(Arc::from);
        Box::pin(async move {
            let file = self.partition(SHARED_IN).await?;
            file.read(move |sql| rows::deployments(sql, scope.as_deref(), most)).await
        })
    }

    fn deployment_steps(&self, id: &str) -> StoreFuture<'_, Vec<DeploymentStep>> {
        let id = id.to_owned();
        Box::pin(async move { self.partition(SHARED_IN).await?.read(move |sql| rows::steps(sql, &id)).await })
    }

    fn deployment_events(&self, id: &str) -> StoreFuture<'_, StepEvents> {
        let id = id.to_owned();
        Box::pin(
            async move { self.partition(SHARED_IN).await?.read(move |sql| events::read(sql, &id)).await },
        )
    }

    fn mapped_objects(&self, scope: &str) -> StoreFuture<'_, Vec<ObjectMapping>> {
        let scope = scope.to_owned();
        Box::pin(
            async move { self.partition(SHARED_IN).await?.read(move |sql| rows::mapped(sql, &scope)).await },
        )
    }
}
