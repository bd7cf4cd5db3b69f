//! The tables for people: their schema, and the migration of a directory of an older version.

use std::borrow::Cow;
use std::sync::Arc;

use rusqlite::Connection;
use tidegate_core::journal::{
    Deployment, DeploymentStage, DeploymentStep, ForeignObject, JournalLines, ObjectMapping, StepEvents,
    StepState,
};
use tidegate_core::operation::MICRO;
use tidegate_core::{Fence, OperationId, Seq, Time};
use tidegate_store::costs::{Cost, CostQuery, LimitSnapshot};
use tidegate_store::log::{Batch, Lsn};
use tidegate_store::{Costs, Journal, Log, StoreErrorKind};

use crate::sample::{NO_CHECKSUM, PARTITION, TestDir, accepts, replayed, strip_checksums};

/// What differs in format 7, and in formats 2, 3 and 4.
const FORMAT_7: &str = "ALTER TABLE rate_limit_buckets RENAME COLUMN refill_rate TO refill_per_s;
    ALTER TABLE api_cost_tracking DROP COLUMN restore_rate";
const FORMAT_4: &str = "DROP TABLE deployments; DROP TABLE deployment_steps; DROP TABLE deployment_objects;
    UPDATE meta SET value = 4 WHERE name = 'format'";
const FORMAT_3: &str = "DROP TABLE rate_limit_buckets; DROP TABLE api_cost_tracking;
    UPDATE meta SET value = 3 WHERE name = 'format'";
const FORMAT_2: &str =
    "DROP TABLE records; CREATE TABLE records (key TEXT PRIMARY KEY, fence INTEGER NOT NULL);
    UPDATE meta SET value = 2 WHERE name = 'format'";

fn cost(at: Time) -> Cost {
    Cost {
        at,
        operation: OperationId::new(at, PARTITION, Seq(7)),
        claim: Fence(3),
        nth: 0,
        limit: "acme/points".into(),
        shape: "GetOrders#1f0c9a2b".into(),
        requested: 52 * MICRO,
        actual: Some(MICRO / 2),
        restore_rate: Some(50 * MICRO),
    }
}

fn standing(at: Time) -> LimitSnapshot {
    LimitSnapshot {
        name: "acme/points".into(),
        kind: Cow::Borrowed("drip"),
        capacity: Some(2_000 * MICRO),
        refill_per_s: Some(100 * MICRO),
        level: Some(1_948 * MICRO),
        source: Cow::Borrowed("learned"),
        closed_until: None,
        updated_at: at,
    }
}

fn deployment(nth: u64) -> Deployment {
    Deployment {
        id: format!("dep_{nth}").into(),
        scope: "guild:1".into(),
        fence: nth,
        round: 1,
        stage: DeploymentStage::Running,
        request: Arc::from(&b"{}"[..]),
        note: None,
        started_at: Time::from_micros(1_780_000_000_000_000),
        updated_at: Time::from_micros(1_780_000_000_000_001),
    }
}

fn journaled_step(key: &str, state: StepState) -> DeploymentStep {
    DeploymentStep {
        kind: "role".into(),
        key: key.into(),
        nth: 3,
        action: "create".into(),
        fingerprint: "f0".into(),
        state,
        operation: Some("op_1".into()),
        foreign_id: None,
        note: Some("50013: Missing Permissions".into()),
        at: Time::from_micros(1_780_000_000_000_002),
    }
}

fn sql(place: &TestDir) -> Connection {
    Connection::open(place.file("p0.sqlite")).expect("the file opens beside the store")
}

/// LIM-10: people who open the file find costs and limits by their names, in tokens, with ids as
/// the API shows them.
#[tokio::test]
async fn lim_10_the_tables_are_there_for_people() {
    let place = TestDir::new();
    let (store, owner) = place.enter().await;
    let at = Time::from_micros(1_780_000_000_000_000);
    store.append(owner, Batch { costs: vec![cost(at)], ..Batch::default() }).await.unwrap();
    store.save_limit_snapshots(owner, vec![standing(at)]).await.unwrap();
    // A report first applies what is in the write-ahead log.
    store.cost_report(CostQuery { upstream: None, since: Time::ZERO, most: 9 }).await.unwrap();
    let sql = sql(&place);
    let spent = "SELECT operation || ' ' || upstream || ' ' || limit_name || ' ' || shape || ' ' || requested || ' ' || actual || ' ' || restore_rate
        FROM api_cost_tracking WHERE at = 1780000000000000 AND claim = 3 AND nth = 0";
    let row: String = sql.query_row(spent, [], |row| row.get(0)).unwrap();
    let id = OperationId::new(at, PARTITION, Seq(7));
    assert_eq!(row, format!("{id} acme acme/points GetOrders#1f0c9a2b 52.0 0.5 50.0"));
    let stood = "SELECT upstream || ' ' || kind || ' ' || capacity || ' ' || refill_rate || ' ' || level || ' ' || source
        FROM rate_limit_buckets WHERE name = 'acme/points' AND closed_until IS NULL AND updated_at = 1780000000000000";
    let row: String = sql.query_row(stood, [], |row| row.get(0)).unwrap();
    assert_eq!(row, "acme drip 2000.0 100.0 1948.0 learned");
    let usual = "SELECT dflt_value FROM pragma_table_info('rate_limit_buckets') WHERE name = 'refill_rate'";
    assert_eq!(sql.query_row(usual, [], |row| row.get::<_, String>(0)).unwrap(), "2.0");
}

