//! The tables for people, in a store and in an archive: their schema, and the migration from an
//! older version.

use std::borrow::Cow;

use sqlx::postgres::PgConnection;
use sqlx::{Connection, Row};
use tidegate_core::operation::MICRO;
use tidegate_core::shared::bucket::{ReservationRequest, ReserveOutcome};
use tidegate_core::{Fence, OperationId, Seq, Time};
use tidegate_fixture::postgres::PostgresServer;
use tidegate_store::costs::{Cost, CostQuery, LimitSnapshot, sum_costs};
use tidegate_store::log::{Batch, Lsn};
use tidegate_store::{Archive, Costs, Log, SharedState, Upkeep};
use tidegate_store_postgres::{PostgresArchive, PostgresStore};

use crate::sample::{PARTITION, TTL, accepts, behind, execute, kept, run, store};

/// A moment in this century, with microseconds.
const NOW: Time = Time::from_micros(1_780_000_000_123_457);
/// Format 2, as earlier programs created it.
const FORMAT_2: &str = concat!(
    "CREATE SCHEMA tidegate; SET search_path = tidegate;",
    include_str!("../../src/sql/tables.sql"),
    include_str!("../../src/sql/ranges.sql"),
    include_str!("../../src/sql/log.sql"),
    include_str!("../../src/sql/shared.sql"),
    include_str!("../../src/sql/buckets.sql"),
    include_str!("../../src/sql/outbox.sql"),
    include_str!("../../src/sql/records.sql"),
    "INSERT INTO meta VALUES ('format', 2)"
);
/// The first format of the archive.
const ARCHIVE_1: &str = concat!(
    "CREATE SCHEMA tidegate_archive; SET search_path = tidegate_archive;",
    include_str!("../../src/sql/archive.sql"),
    "INSERT INTO meta VALUES ('archive', 1)"
);

fn cost(seq: u64, actual: Option<u64>) -> Cost {
    Cost {
        at: NOW,
        operation: OperationId::new(NOW, PARTITION, Seq(seq)),
        claim: Fence(3),
        nth: 0,
        limit: "acme/points".into(),
        shape: "GetOrders#1f0c9a2b".into(),
        requested: 52 * MICRO,
        actual,
        restore_rate: actual.map(|_| 50 * MICRO),
    }
}

fn standing(level: u64) -> LimitSnapshot {
    LimitSnapshot {
        name: "acme/points".into(),
        kind: Cow::Borrowed("drip"),
        capacity: Some(2_000 * MICRO),
        refill_per_s: None,
        level: Some(level * MICRO),
        source: Cow::Borrowed("learned"),
        closed_until: Some(NOW),
        updated_at: NOW.after(std::time::Duration::from_millis(level)),
    }
}

fn all() -> CostQuery {
    CostQuery { upstream: None, since: Time::ZERO, most: 100 }
}

fn spends(costs: Vec<Cost>) -> Batch {
    Batch { costs, ..Batch::default() }
}

async fn told(sql: &mut PgConnection, question: &'static str) -> String {
    sqlx::query(question).fetch_one(sql).await.expect(question).get(0)
}

/// LIM-10: queries in SQL find costs and limits by their names, in tokens, with ids as the API
/// shows them.
#[test]
fn lim_10_the_tables_are_there_for_people() {
    run(async {
        let server = PostgresServer::start();
        let store = store(&server).await;
        let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        let odd = Cost { shape: "a\0b".into(), ..cost(8, None) };
        store.append(owner, spends(vec![cost(7, Some(MICRO / 2)), odd])).await.expect("append");
        store.save_limit_snapshots(owner, vec![standing(1_948)]).await.expect("keep");
        let mut sql = behind(&server).await;
        let row = told(
            &mut sql,
            "SELECT concat_ws(' ', operation, claim, nth, upstream, limit_name, shape, requested, actual, restore_rate, to_timestamp(at / 1e6) AT TIME ZONE 'UTC')
            FROM api_cost_tracking WHERE actual IS NOT NULL",
        );
        let id = OperationId::new(NOW, PARTITION, Seq(7));
        let wanted =
            format!("{id} 3 0 acme acme/points GetOrders#1f0c9a2b 52 0.5 50 2026-05-28 20:26:40.123457");
        assert_eq!(row.await, wanted);
        let odd = told(&mut sql, "SELECT shape FROM api_cost_tracking WHERE actual IS NULL").await;
        assert_eq!(odd, "a\u{fffd}b");
        let row = told(
            &mut sql,
            "SELECT concat_ws(' ', partition, upstream, kind, capacity, coalesce(refill_rate, -1), level, source)
            FROM rate_limit_buckets WHERE name = 'acme/points' AND closed_until = 1780000000123457",
        );
        assert_eq!(row.await, "3 acme drip 2000 -1 1948 learned");
        let usual = "SELECT column_default::text FROM information_schema.columns
            WHERE table_schema = 'tidegate' AND table_name = 'rate_limit_buckets' AND column_name = 'refill_rate'";
        assert_eq!(told(&mut sql, usual).await, "2.0");
    });
}

