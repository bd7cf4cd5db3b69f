//! The journal of deployments as tables: each write is one statement under one lock, each read is
//! one statement. A write is never sent twice, so that a late one cannot arrive after the next.

use std::sync::Arc;

use sqlx::postgres::PgRow;
use tidegate_core::bounds::DEPLOYMENTS_KEPT;
use tidegate_core::journal::{
    Deployment, DeploymentStage, DeploymentStep, ForeignObject, JournalLines, ObjectMapping, StepEvents,
    StepState,
};
use tidegate_store::journal::{check_deployment, check_lines, dedupe_mapped};
use tidegate_store::{Journal, Result, StoreFuture};

use crate::costs::Columns;
use crate::errors::unreadable;
use crate::session::{RetrySafety, Statement};
use crate::{PostgresStore, rows};

const KEEP: &str = "SELECT keep_deployment($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
const WRITE: &str =
    "SELECT write_journal($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";
const ONE: &str = "SELECT id, scope, fence, round, stage, request, note, started_at, updated_at
    FROM deployments WHERE id = $1";
const OF_ALL: &str = "SELECT id, scope, fence, round, stage, request, note, started_at, updated_at
    FROM deployments ORDER BY id DESC LIMIT $1";
const OF_SCOPE: &str = "SELECT id, scope, fence, round, stage, request, note, started_at, updated_at
    FROM deployments WHERE scope = $2 ORDER BY id DESC LIMIT $1";
const STEPS: &str = "SELECT kind, key, nth, action, fingerprint, state, operation, foreign_id, note, at
    FROM deployment_steps WHERE deployment = $1 ORDER BY nth, kind, key";
const EVENTS: &str = "SELECT kind, key, nth, action, fingerprint, state, operation, foreign_id, note, at, seq
    FROM deployment_events WHERE deployment = $1 ORDER BY seq";
const MAPPED: &str = "SELECT kind, key, id, place, fingerprint FROM deployment_objects
    WHERE scope = $1 ORDER BY kind, key";

/// Binds steps as columns of a write.
fn bind_steps<'q>(write: Statement<'q>, steps: &'q [DeploymentStep]) -> Statement<'q> {
    let column = Columns(steps);
    write
        .bind(column.of(|step| &*step.kind))
        .bind(column.of(|step| &*step.key))
        .bind(column.of(|step| i64::from(step.nth)))
        .bind(column.of(|step| &*step.action))
        .bind(column.of(|step| &*step.fingerprint))
        .bind(column.of(|step| step.state.as_str()))
        .bind(column.of(|step| step.operation.as_deref()))
        .bind(column.of(|step| step.foreign_id.as_deref()))
        .bind(column.of(|step| step.note.as_deref()))
        .bind(column.of(|step| rows::micros(step.at)))
}

/// Binds objects as columns; one that is to be removed has no id.
fn bind_objects<'q>(write: Statement<'q>, mapped: &'q [ObjectMapping]) -> Statement<'q> {
    let column = Columns(mapped);
    write
        .bind(column.of(|line| &*line.kind))
        .bind(column.of(|line| &*line.key))
        .bind(column.of(|line| line.object.as_ref().map(|object| &*object.id)))
        .bind(column.of(|line| line.object.as_ref().and_then(|object| object.place.as_deref())))
        .bind(column.of(|line| line.object.as_ref().map(|object| &*object.fingerprint)))
}

/// Returns whether a name has a zero byte, and so was never stored.
fn was_never_kept(name: &str) -> bool {
    name.contains('\0')
}

