//! The archive on PostgreSQL: ended operations and costs of calls, in a schema of its own, for
//! queries in SQL. It connects when it is first needed, because no one waits for it. It is not a
//! store: nothing in it has an owner or runs again.

mod costs;

use std::collections::BTreeMap;
use std::sync::Arc;

use sqlx::Row;
use sqlx::postgres::PgRow;
use tidegate_core::id::Partition;
use tidegate_core::{OperationId, State, Time};
use tidegate_store::costs::{Cost, CostQuery, CostReport, LimitSnapshot};
use tidegate_store::log::{StoredEntry, StoredOperation, StoredResult};
use tidegate_store::{Archive, Result, StoreFuture};

use crate::errors::nothing_changed;
use crate::rows;
use crate::schema::Layout;
use crate::session::{RetrySafety, Sessions};

/// The default schema.
const SCHEMA_DEFAULT: &str = "tidegate_archive";
/// The schema; what each format adds to the one before it.
const LAYOUT: Layout = Layout {
    name: "archive",
    what: "Tidegate's archive",
    steps: &[
        include_str!("sql/archive.sql"),
        include_str!("sql/archive_costs.sql"),
        include_str!("sql/archive_cost_rates.sql"),
    ],
};

/// Stores operations; the latest end counts. An unchanged one is not written again.
const KEEP: &str = "
INSERT INTO operations (id, accepted_at, ended_at, state, grp, kind, key, attempts, fault_class, fault, partition, seq,
    envelope, payload, body)
SELECT id, 'epoch'::timestamptz + accepted * interval '1 microsecond',
    'epoch'::timestamptz + ended * interval '1 microsecond', state, grp, kind, key, attempts, fault_class, fault, $15, seq,
    envelope, payload, body
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::int[],
    $9::text[], $10::text[], $11::bigint[], $12::bytea[], $13::bytea[], $14::bytea[])
    AS e (id, accepted, ended, state, grp, kind, key, attempts, fault_class, fault, seq, envelope, payload, body)
ON CONFLICT (id) DO UPDATE SET ended_at = excluded.ended_at, state = excluded.state, attempts = excluded.attempts,
    fault_class = excluded.fault_class, fault = excluded.fault, body = excluded.body
WHERE operations.ended_at < excluded.ended_at";

const READ: &str = "
SELECT place, seq, (extract(epoch FROM accepted_at) * 1000000)::bigint AS at, grp, kind, key, envelope, payload, state,
    (extract(epoch FROM ended_at) * 1000000)::bigint AS ended_at, attempts AS attempt, fault_class, fault, body
FROM unnest($1::text[]) WITH ORDINALITY AS asked (id, place) JOIN operations USING (id)";

/// An archive on PostgreSQL.
pub struct PostgresArchive {
    sessions: Sessions,
}

impl PostgresArchive {
    /// Creates the archive that a URL names:
    /// `postgres://user:password@host:port/database?schema=tidegate_archive`. Does not connect yet.
    ///
    /// # Errors
    /// `Invalid` when the URL is invalid.
    pub fn at(url: &str) -> Result<Self> {
        Ok(Self { sessions: Sessions::lazy(url, SCHEMA_DEFAULT)? })
    }

    async fn keep_all(&self, partition: Partition, ended: &[StoredEntry]) -> Result<()> {
        let columns = Columns::of(partition, ended);
        if columns.ids.is_empty() {
            return Ok(());
        }
        let kept = self.sessions.rows(RetrySafety::Harmless, KEEP, |q| {
            q.bind(&columns.ids)
                .bind(&columns.accepted)
                .bind(&columns.ended)
                .bind(&columns.states)
                .bind(&columns.groups)
                .bind(&columns.kinds)
                .bind(&columns.keys)
                .bind(&columns.attempts)
                .bind(&columns.classes)
                .bind(&columns.faults)
                .bind(&columns.seqs)
                .bind(&columns.envelopes)
                .bind(&columns.payloads)
                .bind(&columns.bodies)
                .bind(i32::from(partition))
        });
        kept.await.map(drop)
    }

