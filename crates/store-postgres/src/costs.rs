//! Costs of calls and the state of limits, as tables for queries in SQL. Costs arrive with appends;
//! every other step checks the owner itself.

use std::sync::Arc;

use sqlx::postgres::PgRow;
use tidegate_core::Time;
use tidegate_core::bounds::COSTS_SCANNED_MAX;
use tidegate_core::id::Partition;
use tidegate_store::costs::{
    Cost, CostLine, CostQuery, CostReport, LimitSnapshot, micro_to_tokens, tokens_to_micro,
};
use tidegate_store::log::{Ownership, Retention};
use tidegate_store::{Costs, Result, StoreFuture};

use crate::session::{RetrySafety, Sessions, Statement};
use crate::{PostgresStore, checks, rows};

const BILL: CostQueries = CostQueries { too_much: TOO_MUCH, by_shape: BY_SHAPE };
const TOO_MUCH: &str = "SELECT at FROM api_cost_tracking WHERE at >= $1 ORDER BY at DESC LIMIT 1 OFFSET $2";
const BY_SHAPE: &str =
    "SELECT limit_name, shape, count(*), sum(requested), sum(coalesce(actual, requested)) AS cost,
        sum(sum(coalesce(actual, requested))) OVER (PARTITION BY limit_name), max(at)
    FROM api_cost_tracking WHERE at >= $1 AND ($2::text IS NULL OR upstream = $2)
    GROUP BY limit_name, shape ORDER BY cost DESC, limit_name, shape LIMIT $3";
const SWEEP: &str = "SELECT verdict, number FROM sweep_costs($1, $2, $3, $4)";
const KEEP: &str = "SELECT verdict, number FROM keep_standings($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
const REMOVE: &str = "SELECT verdict, number FROM remove_standings($1, $2, $3, $4)";
const STANDINGS: &str = "SELECT name, kind, capacity, refill_rate, level, source, closed_until, updated_at
    FROM rate_limit_buckets WHERE partition = $1 ORDER BY name";
/// The rows that one step removes.
const SWEPT_AT_ONCE: usize = 2_000;

/// Binds costs as the columns of an append.
pub(crate) fn bind_costs<'q>(append: Statement<'q>, costs: &'q [Cost]) -> Statement<'q> {
    let column = Columns(costs);
    append
        .bind(column.of(|cost| rows::micros(cost.at)))
        .bind(column.of(|cost| cost.operation.to_string()))
        .bind(column.of(|cost| cost.claim.0.cast_signed()))
        .bind(column.of(|cost| i16::from(cost.nth)))
        .bind(column.of(|cost| rows::storable(&cost.limit)))
        .bind(column.of(|cost| rows::storable(&cost.shape)))
        .bind(column.of(|cost| micro_to_tokens(cost.requested)))
        .bind(column.of(|cost| cost.actual.map(micro_to_tokens)))
        .bind(column.of(|cost| cost.restore_rate.map(micro_to_tokens)))
}

/// Binds the state of limits as columns.
pub(crate) fn bind_limit_snapshots<'q>(keep: Statement<'q>, standings: &'q [LimitSnapshot]) -> Statement<'q> {
    let column = Columns(standings);
    keep.bind(column.of(|one| rows::storable(&one.name)))
        .bind(column.of(|one| one.kind.to_string()))
        .bind(column.of(|one| one.capacity.map(micro_to_tokens)))
        .bind(column.of(|one| one.refill_per_s.map(micro_to_tokens)))
        .bind(column.of(|one| one.level.map(micro_to_tokens)))
        .bind(column.of(|one| one.source.to_string()))
        .bind(column.of(|one| one.closed_until.map(rows::micros)))
        .bind(column.of(|one| rows::micros(one.updated_at)))
}

/// A list of values, to be bound column by column.
pub(crate) struct Columns<'q, T>(pub(crate) &'q [T]);