/// LIM-10: a store of format 2 is migrated in place. Its stand-alone buckets stay as they were, a
/// node of the previous version appends and takes from them until it notices, and costs are stored
/// from then on.
#[test]
fn lim_10_a_store_of_format_2_is_brought_up_to_date() {
    run(async {
        let server = PostgresServer::start();
        let mut sql = PgConnection::connect(&server.url()).await.expect("connect");
        execute(&mut sql, FORMAT_2).await;
        let take = "SELECT verdict FROM reserve('{slow}', '{3000000}', '{5000000}', '{0}', NULL)";
        assert_eq!(told(&mut sql, take).await, "granted");
        let store = store(&server).await;
        let level = store.observe_bucket("slow").await.expect("look").expect("it is still there");
        assert_eq!((level.tokens, level.capacity), (2 * MICRO, 5 * MICRO));
        let want =
            ReservationRequest { name: "slow".into(), cost: MICRO, capacity: 5 * MICRO, refill_per_s: 0 };
        let taken = store.reserve(vec![want]).await.expect("reserve");
        assert_eq!(taken, ReserveOutcome::Granted { remaining: vec![MICRO] });
        assert_eq!(told(&mut sql, take).await, "wait", "what an older node calls finds the same bucket");
        let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        // Without costs it is the statement that an older node sends.
        assert_eq!(store.append(owner, accepts(1..4, NOW, 10)).await.expect("append"), Lsn(1));
        assert_eq!(store.append(owner, spends(vec![cost(1, None)])).await.expect("append"), Lsn(2));
        assert_eq!(kept(&store, 1..4).await, 3);
        assert_eq!(store.cost_report(all()).await.expect("bill").lines[0].calls, 1);
        store.save_limit_snapshots(owner, vec![standing(7)]).await.expect("keep");
        assert_eq!(store.limit_snapshots(PARTITION).await.expect("look"), [standing(7)]);
        assert_eq!(told(&mut sql, "SELECT value::text FROM meta WHERE name = 'format'").await, "12");
        PostgresStore::connect(&server.url()).await.expect("connect").migrate().await.expect("again");
    });
}

/// LIM-10: an archive stores each cost once, however often it is reported, and of a limit the
/// latest state; one of the first format is migrated.
#[test]
fn lim_10_an_archive_keeps_each_cost_once() {
    run(async {
        let server = PostgresServer::start();
        let mut sql = PgConnection::connect(&server.url()).await.expect("connect");
        execute(&mut sql, ARCHIVE_1).await;
        let archive = PostgresArchive::at(&server.url()).expect("a URL");
        archive.migrate().await.expect("migrate");
        let first: Vec<Cost> = (1..40).map(|seq| cost(seq, Some(seq * MICRO))).collect();
        let more: Vec<Cost> = (20..60).map(|seq| cost(seq, Some(seq * MICRO))).collect();
        for costs in [&first, &more, &first] {
            archive.save_costs(costs.clone()).await.expect("keep");
        }
        archive.save_costs(Vec::new()).await.expect("keep nothing");
        let each: Vec<Cost> = (1..60).map(|seq| cost(seq, Some(seq * MICRO))).collect();
        for (upstream, since) in
            [(None, Time::ZERO), (Some("acme"), NOW), (Some("other"), NOW), (None, Time::MAX)]
        {
            let question = CostQuery { upstream: upstream.map(Into::into), since, most: 9 };
            let bill = archive.cost_report(question.clone()).await.expect("bill");
            assert_eq!(bill, sum_costs(each.iter(), &question), "{question:?}");
        }
        for level in [5, 9, 7] {
            archive.save_limit_snapshots(PARTITION, vec![standing(level)]).await.expect("keep");
        }
        assert_eq!(
            told(&mut sql, "SELECT level::text FROM rate_limit_buckets").await,
            "9",
            "the latest stands"
        );
        let rates = "SELECT count(*)::text FROM api_cost_tracking WHERE restore_rate = 50";
        assert_eq!(told(&mut sql, rates).await, "59");
        archive.remove_limit_snapshots(PARTITION + 1, vec!["acme/points".into()], NOW).await.expect("remove");
        let left = "SELECT count(*)::text FROM rate_limit_buckets";
        assert_eq!(told(&mut sql, left).await, "1", "that was another partition");
        archive.remove_limit_snapshots(PARTITION, vec!["acme".into()], NOW).await.expect("remove");
        assert_eq!(told(&mut sql, left).await, "1", "it is neither named nor that old");
        archive
            .remove_limit_snapshots(PARTITION, vec!["acme/points".into()], Time::ZERO)
            .await
            .expect("remove");
        assert_eq!(told(&mut sql, left).await, "0");
    });
}
