//! The archive: each ended operation is stored once, by its latest end, in tables that people read.

use std::sync::Arc;

use sqlx::Row;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions};
use tidegate_contract::{TestRng, samples::BatchWriter};
use tidegate_core::{EndState, Fault, FaultClass, OperationId, Seq, Time};
use tidegate_fixture::postgres::PostgresServer;
use tidegate_store::log::StoredEntry;
use tidegate_store::{Archive, StoreErrorKind};
use tidegate_store_postgres::{PostgresArchive, PostgresStore};

use crate::sample::{PARTITION, accepts, behind, ends, execute, run, store};

/// A moment in this century, with microseconds.
const NOW: Time = Time::from_micros(1_780_000_000_123_457);

async fn archive(server: &PostgresServer) -> PostgresArchive {
    let archive = PostgresArchive::at(&server.url()).expect("a URL");
    archive.migrate().await.expect("migrate");
    archive
}

/// A connection of a person who queries in SQL.
async fn analyst(server: &PostgresServer) -> PgConnection {
    let options: PgConnectOptions = server.url().parse().expect("a URL");
    options.options([("search_path", "tidegate_archive")]).connect().await.expect("connect")
}

async fn count(sql: &mut PgConnection) -> i64 {
    sqlx::query("SELECT count(*) FROM operations").fetch_one(sql).await.expect("count").get(0)
}

/// Operations that have ended.
fn ended(seqs: std::ops::Range<u64>, at: Time) -> Vec<StoredEntry> {
    let operations = accepts(seqs.clone(), at, 10).operations;
    let results = ends(seqs, at).results;
    let pair = |(operation, result)| StoredEntry {
        operation: Arc::unwrap_or_clone(operation),
        result: Some(result),
    };
    operations.into_iter().zip(results).map(pair).collect()
}

fn id(stored: &StoredEntry) -> OperationId {
    OperationId::new(stored.operation.at, PARTITION, stored.operation.seq)
}

/// OPS-8: whatever can end can be archived and is returned as it was, in the requested order.
#[test]
fn ops_8_what_was_archived_comes_back_as_it_was() {
    run(async {
        let server = PostgresServer::start();
        let archive = archive(&server).await;
        let mut author = BatchWriter::new(TestRng::seeded_or(17));
        let mut all = Vec::new();
        for _ in 0..4 {
            let operations: Vec<_> = (0..40).map(|_| author.operation(NOW)).collect();
            for operation in operations {
                let result = author.result(operation.seq, NOW);
                all.push(StoredEntry { operation, result: Some(result) });
            }
        }
        let running = StoredEntry { operation: author.operation(NOW), result: None };
        archive.save(PARTITION, all.iter().cloned().chain([running.clone()]).collect()).await.expect("keep");
        let mut asked: Vec<_> = all.iter().map(id).collect();
        asked.reverse();
        asked.push(id(&running));
        let found = archive.read(asked).await.expect("read");
        assert!(found[..160].iter().flatten().eq(all.iter().rev()), "all of them, as asked");
        assert_eq!(found[160], None, "what has not ended is not kept");
        let elsewhere = OperationId::new(NOW, PARTITION + 1, Seq(1));
        let earlier = OperationId::new(NOW.before(std::time::Duration::from_secs(1)), PARTITION, Seq(1));
        assert_eq!(archive.read(vec![elsewhere, earlier]).await.expect("read"), [None, None]);
        assert!(archive.read(Vec::new()).await.expect("read nothing").is_empty());
        archive.save(PARTITION, Vec::new()).await.expect("keep nothing");
    });
}

/// OPS-8: archiving again changes nothing; of several ends the latest counts, even when an earlier
/// one arrives late or both arrive together.
#[test]
fn ops_8_twice_is_once_and_the_latest_end_counts() {
    run(async {
        let server = PostgresServer::start();
        let archive = archive(&server).await;
        let mut sql = analyst(&server).await;
        let first = ended(1..6, NOW);
        let mut second = first.clone();
        for stored in &mut second {
            let result = stored.result.as_mut().expect("it ended");
            (result.at, result.state, result.attempt) =
                (NOW.after(std::time::Duration::from_micros(1)), EndState::Failed, 3);
            result.fault = Some(Fault::new(FaultClass::Validation, "it said \0 no"));
        }
        archive.save(PARTITION, first.clone()).await.expect("keep");
        let written = "SELECT xmin::text FROM operations WHERE id = $1";
        let mut version = async || -> String {
            let row = sqlx::query(written).bind(id(&first[0]).to_string()).fetch_one(&mut sql);
            row.await.expect("look").get(0)
        };
        let before = version().await;
        archive.save(PARTITION, [first.clone(), first.clone()].concat()).await.expect("keep again");
        assert_eq!(version().await, before, "what is there is not written again");
        archive.save(PARTITION, [second.clone(), first.clone()].concat()).await.expect("keep both");
        archive.save(PARTITION, first.clone()).await.expect("keep the first, late");
        let found = archive.read(vec![id(&first[0])]).await.expect("read");
        let result = found[0].as_ref().and_then(|stored| stored.result.clone()).expect("it ended");
        assert_eq!((result.state, result.attempt), (EndState::Failed, 3));
        assert_eq!(result.fault.expect("a fault").message, "it said \u{fffd} no");
        assert_eq!(count(&mut sql).await, 5);
    });
}