impl<'q, T> Columns<'q, T> {
    /// One column of them.
    pub(crate) fn of<U>(&self, value: impl Fn(&'q T) -> U) -> Vec<U> {
        self.0.iter().map(value).collect()
    }
}

/// A time as it is compared: no stored time is negative.
pub(crate) fn bind_time(time: Time) -> i64 {
    rows::micros(time.min(Time::from_micros(i64::MAX as u64)))
}

/// Reads a line of a cost report: limit, shape, calls, requested, cost, cost of the limit, last.
fn line(sessions: &Sessions, row: &PgRow) -> Result<CostLine> {
    let figure = |column| Ok(tokens_to_micro(sessions.column::<f64>(row, column)?));
    Ok(CostLine {
        limit: sessions.column::<&str>(row, 0)?.into(),
        shape: sessions.column::<&str>(row, 1)?.into(),
        calls: sessions.column::<i64>(row, 2)?.cast_unsigned(),
        requested: figure(3)?,
        actual: figure(4)?,
        of_limit: figure(5)?,
        last: rows::time(sessions.column(row, 6)?),
    })
}

/// The two queries of a cost report, as a schema spells them.
pub(crate) struct CostQueries {
    /// Finds the newest row beyond the number of rows that may be scanned.
    pub(crate) too_much: &'static str,
    /// Sums the costs since then, by shape.
    pub(crate) by_shape: &'static str,
}

/// Sums the costs since a time, by shape, as far as rows are scanned.
pub(crate) async fn sum_costs(
    sessions: &Sessions,
    asking: &CostQueries,
    since: i64,
    question: &CostQuery,
) -> Result<CostReport> {
    let looked_at = i64::from(COSTS_SCANNED_MAX);
    let too_much =
        sessions.rows(RetrySafety::Harmless, asking.too_much, |q| q.bind(since).bind(looked_at)).await?;
    let too_much: Option<i64> = too_much.first().map(|row| sessions.column(row, 0)).transpose()?;
    let since = too_much.map_or(since, |at| at + 1);
    let most = i64::try_from(question.most).unwrap_or(i64::MAX);
    let upstream = question.upstream.as_deref().map(rows::storable);
    let bind = |q: Statement<'static>| q.bind(since).bind(upstream.clone()).bind(most);
    let found = sessions.rows(RetrySafety::Harmless, asking.by_shape, bind).await?;
    let lines = found.iter().map(|row| line(sessions, row)).collect::<Result<_>>()?;
    Ok(CostReport { lines, is_whole: too_much.is_none() })
}

impl PostgresStore {
    async fn write_limit_snapshots(&self, owner: Ownership, standings: &[LimitSnapshot]) -> Result<()> {
        let (partition, epoch) = (i32::from(owner.partition), owner.epoch.0.cast_signed());
        let row = self
            .sessions
            .row(RetrySafety::Harmless, KEEP, |q| {
                bind_limit_snapshots(q.bind(partition).bind(epoch), standings)
            })
            .await?;
        self.check_verdict(owner, &row).map(drop)
    }

    async fn delete_limit_snapshots(&self, owner: Ownership, names: &[Arc<str>], before: Time) -> Result<()> {
        let (partition, epoch) = (i32::from(owner.partition), owner.epoch.0.cast_signed());
        let names = Columns(names).of(|name| rows::storable(name));
        let bind =
            |q: Statement<'static>| q.bind(partition).bind(epoch).bind(names.clone()).bind(bind_time(before));
        let row = self.sessions.row(RetrySafety::Harmless, REMOVE, bind).await?;
        self.check_verdict(owner, &row).map(drop)
    }

    async fn remove_old_costs(&self, owner: Ownership, retention: Retention) -> Result<usize> {
        let (partition, epoch) = (i32::from(owner.partition), owner.epoch.0.cast_signed());
        let (cut, most) = (bind_time(retention.ended_before), rows::count(retention.most.min(SWEPT_AT_ONCE)));
        let row = self
            .sessions
            .row(RetrySafety::Harmless, SWEEP, |q| q.bind(partition).bind(epoch).bind(cut).bind(most))
            .await?;
        self.check_verdict(owner, &row).map(|gone| usize::try_from(gone).unwrap_or_default())
    }

    /// The result of a step that may have been refused.
    fn check_verdict(&self, owner: Ownership, row: &PgRow) -> Result<i64> {
        let number: i64 = self.sessions.column(row, 1)?;
        match self.sessions.column(row, 0)? {
            "ok" => Ok(number),
            refused => Err(checks::refusal(owner, refused, number)),
        }
    }

    fn limit(&self, row: &PgRow) -> Result<LimitSnapshot> {
        let sessions = &self.sessions;
        let figure = |column| {
            Ok::<_, tidegate_store::Error>(sessions.column::<Option<f64>>(row, column)?.map(tokens_to_micro))
        };
        Ok(LimitSnapshot {
            name: sessions.column::<&str>(row, 0)?.into(),
            kind: sessions.column::<String>(row, 1)?.into(),
            capacity: figure(2)?,
            refill_per_s: figure(3)?,
            level: figure(4)?,
            source: sessions.column::<String>(row, 5)?.into(),
            closed_until: sessions.column::<Option<i64>>(row, 6)?.map(rows::time),
            updated_at: rows::time(sessions.column(row, 7)?),
        })
    }
}

impl Costs for PostgresStore {
    fn cost_report(&self, question: CostQuery) -> StoreFuture<'_, CostReport> {
        Box::pin(async move { sum_costs(&self.sessions, &BILL, bind_time(question.since), &question).await })
    }

    fn sweep_costs(&self, owner: Ownership, retention: Retention) -> StoreFuture<'_, usize> {
        Box::pin(self.remove_old_costs(owner, retention))
    }

    fn save_limit_snapshots(&self, owner: Ownership, standings: Vec<LimitSnapshot>) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.write_limit_snapshots(owner, &standings).await })
    }

    fn remove_limit_snapshots(
        &self,
        owner: Ownership,
        names: Vec<Arc<str>>,
        before: Time,
    ) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.delete_limit_snapshots(owner, &names, before).await })
    }

    fn limit_snapshots(&self, partition: Partition) -> StoreFuture<'_, Vec<LimitSnapshot>> {
        Box::pin(async move {
            let asked = |q: Statement<'static>| q.bind(i32::from(partition));
            let found = self.sessions.rows(RetrySafety::Harmless, STANDINGS, asked).await?;
            found.iter().map(|row| self.limit(row)).collect()
        })
    }
}
