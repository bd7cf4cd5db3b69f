//! Helpers for the tests of this backend: a server, stores on it, batches, and direct access to the
//! tables.

use std::time::Duration;

use bytes::Bytes;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Row};
use tidegate_core::id::Partition;
use tidegate_core::{EndState, Seq, Time};
use tidegate_fixture::postgres::PostgresServer;
use tidegate_store::log::{Batch, Lsn, StoredOperation, StoredResult};
use tidegate_store::{Log, Upkeep};
use tidegate_store_postgres::PostgresStore;
use tokio::time::timeout;

/// Removes what format 7 did not have yet.
pub(crate) const FORMAT_7: &str = "DO $$ DECLARE found regprocedure; BEGIN
        FOR found IN SELECT p.oid::regprocedure FROM pg_proc AS p
            WHERE p.pronamespace = 'tidegate'::regnamespace AND (p.proname = 'remove_standings'
                OR p.proname = 'append_with_costs' AND p.pronargs = 29
                OR p.proname = 'append_with_attempts' AND p.pronargs = 38)
        LOOP EXECUTE format('DROP FUNCTION %s', found); END LOOP;
    END $$;
    DROP FUNCTION add_audit_entry;
    DROP TABLE audit_log, deployment_events;
    ALTER TABLE rate_limit_buckets RENAME COLUMN refill_rate TO refill_per_s;
    ALTER TABLE api_cost_tracking DROP COLUMN restore_rate;
    UPDATE meta SET value = 7 WHERE name = 'format'";

pub(crate) const PARTITION: Partition = 3;
pub(crate) const TTL: Duration = Duration::from_secs(60);
/// The timeout of every test.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

/// Runs a test with a timeout.
pub(crate) fn run(test: impl Future<Output = ()>) {
    tidegate_contract::harness::runtime()
        .block_on(async { timeout(BOUND, test).await.expect("the test hangs") });
}

/// A migrated store on a server, by the server's own clock.
pub(crate) async fn store(server: &PostgresServer) -> PostgresStore {
    let store = PostgresStore::connect(&server.url()).await.expect("connect");
    store.migrate().await.expect("migrate");
    store
}

/// A direct connection to the same tables.
pub(crate) async fn behind(server: &PostgresServer) -> PgConnection {
    let options: PgConnectOptions = server.url().parse().expect("a URL");
    options.options([("search_path", "tidegate")]).connect().await.expect("connect behind the store")
}

/// Executes a statement on a direct connection.
pub(crate) async fn execute(sql: &mut PgConnection, what: &'static str) {
    sqlx::raw_sql(what).execute(sql).await.expect(what);
}

/// Waits until an append waits for a lock; returns the process id of its connection.
pub(crate) async fn waiting_append(sql: &mut PgConnection) -> i32 {
    let waiting = "SELECT pid FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND query LIKE '%append(%' AND pid <> pg_backend_pid()";
    loop {
        if let Some(row) = sqlx::query(waiting).fetch_optional(&mut *sql).await.expect("look") {
            return row.get(0);
        }
        tokio::task::yield_now().await;
    }
}

/// A batch that accepts these, each with a payload of `len` bytes.
pub(crate) fn accepts(seqs: std::ops::Range<u64>, at: Time, len: usize) -> Batch {
    let operation = |seq| StoredOperation {
        seq: Seq(seq),
        at,
        group: "shop:acme".into(),
        kind: "http".into(),
        key: None,
        envelope: Bytes::from_static(b"{}"),
        payload: Bytes::from(vec![b'x'; len]),
    };
    Batch { operations: seqs.map(operation).map(Into::into).collect(), ..Batch::default() }
}

/// A batch in which these have ended.
pub(crate) fn ends(seqs: std::ops::Range<u64>, at: Time) -> Batch {
    let result = |seq| StoredResult {
        seq: Seq(seq),
        at,
        state: EndState::Succeeded,
        attempt: 1,
        fault: None,
        body: Bytes::from_static(b"done"),
    };
    Batch { results: seqs.map(result).collect(), ..Batch::default() }
}

/// The last append that a replay finds.
pub(crate) async fn last(store: &impl Log) -> Lsn {
    store.load(PARTITION, &mut |_| {}).await.expect("load")
}

/// The number of these operations that are stored.
pub(crate) async fn kept(store: &impl Log, seqs: std::ops::Range<u64>) -> usize {
    let found = store.read(PARTITION, seqs.map(Seq).collect()).await.expect("read");
    found.iter().flatten().count()
}
