//! Costs of calls and the state of limits, as tables in the file that people may open. Costs arrive
//! with appends, through the write-ahead log; the state of limits is written without a sync,
//! because it will be written again.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row};
use tidegate_core::bounds::COSTS_SCANNED_MAX;
use tidegate_core::id::Partition;
use tidegate_core::{LimitName, Time};
use tidegate_store::costs::{
    Cost, CostLine, CostQuery, CostReport, LimitSnapshot, merge_reports, micro_to_tokens, tokens_to_micro,
};
use tidegate_store::log::{Ownership, Retention};
use tidegate_store::{Costs, StoreFuture};

use super::EmbeddedStore;
use super::rows;
use super::writer::{StepContext, StepResult};

const INSERT: &str = "INSERT INTO api_cost_tracking
    (at, operation, claim, nth, upstream, limit_name, shape, requested, actual, restore_rate)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
/// Finds the newest row beyond the number of rows that may be scanned.
const TOO_MUCH: &str = "SELECT at FROM api_cost_tracking WHERE at >= ?1 ORDER BY at DESC LIMIT 1 OFFSET ?2";
const BY_SHAPE: &str =
    "SELECT limit_name, shape, count(*), sum(requested), sum(coalesce(actual, requested)) AS cost,
        sum(sum(coalesce(actual, requested))) OVER (PARTITION BY limit_name), max(at)
    FROM api_cost_tracking WHERE at >= ?1 AND (?2 IS NULL OR upstream = ?2)
    GROUP BY limit_name, shape ORDER BY cost DESC, limit_name, shape LIMIT ?3";
const SWEEP: &str = "DELETE FROM api_cost_tracking WHERE rowid IN
    (SELECT rowid FROM api_cost_tracking WHERE at < ?1 ORDER BY at LIMIT ?2)";