    async fn read_all(&self, ids: &[OperationId]) -> Result<Vec<Option<StoredEntry>>> {
        let names: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let mut found: Vec<Option<StoredEntry>> = vec![None; ids.len()];
        for row in self.sessions.rows(RetrySafety::Harmless, READ, |q| q.bind(&names)).await? {
            let (place, stored) =
                read_indexed_row(&row).map_err(|cause| nothing_changed(&self.sessions.place, &cause))?;
            if let Some(slot) = found.get_mut(place) {
                *slot = Some(stored);
            }
        }
        Ok(found)
    }
}

fn read_indexed_row(row: &PgRow) -> sqlx::Result<(usize, StoredEntry)> {
    let place = usize::try_from(row.try_get::<i64, _>("place")? - 1).unwrap_or(usize::MAX);
    Ok((place, rows::stored(row)?))
}

/// Rows as they are bound: column by column.
#[derive(Default)]
struct Columns<'a> {
    ids: Vec<String>,
    accepted: Vec<i64>,
    ended: Vec<i64>,
    states: Vec<&'static str>,
    groups: Vec<String>,
    kinds: Vec<String>,
    keys: Vec<Option<String>>,
    attempts: Vec<i32>,
    classes: Vec<Option<&'static str>>,
    faults: Vec<Option<String>>,
    seqs: Vec<i64>,
    envelopes: Vec<&'a [u8]>,
    payloads: Vec<&'a [u8]>,
    bodies: Vec<&'a [u8]>,
}

impl<'a> Columns<'a> {
    /// The columns of those that have ended, each once; sorted, so that two writers of the same
    /// rows do not deadlock.
    fn of(partition: Partition, stored: &'a [StoredEntry]) -> Self {
        let mut latest: BTreeMap<OperationId, (&StoredOperation, &StoredResult)> = BTreeMap::new();
        for StoredEntry { operation, result } in stored {
            let Some(result) = result else { continue };
            let id = OperationId::new(operation.at, partition, operation.seq);
            let known = latest.entry(id).or_insert((operation, result));
            if known.1.at < result.at {
                *known = (operation, result);
            }
        }
        let mut columns = Self::default();
        for (id, (operation, result)) in latest {
            columns.push(id, operation, result);
        }
        columns
    }

    fn push(&mut self, id: OperationId, operation: &'a StoredOperation, result: &'a StoredResult) {
        self.ids.push(id.to_string());
        self.accepted.push(rows::micros(operation.at));
        self.ended.push(rows::micros(result.at));
        self.states.push(State::from(result.state).as_str());
        self.groups.push(rows::storable(&operation.group));
        self.kinds.push(rows::storable(&operation.kind));
        self.keys.push(operation.key.as_deref().map(rows::storable));
        self.attempts.push(i32::from(result.attempt));
        self.classes.push(result.fault.as_ref().map(|fault| fault.class.as_str()));
        self.faults.push(result.fault.as_ref().map(|fault| rows::storable(&fault.stored_message())));
        self.seqs.push(operation.seq.0.cast_signed());
        self.envelopes.push(&operation.envelope);
        self.payloads.push(&operation.payload);
        self.bodies.push(&result.body);
    }
}

impl Archive for PostgresArchive {
    fn migrate(&self) -> StoreFuture<'_, ()> {
        Box::pin(async {
            self.sessions.check_version().await?;
            LAYOUT.migrate(&self.sessions).await
        })
    }

    fn save(&self, partition: Partition, ended: Vec<StoredEntry>) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.keep_all(partition, &ended).await })
    }

    fn read(&self, ids: Vec<OperationId>) -> StoreFuture<'_, Vec<Option<StoredEntry>>> {
        Box::pin(async move { self.read_all(&ids).await })
    }

    fn save_costs(&self, costs: Vec<Cost>) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.keep_all_costs(&costs).await })
    }

    fn save_limit_snapshots(
        &self,
        partition: Partition,
        standings: Vec<LimitSnapshot>,
    ) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.write_limit_snapshots(partition, &standings).await })
    }

    fn remove_limit_snapshots(
        &self,
        partition: Partition,
        names: Vec<Arc<str>>,
        before: Time,
    ) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.delete_limit_snapshots(partition, &names, before).await })
    }

    fn cost_report(&self, question: CostQuery) -> StoreFuture<'_, CostReport> {
        Box::pin(async move { self.sum_costs(&question).await })
    }

    fn describe(&self) -> String {
        self.sessions.place.to_string()
    }
}
