//! Deployments, their steps and the objects of a scope as rows. Each function does the same as the
//! one of that name on `MemoryJournal`.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row};
use tidegate_core::bounds::DEPLOYMENTS_KEPT;
use tidegate_core::journal::{
    Deployment, DeploymentStage, DeploymentStep, ForeignObject, JournalLines, ObjectMapping, StepState,
};

use super::journal_events;
use super::row_checksum::RowChecksum;
use super::rows::{damaged, micros, not_a_word, time};

const KNOWN: &str = "SELECT fence, scope FROM deployments WHERE id = ?1";
const KEEP: &str = "INSERT OR REPLACE INTO deployments
    (id, scope, fence, round, stage, request, note, started_at, updated_at, sum)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
const TOO_OLD: &str =
    "SELECT id FROM deployments WHERE scope = ?1 AND stage <> ?2 ORDER BY id DESC LIMIT -1 OFFSET ?3";
const WRITE: &str = "INSERT OR REPLACE INTO deployment_steps
    (deployment, kind, key, nth, action, fingerprint, state, operation, foreign_id, note, at, sum)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
const MAP: &str = "INSERT OR REPLACE INTO deployment_objects (scope, kind, key, id, place, fingerprint, sum)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const FORGET: &str = "DELETE FROM deployment_objects WHERE scope = ?1 AND kind = ?2 AND key = ?3";
const ONE: &str = "SELECT id, scope, fence, round, stage, request, note, started_at, updated_at, sum
    FROM deployments WHERE id = ?1";
const OF_ALL: &str = "SELECT id, scope, fence, round, stage, request, note, started_at, updated_at, sum
    FROM deployments ORDER BY id DESC LIMIT ?1";
const OF_SCOPE: &str = "SELECT id, scope, fence, round, stage, request, note, started_at, updated_at, sum
    FROM deployments WHERE scope = ?2 ORDER BY id DESC LIMIT ?1";
const STEPS: &str = "SELECT kind, key, nth, action, fingerprint, state, operation, foreign_id, note, at, sum
    FROM deployment_steps WHERE deployment = ?1 ORDER BY nth, kind, key";
const MAPPED: &str = "SELECT kind, key, id, place, fingerprint, sum FROM deployment_objects
    WHERE scope = ?1 ORDER BY kind, key";

/// The fence and the scope of an existing deployment.
fn fence_and_scope(sql: &Connection, id: &str) -> rusqlite::Result<Option<(u64, Arc<str>)>> {
    let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?));
    sql.prepare_cached(KNOWN)?.query_row([id], read).optional()
}

pub(super) fn keep(sql: &Connection, deployment: &Deployment) -> rusqlite::Result<bool> {
    match fence_and_scope(sql, &deployment.id)? {
        Some((fence, _)) if fence > deployment.fence => return Ok(false),
        Some(_) => {}
        None => make_room(sql, &deployment.scope)?,
    }
    sql.prepare_cached(KEEP)?.execute((
        &*deployment.id,
        &*deployment.scope,
        deployment.fence.cast_signed(),
        deployment.round,
        deployment.stage.as_str(),
        &*deployment.request,
        deployment.note.as_deref(),
        micros(deployment.started_at),
        micros(deployment.updated_at),
        sum_of_deployment(deployment).finish(&[]),
    ))?;
    Ok(true)
}

/// Removes old deployments until one less than the maximum is left, because one more is added.
fn make_room(sql: &Connection, scope: &str) -> rusqlite::Result<()> {
    let mut too_old = sql.prepare_cached(TOO_OLD)?;
    let stay = DEPLOYMENTS_KEPT as i64 - 1;
    let gone = too_old
        .query_map((scope, DeploymentStage::Running.as_str(), stay), |row| row.get::<_, Arc<str>>(0))?;
    for id in gone.collect::<rusqlite::Result<Vec<_>>>()? {
        sql.prepare_cached("DELETE FROM deployment_steps WHERE deployment = ?1")?.execute([&*id])?;
        journal_events::remove(sql, &id)?;
        sql.prepare_cached("DELETE FROM deployments WHERE id = ?1")?.execute([&*id])?;
    }
    Ok(())
}

pub(super) fn write(sql: &Connection, id: &str, fence: u64, lines: &JournalLines) -> rusqlite::Result<bool> {
    let Some((_, scope)) = fence_and_scope(sql, id)?.filter(|(known, _)| *known <= fence) else {
        return Ok(false);
    };
    let mut write = sql.prepare_cached(WRITE)?;
    for step in &lines.steps {
        write.execute((
            id,
            &*step.kind,
            &*step.key,
            step.nth,
            &*step.action,
            &*step.fingerprint,
            step.state.as_str(),
            step.operation.as_deref(),
            step.foreign_id.as_deref(),
            step.note.as_deref(),
            micros(step.at),
            sum_of_step(id, step).finish(&[]),
        ))?;
    }
    journal_events::append(sql, id, &lines.steps)?;
    let (mut map, mut forget) = (sql.prepare_cached(MAP)?, sql.prepare_cached(FORGET)?);
    for ObjectMapping { kind, key, object } in &lines.mapped {
        match object {
            Some(object) => {
                let place = object.place.as_deref();
                let sum = sum_of_object(&scope, kind, key, object).finish(&[]);
                map.execute((&*scope, &**kind, &**key, &*object.id, place, &*object.fingerprint, sum))?
            }
            None => forget.execute((&*scope, &**kind, &**key))?,
        };
    }
    Ok(true)
}

