//! Costs of calls and the state of limits, in the archive: each cost once, however often it is
//! reported.

use std::sync::Arc;

use tidegate_core::Time;
use tidegate_core::id::Partition;
use tidegate_store::Result;
use tidegate_store::costs::{Cost, CostQuery, CostReport, LimitSnapshot};

use super::PostgresArchive;
use crate::costs::{Columns, CostQueries, bind_costs, bind_limit_snapshots, bind_time, sum_costs};
use crate::rows;
use crate::session::{RetrySafety, Statement};

const KEEP: &str = "
INSERT INTO api_cost_tracking (at, operation, claim, nth, upstream, limit_name, shape, requested, actual,
    restore_rate)
SELECT 'epoch'::timestamptz + at * interval '1 microsecond', operation, claim, nth, split_part(limit_name, '/', 1),
    limit_name, shape, requested, actual, rate
FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::smallint[], $5::text[], $6::text[], $7::float8[], $8::float8[],
    $9::float8[]) AS e (at, operation, claim, nth, limit_name, shape, requested, actual, rate)
ON CONFLICT DO NOTHING";

const KEEP_STANDINGS: &str = "
INSERT INTO rate_limit_buckets AS known
    (name, partition, upstream, kind, capacity, refill_rate, level, source, closed_until, updated_at)
SELECT name, $1, split_part(name, '/', 1), kind, capacity, rate, level, source,
    'epoch'::timestamptz + closed * interval '1 microsecond', 'epoch'::timestamptz + updated * interval '1 microsecond'
FROM unnest($2::text[], $3::text[], $4::float8[], $5::float8[], $6::float8[], $7::text[], $8::bigint[], $9::bigint[])
    AS e (name, kind, capacity, rate, level, source, closed, updated)
ON CONFLICT (name, partition) DO UPDATE SET kind = excluded.kind, capacity = excluded.capacity,
    refill_rate = excluded.refill_rate, level = excluded.level, source = excluded.source,
    closed_until = excluded.closed_until, updated_at = excluded.updated_at
WHERE known.updated_at <= excluded.updated_at";

const REMOVE: &str = "DELETE FROM rate_limit_buckets WHERE partition = $1
    AND (name = ANY ($2) OR updated_at < 'epoch'::timestamptz + $3 * interval '1 microsecond')";

const BILL: CostQueries = CostQueries { too_much: TOO_MUCH, by_shape: BY_SHAPE };
const TOO_MUCH: &str = "SELECT (extract(epoch FROM at) * 1000000)::bigint FROM api_cost_tracking
    WHERE at >= 'epoch'::timestamptz + $1 * interval '1 microsecond' ORDER BY at DESC LIMIT 1 OFFSET $2";
const BY_SHAPE: &str =
    "SELECT limit_name, shape, count(*), sum(requested), sum(coalesce(actual, requested)) AS cost,
        sum(sum(coalesce(actual, requested))) OVER (PARTITION BY limit_name),
        (extract(epoch FROM max(at)) * 1000000)::bigint
    FROM api_cost_tracking
    WHERE at >= 'epoch'::timestamptz + $1 * interval '1 microsecond' AND ($2::text IS NULL OR upstream = $2)
    GROUP BY limit_name, shape ORDER BY cost DESC, limit_name, shape LIMIT $3";

/// The latest time that a query may be about: the year 9999, within the range of a timestamp.
const LATEST: i64 = 253_402_300_799_999_999;

impl PostgresArchive {
    pub(super) async fn keep_all_costs(&self, costs: &[Cost]) -> Result<()> {
        if costs.is_empty() {
            return Ok(());
        }
        self.sessions.rows(RetrySafety::Harmless, KEEP, |q| bind_costs(q, costs)).await.map(drop)
    }

    pub(super) async fn write_limit_snapshots(
        &self,
        partition: Partition,
        standings: &[LimitSnapshot],
    ) -> Result<()> {
        let bind = |q| bind_limit_snapshots(sqlx::query::Query::bind(q, i32::from(partition)), standings);
        self.sessions.rows(RetrySafety::Harmless, KEEP_STANDINGS, bind).await.map(drop)
    }

    pub(super) async fn delete_limit_snapshots(
        &self,
        partition: Partition,
        names: &[Arc<str>],
        before: Time,
    ) -> Result<()> {
        let names = Columns(names).of(|name| rows::storable(name));
        let before = bind_time(before).min(LATEST);
        let bind = |q: Statement<'static>| q.bind(i32::from(partition)).bind(names.clone()).bind(before);
        self.sessions.rows(RetrySafety::Harmless, REMOVE, bind).await.map(drop)
    }

    pub(super) async fn sum_costs(&self, question: &CostQuery) -> Result<CostReport> {
        sum_costs(&self.sessions, &BILL, bind_time(question.since).min(LATEST), question).await
    }
}