const KEEP: &str = "INSERT OR REPLACE INTO rate_limit_buckets
    (name, upstream, kind, capacity, refill_rate, level, source, closed_until, updated_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
const REMOVE: &str = "DELETE FROM rate_limit_buckets WHERE name = ?1";
const REMOVE_OLD: &str = "DELETE FROM rate_limit_buckets WHERE updated_at < ?1";
const STANDINGS: &str = "SELECT name, kind, capacity, refill_rate, level, source, closed_until, updated_at
    FROM rate_limit_buckets ORDER BY name";
/// The rows that one transaction removes.
const SWEPT_AT_ONCE: u32 = 1_000;

/// Inserts the costs of calls.
pub(super) fn insert(sql: &Connection, costs: &[Cost]) -> rusqlite::Result<()> {
    let mut insert = sql.prepare_cached(INSERT)?;
    for cost in costs {
        insert.execute((
            rows::micros(cost.at),
            cost.operation.to_string(),
            cost.claim.0.cast_signed(),
            cost.nth,
            LimitName::parse(&cost.limit).upstream(),
            &*cost.limit,
            &*cost.shape,
            micro_to_tokens(cost.requested),
            cost.actual.map(micro_to_tokens),
            cost.restore_rate.map(micro_to_tokens),
        ))?;
    }
    Ok(())
}

/// A time as it is compared: no stored time is negative.
fn bound(time: Time) -> i64 {
    rows::micros(time.min(Time::from_micros(i64::MAX as u64)))
}

fn sum_costs(sql: &Connection, question: &CostQuery) -> rusqlite::Result<CostReport> {
    let since = bound(question.since);
    let mut too_much = sql.prepare_cached(TOO_MUCH)?;
    let too_much: Option<i64> =
        too_much.query_row((since, COSTS_SCANNED_MAX), |row| row.get(0)).optional()?;
    let since = too_much.map_or(since, |at| at + 1);
    let mut by_shape = sql.prepare_cached(BY_SHAPE)?;
    let most = i64::try_from(question.most).unwrap_or(i64::MAX);
    let lines = by_shape.query_map((since, question.upstream.as_deref(), most), line)?;
    Ok(CostReport { lines: lines.collect::<rusqlite::Result<_>>()?, is_whole: too_much.is_none() })
}

fn line(row: &Row<'_>) -> rusqlite::Result<CostLine> {
    Ok(CostLine {
        limit: row.get(0)?,
        shape: row.get(1)?,
        calls: row.get::<_, i64>(2)?.cast_unsigned(),
        requested: tokens_to_micro(row.get(3)?),
        actual: tokens_to_micro(row.get(4)?),
        of_limit: tokens_to_micro(row.get(5)?),
        last: rows::time(row, 6)?,
    })
}

fn sweep(desk: &mut StepContext<'_>, owner: Ownership, before: Time, most: u32) -> StepResult<usize> {
    if let Err(refused) = desk.meta.lease.check(owner) {
        return Ok(Err(refused));
    }
    desk.sql.prepare_cached(SWEEP)?.execute((bound(before), most)).map(Ok)
}

fn write_limit_snapshots(
    desk: &mut StepContext<'_>,
    owner: Ownership,
    standings: &[LimitSnapshot],
) -> StepResult<()> {
    if let Err(refused) = desk.meta.lease.check(owner) {
        return Ok(Err(refused));
    }
    let mut keep = desk.sql.prepare_cached(KEEP)?;
    for standing in standings {
        keep.execute((
            &*standing.name,
            LimitName::parse(&standing.name).upstream(),
            &*standing.kind,
            standing.capacity.map(micro_to_tokens),
            standing.refill_per_s.map(micro_to_tokens),
            standing.level.map(micro_to_tokens),
            &*standing.source,
            standing.closed_until.map(rows::micros),
            rows::micros(standing.updated_at),
        ))?;
    }
    Ok(Ok(()))
}

fn remove_limit_snapshots(
    desk: &mut StepContext<'_>,
    owner: Ownership,
    names: &[Arc<str>],
    before: Time,
) -> StepResult<()> {
    if let Err(refused) = desk.meta.lease.check(owner) {
        return Ok(Err(refused));
    }
    let mut remove = desk.sql.prepare_cached(REMOVE)?;
    for name in names {
        remove.execute([&**name])?;
    }
    desk.sql.prepare_cached(REMOVE_OLD)?.execute([bound(before)])?;
    Ok(Ok(()))
}

fn standing(row: &Row<'_>) -> rusqlite::Result<LimitSnapshot> {
    let figure = |column| Ok::<_, rusqlite::Error>(row.get::<_, Option<f64>>(column)?.map(tokens_to_micro));
    Ok(LimitSnapshot {
        name: row.get(0)?,
        kind: row.get::<_, String>(1)?.into(),
        capacity: figure(2)?,
        refill_per_s: figure(3)?,
        level: figure(4)?,
        source: row.get::<_, String>(5)?.into(),
        closed_until: row.get::<_, Option<i64>>(6)?.map(|at| Time::from_micros(at.cast_unsigned())),
        updated_at: rows::time(row, 7)?,
    })
}

impl Costs for EmbeddedStore {
    fn cost_report(&self, question: CostQuery) -> StoreFuture<'_, CostReport> {
        Box::pin(async move {
            let files: Vec<_> = self.files.map().values().cloned().collect();
            let (mut bills, most) = (Vec::new(), question.most);
            for file in files {
                // If applying the log has stalled, the current rows are better than nothing.
                let _ = file.wal.wait_until_applied().await;
                let question = question.clone();
                bills.push(file.read(move |sql| sum_costs(sql, &question)).await?);
            }
            Ok(merge_reports(bills, most))
        })
    }

    fn sweep_costs(&self, owner: Ownership, retention: Retention) -> StoreFuture<'_, usize> {
        Box::pin(async move {
            let file = self.partition(owner.partition).await?;
            file.wal.wait_until_applied().await?;
            let most = u32::try_from(retention.most).unwrap_or(u32::MAX).min(SWEPT_AT_ONCE);
            let before = retention.ended_before;
            file.write_without_sync(most as usize, move |desk| sweep(desk, owner, before, most)).await
        })
    }

    fn save_limit_snapshots(&self, owner: Ownership, standings: Vec<LimitSnapshot>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let file = self.partition(owner.partition).await?;
            let standings: Arc<[LimitSnapshot]> = standings.into();
            file.write_without_sync(standings.len(), move |desk| {
                write_limit_snapshots(desk, owner, &standings)
            })
            .await
        })
    }

    fn remove_limit_snapshots(
        &self,
        owner: Ownership,
        names: Vec<Arc<str>>,
        before: Time,
    ) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let file = self.partition(owner.partition).await?;
            let names: Arc<[Arc<str>]> = names.into();
            file.write_without_sync(names.len() + 1, move |desk| {
                remove_limit_snapshots(desk, owner, &names, before)
            })
            .await
        })
    }

    fn limit_snapshots(&self, partition: Partition) -> StoreFuture<'_, Vec<LimitSnapshot>> {
        Box::pin(async move {
            let Some(file) = self.existing(partition) else { return Ok(Vec::new()) };
            file.read(|sql| sql.prepare_cached(STANDINGS)?.query_map([], standing)?.collect()).await
        })
    }
}