/// OPS-17: people who open the file find the journal by the names of its tables.
#[tokio::test]
async fn ops_17_the_journal_is_there_for_people() {
    let place = TestDir::new();
    let store = place.open().unwrap();
    store.save_deployment(deployment(7)).await.unwrap();
    let (planned, step) =
        (journaled_step("desk", StepState::Planned), journaled_step("desk", StepState::Failed));
    let object = ForeignObject { id: "77".into(), place: None, fingerprint: "f0".into() };
    let mapped = vec![ObjectMapping { kind: "role".into(), key: "door".into(), object: Some(object) }];
    let lines = JournalLines { steps: vec![planned, step], mapped };
    assert!(store.write_journal("dep_7", 7, lines).await.unwrap());
    let sql = sql(&place);
    let said = "SELECT d.scope || ' ' || d.stage || ' ' || s.kind || ' ' || s.key || ' ' || s.state || ' ' || s.operation || ' ' || s.note
        FROM deployment_steps s JOIN deployments d ON d.id = s.deployment WHERE s.at = 1780000000000002";
    let row: String = sql.query_row(said, [], |row| row.get(0)).unwrap();
    assert_eq!(row, "guild:1 running role desk failed op_1 50013: Missing Permissions");
    let events = "SELECT group_concat(seq || ' ' || kind || ' ' || key || ' ' || state, ', ')
        FROM deployment_events WHERE deployment = 'dep_7' ORDER BY seq";
    let row: String = sql.query_row(events, [], |row| row.get(0)).unwrap();
    assert_eq!(row, "1 role desk planned, 2 role desk failed");
    let object = "SELECT key || ' ' || id FROM deployment_objects WHERE scope = 'guild:1' AND place IS NULL";
    assert_eq!(sql.query_row(object, [], |row| row.get::<_, String>(0)).unwrap(), "door 77");
}

/// LIM-10, OPS-17: a directory of an older format is migrated in place; its contents stay, and
/// costs and the journal are stored from then on.
#[tokio::test]
async fn lim_10_ops_17_a_folder_of_an_older_format_is_brought_up_to_date() {
    let format_4 = vec![FORMAT_7, FORMAT_4];
    let format_3 = [format_4.clone(), vec![FORMAT_3]].concat();
    let format_2 = [format_3.clone(), vec![FORMAT_2]].concat();
    for older in [vec![FORMAT_7], format_4, format_3, format_2] {
        let place = TestDir::new();
        let (store, owner) = place.enter().await;
        store.append(owner, accepts(1..4, place.now())).await.unwrap();
        drop(store);
        strip_checksums(&place);
        older.iter().for_each(|change| sql(&place).execute_batch(change).unwrap());
        for opened in 1..3 {
            let (store, owner) = place.enter().await;
            assert_eq!(replayed(&store).await.unwrap(), (vec![1, 2, 3], Lsn(opened)));
            store.append(owner, Batch { costs: vec![cost(place.now())], ..Batch::default() }).await.unwrap();
            let bill =
                store.cost_report(CostQuery { upstream: None, since: Time::ZERO, most: 9 }).await.unwrap();
            assert_eq!(bill.lines[0].calls, opened);
            store.save_limit_snapshots(owner, vec![standing(place.now())]).await.unwrap();
            assert_eq!(store.limit_snapshots(PARTITION).await.unwrap(), [standing(place.now())]);
            assert!(store.save_deployment(deployment(opened)).await.unwrap());
            assert_eq!(store.deployments(None, 9).await.unwrap().len() as u64, opened);
        }
    }
}

/// OPS-17: in a directory of format 8 steps have no events. They stay as they are, and events are
/// written from then on.
#[tokio::test]
async fn ops_17_a_folder_of_format_8_gets_events() {
    let place = TestDir::new();
    let store = place.open().unwrap();
    assert!(store.save_deployment(deployment(7)).await.unwrap());
    let lines = |state| JournalLines { steps: vec![journaled_step("desk", state)], mapped: Vec::new() };
    assert!(store.write_journal("dep_7", 7, lines(StepState::Planned)).await.unwrap());
    drop(store);
    sql(&place).execute_batch("DROP TABLE deployment_events; DROP TABLE audit_log").unwrap();
    let format_8 = "UPDATE meta SET value = 8, sum = ?1 WHERE name = 'format'";
    sql(&place).execute(format_8, [NO_CHECKSUM]).unwrap();
    let store = place.open().unwrap();
    assert_eq!(store.deployment_steps("dep_7").await.unwrap(), lines(StepState::Planned).steps);
    assert_eq!(store.deployment_events("dep_7").await.unwrap(), StepEvents::default());
    assert!(store.write_journal("dep_7", 7, lines(StepState::Applied)).await.unwrap());
    drop(store);
    let store = place.open().unwrap();
    let events = lines(StepState::Applied).steps;
    assert_eq!(store.deployment_events("dep_7").await.unwrap(), StepEvents { dropped: 0, events });
    drop(store);
    sql(&place).execute("UPDATE deployment_events SET state = 'failed'", []).unwrap();
    let error = place.open().unwrap().deployment_events("dep_7").await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreadable, "a changed event is damage: {error}");
}