pub(super) fn deployment(sql: &Connection, id: &str) -> rusqlite::Result<Option<Deployment>> {
    sql.prepare_cached(ONE)?.query_row([id], read_deployment).optional()
}

pub(super) fn deployments(
    sql: &Connection,
    scope: Option<&str>,
    most: usize,
) -> rusqlite::Result<Vec<Deployment>> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    match scope {
        Some(scope) => sql.prepare_cached(OF_SCOPE)?.query_map((most, scope), read_deployment)?.collect(),
        None => sql.prepare_cached(OF_ALL)?.query_map([most], read_deployment)?.collect(),
    }
}

pub(super) fn steps(sql: &Connection, id: &str) -> rusqlite::Result<Vec<DeploymentStep>> {
    sql.prepare_cached(STEPS)?.query_map([id], |row| read_step(row, id))?.collect()
}

pub(super) fn mapped(sql: &Connection, scope: &str) -> rusqlite::Result<Vec<ObjectMapping>> {
    sql.prepare_cached(MAPPED)?.query_map([scope], |row| read_mapped(row, scope))?.collect()
}

fn sum_of_deployment(deployment: &Deployment) -> RowChecksum {
    RowChecksum::of("deployments")
        .text(&deployment.id)
        .text(&deployment.scope)
        .number(deployment.fence.cast_signed())
        .number(deployment.round.into())
        .text(deployment.stage.as_str())
        .bytes(&deployment.request)
        .maybe_text(deployment.note.as_deref())
        .number(micros(deployment.started_at))
        .number(micros(deployment.updated_at))
}

fn sum_of_step(deployment: &str, step: &DeploymentStep) -> RowChecksum {
    sum_with_step(RowChecksum::of("deployment_steps").text(deployment), step)
}

/// Adds the columns of a step to a checksum.
pub(super) fn sum_with_step(sum: RowChecksum, step: &DeploymentStep) -> RowChecksum {
    sum.text(&step.kind)
        .text(&step.key)
        .number(step.nth.into())
        .text(&step.action)
        .text(&step.fingerprint)
        .text(step.state.as_str())
        .maybe_text(step.operation.as_deref())
        .maybe_text(step.foreign_id.as_deref())
        .maybe_text(step.note.as_deref())
        .number(micros(step.at))
}

fn sum_of_object(scope: &str, kind: &str, key: &str, object: &ForeignObject) -> RowChecksum {
    let names = [scope, kind, key, &object.id, &object.fingerprint];
    let sum = names.into_iter().fold(RowChecksum::of("deployment_objects"), RowChecksum::text);
    sum.maybe_text(object.place.as_deref())
}

pub(super) fn checked<T>(row: &Row<'_>, column: usize, sum: RowChecksum, read: T) -> rusqlite::Result<T> {
    if sum.matches(row.get(column)?, Some(&[])) {
        return Ok(read);
    }
    Err(damaged("a line of the journal of deployments is not what was written".into()))
}

fn read_deployment(row: &Row<'_>) -> rusqlite::Result<Deployment> {
    let deployment = Deployment {
        id: row.get(0)?,
        scope: row.get(1)?,
        fence: row.get::<_, i64>(2)?.cast_unsigned(),
        round: row.get(3)?,
        stage: DeploymentStage::parse(row.get_ref(4)?.as_str()?).ok_or_else(|| not_a_word(4))?,
        request: row.get_ref(5)?.as_blob()?.into(),
        note: row.get(6)?,
        started_at: time(row, 7)?,
        updated_at: time(row, 8)?,
    };
    checked(row, 9, sum_of_deployment(&deployment), deployment)
}

fn read_step(row: &Row<'_>, deployment: &str) -> rusqlite::Result<DeploymentStep> {
    let step = step_in(row)?;
    checked(row, 10, sum_of_step(deployment, &step), step)
}

/// Reads a step from the first ten columns.
pub(super) fn step_in(row: &Row<'_>) -> rusqlite::Result<DeploymentStep> {
    Ok(DeploymentStep {
        kind: row.get(0)?,
        key: row.get(1)?,
        nth: row.get(2)?,
        action: row.get(3)?,
        fingerprint: row.get(4)?,
        state: StepState::parse(row.get_ref(5)?.as_str()?).ok_or_else(|| not_a_word(5))?,
        operation: row.get(6)?,
        foreign_id: row.get(7)?,
        note: row.get(8)?,
        at: time(row, 9)?,
    })
}

fn read_mapped(row: &Row<'_>, scope: &str) -> rusqlite::Result<ObjectMapping> {
    let (kind, key): (Arc<str>, Arc<str>) = (row.get(0)?, row.get(1)?);
    let object = ForeignObject { id: row.get(2)?, place: row.get(3)?, fingerprint: row.get(4)? };
    let sum = sum_of_object(scope, &kind, &key, &object);
    checked(row, 5, sum, ObjectMapping { kind, key, object: Some(object) })
}
