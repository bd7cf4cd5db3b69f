//! The journal of deployments in SQL: for people, in a store of an older version, and without
//! deadlocks.

use std::sync::Arc;

use sqlx::Row;
use sqlx::postgres::PgConnection;
use tidegate_core::Time;
use tidegate_core::journal::{
    Deployment, DeploymentStage, DeploymentStep, ForeignObject, JournalLines, ObjectMapping, StepEvents,
    StepState,
};
use tidegate_fixture::postgres::PostgresServer;
use tidegate_store::{Journal, StoreErrorKind, Upkeep};

use crate::sample::{FORMAT_7, behind, execute, run, store};

/// Removes what format 3 did not have yet.
const FORMAT_3: &str =
    "ALTER TABLE nodes DROP COLUMN leaving, DROP COLUMN unreadable, DROP COLUMN placement_hash;
    DROP FUNCTION append_with_attempts;
    DROP TABLE attempts;
    DROP FUNCTION keep_deployment, write_journal, hold_journal;
    DROP TABLE deployments, deployment_steps, deployment_objects;
    UPDATE meta SET value = 3 WHERE name = 'format'";
/// Removes the audit log, and the journal of format 10; that of format 4, which format 9 still had,
/// comes in its place.
const NO_JOURNAL: &str = "DROP FUNCTION keep_deployment, write_journal, hold_journal, add_audit_entry;
    DROP TABLE deployments, deployment_steps, deployment_objects, deployment_events, audit_log;
    UPDATE meta SET value = 9 WHERE name = 'format'";
const JOURNAL_OF_FORMAT_9: &str = include_str!("../../src/sql/journal.sql");
/// As in `docs/postgres.md`.
const FAILED: &str = "SELECT concat_ws(' ', d.scope, s.kind, s.key, s.action, s.note)
    FROM tidegate.deployment_steps s JOIN tidegate.deployments d ON d.id = s.deployment
    WHERE s.state = 'failed' ORDER BY d.started_at DESC, s.nth";

fn deployment(id: &str) -> Deployment {
    Deployment {
        id: id.into(),
        scope: "guild:1".into(),
        fence: 1,
        round: 1,
        stage: DeploymentStage::Running,
        request: Arc::from(&b"{}"[..]),
        note: None,
        started_at: Time::from_micros(1_780_000_000_000_000),
        updated_at: Time::from_micros(1_780_000_000_000_001),
    }
}

fn lines() -> JournalLines {
    let step = DeploymentStep {
        kind: "role".into(),
        key: "desk".into(),
        nth: 3,
        action: "create".into(),
        fingerprint: "f0".into(),
        state: StepState::Failed,
        operation: None,
        foreign_id: None,
        note: Some("50013: Missing Permissions".into()),
        at: Time::from_micros(1_780_000_000_000_002),
    };
    let object = ForeignObject { id: "77".into(), place: None, fingerprint: "f0".into() };
    let mapped = ObjectMapping { kind: "role".into(), key: "door".into(), object: Some(object) };
    JournalLines { steps: vec![step], mapped: vec![mapped] }
}

async fn told(sql: &mut PgConnection, question: &'static str) -> String {
    sqlx::query(question).fetch_one(sql).await.expect(question).get(0)
}

/// OPS-17: queries in SQL find the outcome of each step.
#[test]
fn ops_17_the_journal_is_there_for_people() {
    run(async {
        let server = PostgresServer::start();
        let store = store(&server).await;
        assert!(store.save_deployment(deployment("dep_1")).await.expect("keep"));
        assert!(store.write_journal("dep_1", 1, lines()).await.expect("write"));
        let mut sql = behind(&server).await;
        assert_eq!(told(&mut sql, FAILED).await, "guild:1 role desk create 50013: Missing Permissions");
        let objects = "SELECT concat_ws(' ', scope, kind, key, id, fingerprint) FROM deployment_objects";
        assert_eq!(told(&mut sql, objects).await, "guild:1 role door 77 f0");
    });
}

/// OPS-17: a store of format 3 is migrated in place. Until then a write reports what is missing,
/// and changes nothing.
#[test]
fn ops_17_a_store_of_format_3_gets_a_journal() {
    run(async {
        let server = PostgresServer::start();
        let store = store(&server).await;
        let mut sql = behind(&server).await;
        execute(&mut sql, FORMAT_7).await;
        execute(&mut sql, FORMAT_3).await;
        let error = store.save_deployment(deployment("dep_1")).await.expect_err("there is no journal");
        assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{error}");
        assert!(error.to_string().contains("migrate it"), "{error}");
        store.migrate().await.expect("migrate");
        assert!(store.save_deployment(deployment("dep_1")).await.expect("keep"));
        assert!(store.write_journal("dep_1", 1, lines()).await.expect("write"));
        assert_eq!(store.deployment_steps("dep_1").await.expect("look"), lines().steps);
        assert_eq!(told(&mut sql, "SELECT value::text FROM meta WHERE name = 'format'").await, "12");
    });
}

/// OPS-17: a store of format 9 is migrated in place: its steps stay, and have events from then on,
/// also those that a node of the previous version writes until it notices.
#[test]
fn ops_17_a_store_of_format_9_gets_events() {
    run(async {
        let server = PostgresServer::start();
        let store = store(&server).await;
        let mut sql = behind(&server).await;
        execute(&mut sql, NO_JOURNAL).await;
        execute(&mut sql, JOURNAL_OF_FORMAT_9).await;
        assert!(store.save_deployment(deployment("dep_1")).await.expect("keep"));
        assert!(store.write_journal("dep_1", 1, lines()).await.expect("write as before"));
        store.migrate().await.expect("migrate");
        assert_eq!(store.deployment_steps("dep_1").await.expect("look"), lines().steps);
        assert_eq!(store.deployment_events("dep_1").await.expect("look"), StepEvents::default());
        assert!(store.write_journal("dep_1", 1, lines()).await.expect("write"));
        let events = lines().steps;
        assert_eq!(store.deployment_events("dep_1").await.expect("look"), StepEvents { dropped: 0, events });
        let event = "SELECT concat_ws(' ', deployment, seq, kind, key, state, note) FROM deployment_events";
        assert_eq!(told(&mut sql, event).await, "dep_1 1 role desk failed 50013: Missing Permissions");
        assert_eq!(told(&mut sql, "SELECT value::text FROM meta WHERE name = 'format'").await, "12");
    });
}

/// OPS-17: another session that locks the journal delays a write for a bounded time, and a read not
/// at all.
#[test]
fn ops_17_a_held_journal_is_waited_for_in_bounds() {
    run(async {
        let server = PostgresServer::start();
        let store = store(&server).await;
        assert!(store.save_deployment(deployment("dep_1")).await.expect("keep"));
        let mut sql = behind(&server).await;
        execute(&mut sql, "BEGIN; SELECT hold_journal()").await;
        let error = store.write_journal("dep_1", 1, lines()).await.expect_err("it is held");
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        assert!(store.deployment_steps("dep_1").await.expect("look").is_empty());
        execute(&mut sql, "COMMIT").await;
        assert!(store.write_journal("dep_1", 1, lines()).await.expect("write"));
    });
}
