//! The events of deployments as rows: each line of a step as it was written, numbered from 1. The
//! oldest are removed when there are too many; the number of the first one that is left says how
//! many went.

use rusqlite::Connection;
use tidegate_core::bounds::DEPLOYMENT_EVENTS_KEPT;
use tidegate_core::journal::{DeploymentStep, StepEvents};

use super::journal_rows::{checked, step_in, sum_with_step};
use super::row_checksum::RowChecksum;
use super::rows::micros;

const LAST: &str = "SELECT coalesce(max(seq), 0) FROM deployment_events WHERE deployment = ?1";
const APPEND: &str = "INSERT INTO deployment_events
    (deployment, seq, kind, key, nth, action, fingerprint, state, operation, foreign_id, note, at, sum)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
const DROP: &str = "DELETE FROM deployment_events WHERE deployment = ?1 AND seq <= ?2";
const REMOVE: &str = "DELETE FROM deployment_events WHERE deployment = ?1";
const EVENTS: &str =
    "SELECT kind, key, nth, action, fingerprint, state, operation, foreign_id, note, at, sum, seq
    FROM deployment_events WHERE deployment = ?1 ORDER BY seq";

/// Adds lines of steps to the events of a deployment, in the transaction that writes the steps.
pub(super) fn append(sql: &Connection, deployment: &str, steps: &[DeploymentStep]) -> rusqlite::Result<()> {
    if steps.is_empty() {
        return Ok(());
    }
    let mut seq: i64 = sql.prepare_cached(LAST)?.query_row([deployment], |row| row.get(0))?;
    let mut append = sql.prepare_cached(APPEND)?;
    for step in steps {
        seq += 1;
        append.execute((
            deployment,
            seq,
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
            sum_of_event(deployment, seq, step).finish(&[]),
        ))?;
    }
    sql.prepare_cached(DROP)?.execute((deployment, seq - DEPLOYMENT_EVENTS_KEPT as i64)).map(drop)
}

/// Removes the events of a deployment.
pub(super) fn remove(sql: &Connection, deployment: &str) -> rusqlite::Result<()> {
    sql.prepare_cached(REMOVE)?.execute([deployment]).map(drop)
}

/// Reads the events of a deployment.
pub(super) fn read(sql: &Connection, deployment: &str) -> rusqlite::Result<StepEvents> {
    let mut found = StepEvents::default();
    let mut events = sql.prepare_cached(EVENTS)?;
    let mut rows = events.query([deployment])?;
    while let Some(row) = rows.next()? {
        let (event, seq) = (step_in(row)?, row.get::<_, i64>(11)?);
        if found.events.is_empty() {
            found.dropped = (seq - 1).cast_unsigned();
        }
        found.events.push(checked(row, 10, sum_of_event(deployment, seq, &event), event)?);
    }
    Ok(found)
}

fn sum_of_event(deployment: &str, seq: i64, event: &DeploymentStep) -> RowChecksum {
    sum_with_step(RowChecksum::of("deployment_events").text(deployment).number(seq), event)
}