/// OPS-8: an unavailable archive reports so, stores nothing by halves, and resumes by itself; it
/// need not be reachable when it is configured. Two writers may store the same at once.
#[test]
fn ops_8_an_archive_that_was_away_goes_on() {
    run(async {
        let mut server = PostgresServer::start();
        server.stop();
        let archive = PostgresArchive::at(&server.url()).expect("it is not connected yet");
        assert_eq!(
            archive.migrate().await.expect_err("there is no server").kind(),
            StoreErrorKind::Unavailable
        );
        server.restart();
        archive.migrate().await.expect("migrate");
        archive.save(PARTITION, ended(1..50, NOW)).await.expect("keep");
        server.kill();
        assert_eq!(
            archive.save(PARTITION, ended(50..60, NOW)).await.expect_err("away").kind(),
            StoreErrorKind::Unavailable
        );
        server.restart();
        let other = self::archive(&server).await;
        for round in 0..10 {
            let (one, two) =
                (ended(1..200, NOW), ended(1..200, NOW.after(std::time::Duration::from_secs(round))));
            let (one, two) = tokio::join!(archive.save(PARTITION, one), other.save(PARTITION, two));
            one.and(two).expect("both");
        }
        assert_eq!(count(&mut analyst(&server).await).await, 199 + 9 * 199);
    });
}

/// OPS-22: its schema is its own: a store's is rejected, and so is a newer one. A password is never
/// shown.
#[test]
fn ops_22_an_archive_has_a_schema_of_its_own_and_tells_no_password() {
    run(async {
        let server = PostgresServer::start();
        drop(store(&server).await);
        let wrong = PostgresArchive::at(&format!("{}?schema=tidegate", server.url())).expect("a URL");
        let error = wrong.migrate().await.expect_err("that is a store's");
        assert_eq!(error.kind(), StoreErrorKind::Unreadable);
        assert!(error.to_string().ends_with("holds tables that are not Tidegate's archive"), "{error}");
        let archive = archive(&server).await;
        assert!(archive.describe().ends_with("/postgres?schema=tidegate_archive"), "{}", archive.describe());
        let wrong = PostgresStore::connect(&format!("{}?schema=tidegate_archive", server.url()))
            .await
            .expect("connect");
        assert_eq!(
            tidegate_store::Upkeep::migrate(&wrong).await.expect_err("an archive's").kind(),
            StoreErrorKind::Unreadable
        );
        execute(&mut analyst(&server).await, "UPDATE meta SET value = 7 WHERE name = 'archive'").await;
        let error = archive.migrate().await.expect_err("it is newer");
        assert!(error.to_string().ends_with("has format 7; this program reads format 3"), "{error}");
        drop(behind(&server).await);
        let guarded = PostgresArchive::at(&server.guarded_url("correct-horse")).expect("a URL");
        let error = guarded.migrate().await.expect_err("there is no such role");
        let said = format!("{error} {error:?} {}", guarded.describe());
        assert!(!said.contains("correct-horse"), "{said}");
    });
}

/// The queries in the documentation of the archive work as described.
#[test]
fn the_documented_queries_run() {
    const PAGE: &str = include_str!("../../../../docs/archive.md");
    run(async {
        let server = PostgresServer::start();
        let archive = archive(&server).await;
        let now = tidegate_store::Clock::now(&tidegate_store::WallClock);
        let mut rows = ended(1..11, now);
        for stored in &mut rows {
            stored.operation.envelope = r#"{"deployment_id":"d-1"}"#.into();
            stored.operation.payload =
                r#"{"upstream":"acme","request":{"method":"POST","path":"/orders"}}"#.into();
        }
        for stored in &mut rows[..4] {
            let result = stored.result.as_mut().expect("it ended");
            result.state = EndState::Failed;
            result.fault = Some(Fault::new(FaultClass::Validation, "no"));
        }
        archive.save(PARTITION, rows).await.expect("keep");
        let mut sql = analyst(&server).await;
        let queries: Vec<_> =
            PAGE.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert_eq!(queries.len(), 3, "two questions, and how to delete");
        let failures = sqlx::query(AssertSqlSafe(queries[0])).fetch_all(&mut sql).await.expect("failures");
        assert_eq!((failures.len(), failures[0].get::<i64, _>("failures")), (1, 4));
        let paths = sqlx::query(AssertSqlSafe(queries[1])).fetch_all(&mut sql).await.expect("paths");
        assert_eq!((paths.len(), paths[0].get::<i64, _>("calls")), (1, 10));
        assert_eq!(paths[0].get::<&str, _>("path"), "/orders");
        sqlx::query(AssertSqlSafe(queries[2])).execute(&mut sql).await.expect("delete");
        assert_eq!(count(&mut sql).await, 10, "they are not that old");
        execute(&mut sql, "UPDATE operations SET ended_at = now() - interval '3 years' WHERE seq <= 3").await;
        sqlx::query(AssertSqlSafe(queries[2])).execute(&mut sql).await.expect("delete");
        assert_eq!(count(&mut sql).await, 7);
    });
}