impl PostgresStore {
    async fn write_deployment(&self, deployment: &Deployment) -> Result<bool> {
        check_deployment(deployment)?;
        let bind = |q: Statement<'static>| {
            q.bind(deployment.id.to_string())
                .bind(deployment.scope.to_string())
                .bind(deployment.fence.cast_signed())
                .bind(i64::from(deployment.round))
                .bind(deployment.stage.as_str())
                .bind(deployment.request.to_vec())
                .bind(deployment.note.as_deref().map(str::to_owned))
                .bind(rows::micros(deployment.started_at))
                .bind(rows::micros(deployment.updated_at))
                // One less than the maximum, because one more is added.
                .bind(rows::count(DEPLOYMENTS_KEPT - 1))
        };
        let row = self.sessions.row(RetrySafety::Unsafe, KEEP, bind).await?;
        self.sessions.column(&row, 0)
    }

    async fn write_lines(&self, id: &str, fence: u64, lines: JournalLines) -> Result<bool> {
        check_lines(fence, &lines)?;
        if was_never_kept(id) {
            return Ok(false);
        }
        let mapped = dedupe_mapped(lines.mapped);
        let row = self
            .sessions
            .row(RetrySafety::Unsafe, WRITE, |q| {
                let q = bind_steps(q.bind(id).bind(fence.cast_signed()), &lines.steps);
                bind_objects(q, &mapped)
            })
            .await?;
        self.sessions.column(&row, 0)
    }

    async fn read_deployments(&self, scope: Option<&str>, most: usize) -> Result<Vec<Deployment>> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let found = match scope {
            Some(scope) if was_never_kept(scope) => return Ok(Vec::new()),
            Some(scope) => {
                self.sessions.rows(RetrySafety::Harmless, OF_SCOPE, |q| q.bind(most).bind(scope)).await?
            }
            None => self.sessions.rows(RetrySafety::Harmless, OF_ALL, |q| q.bind(most)).await?,
        };
        found.iter().map(|row| self.read_deployment(row)).collect()
    }

    /// Reads the rows of one name.
    async fn read_journal_rows<T>(
        &self,
        sql: &'static str,
        name: &str,
        read: impl Fn(&PgRow) -> Result<T>,
    ) -> Result<Vec<T>> {
        if was_never_kept(name) {
            return Ok(Vec::new());
        }
        let found = self.sessions.rows(RetrySafety::Harmless, sql, |q| q.bind(name)).await?;
        found.iter().map(read).collect()
    }

    async fn read_events(&self, id: &str) -> Result<StepEvents> {
        let read = |row: &PgRow| Ok((self.sessions.column::<i64>(row, 10)?, self.read_step(row)?));
        let found = self.read_journal_rows(EVENTS, id, read).await?;
        let first = found.first().map_or(1, |(seq, _)| *seq);
        let events = found.into_iter().map(|(_, event)| event).collect();
        Ok(StepEvents { dropped: (first - 1).cast_unsigned(), events })
    }

    fn read_deployment(&self, row: &PgRow) -> Result<Deployment> {
        let stage = DeploymentStage::parse(self.sessions.column(row, 4)?);
        Ok(Deployment {
            id: self.word(row, 0)?,
            scope: self.word(row, 1)?,
            fence: self.sessions.column::<i64>(row, 2)?.cast_unsigned(),
            round: self.number(row, 3)?,
            stage: stage.ok_or_else(|| self.unknown("stage of a deployment"))?,
            request: self.sessions.column::<&[u8]>(row, 5)?.into(),
            note: self.some_word(row, 6)?,
            started_at: rows::time(self.sessions.column(row, 7)?),
            updated_at: rows::time(self.sessions.column(row, 8)?),
        })
    }

    fn read_step(&self, row: &PgRow) -> Result<DeploymentStep> {
        let state = StepState::parse(self.sessions.column(row, 5)?);
        Ok(DeploymentStep {
            kind: self.word(row, 0)?,
            key: self.word(row, 1)?,
            nth: self.number(row, 2)?,
            action: self.word(row, 3)?,
            fingerprint: self.word(row, 4)?,
            state: state.ok_or_else(|| self.unknown("state of a step"))?,
            operation: self.some_word(row, 6)?,
            foreign_id: self.some_word(row, 7)?,
            note: self.some_word(row, 8)?,
            at: rows::time(self.sessions.column(row, 9)?),
        })
    }

    fn read_mapped(&self, row: &PgRow) -> Result<ObjectMapping> {
        let object = ForeignObject {
            id: self.word(row, 2)?,
            place: self.some_word(row, 3)?,
            fingerprint: self.word(row, 4)?,
        };
        Ok(ObjectMapping { kind: self.word(row, 0)?, key: self.word(row, 1)?, object: Some(object) })
    }

    fn word(&self, row: &PgRow, column: usize) -> Result<Arc<str>> {
        self.sessions.column::<&str>(row, column).map(Arc::from)
    }

    fn some_word(&self, row: &PgRow, column: usize) -> Result<Option<Arc<str>>> {
        Ok(self.sessions.column::<Option<&str>>(row, column)?.map(Arc::from))
    }

    fn number(&self, row: &PgRow, column: usize) -> Result<u32> {
        let number = self.sessions.column::<i64>(row, column)?;
        u32::try_from(number).map_err(|_| self.unknown("number in the journal"))
    }

    fn unknown(&self, what: &str) -> tidegate_store::Error {
        unreadable(&self.sessions.place, &format!("holds an unknown {what}"))
    }
}

impl Journal for PostgresStore {
    fn save_deployment(&self, deployment: Deployment) -> StoreFuture<'_, bool> {
        Box::pin(async move { self.write_deployment(&deployment).await })
    }

    fn write_journal(&self, deployment: &str, fence: u64, lines: JournalLines) -> StoreFuture<'_, bool> {
        let id = deployment.to_owned();
        Box::pin(async move { self.write_lines(&id, fence, lines).await })
    }

    fn deployment(&self, id: &str) -> StoreFuture<'_, Option<Deployment>> {
        let id = id.to_owned();
        Box::pin(
            async move { Ok(self.read_journal_rows(ONE, &id, |row| self.read_deployment(row)).await?.pop()) },
        )
    }

    fn deployments(&self, scope: Option<&str>, most: usize) -> StoreFuture<'_, Vec<Deployment>> {
        let scope = scope.map(str::to_owned);
        Box::pin(async move { self.read_deployments(scope.as_deref(), most).await })
    }

    fn deployment_steps(&self, id: &str) -> StoreFuture<'_, Vec<DeploymentStep>> {
        let id = id.to_owned();
        Box::pin(async move { self.read_journal_rows(STEPS, &id, |row| self.read_step(row)).await })
    }

    fn deployment_events(&self, id: &str) -> StoreFuture<'_, StepEvents> {
        let id = id.to_owned();
        Box::pin(async move { self.read_events(&id).await })
    }

    fn mapped_objects(&self, scope: &str) -> StoreFuture<'_, Vec<ObjectMapping>> {
        let scope = scope.to_owned();
        Box::pin(async move { self.read_journal_rows(MAPPED, &scope, |row| self.read_mapped(row)).await })
    }
}
