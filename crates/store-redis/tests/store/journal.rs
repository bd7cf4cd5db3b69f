//! The journal of deployments as stored in Redis: what people see, what is removed, and what
//! happens with a full server or foreign data.

use std::sync::Arc;

use tidegate_core::Time;
use tidegate_core::bounds::DEPLOYMENTS_KEPT;
use tidegate_core::journal::{
    Deployment, DeploymentStage, DeploymentStep, ForeignObject, JournalLines, ObjectMapping, StepEvents,
    StepState,
};
use tidegate_store::{Journal, StoreErrorKind};
use tidegate_store_redis::RedisStore;

use crate::sample::{TestServer, kind};

fn deployment(id: &str, stage: DeploymentStage) -> Deployment {
    Deployment {
        id: id.into(),
        scope: "guild:1".into(),
        fence: 3,
        round: 2,
        stage,
        request: Arc::from(&b"{}"[..]),
        note: None,
        started_at: Time::from_micros(1_780_000_000_000_000),
        updated_at: Time::from_micros(1_780_000_000_000_001),
    }
}

fn lines(note: &str) -> JournalLines {
    let step = DeploymentStep {
        kind: "role".into(),
        key: "desk".into(),
        nth: 3,
        action: "create".into(),
        fingerprint: "f0".into(),
        state: StepState::Failed,
        operation: None,
        foreign_id: None,
        note: Some(note.into()),
        at: Time::from_micros(1_780_000_000_000_002),
    };
    let object = ForeignObject { id: "77".into(), place: None, fingerprint: "f0".into() };
    let mapped = ObjectMapping { kind: "role".into(), key: "door".into(), object: Some(object) };
    JournalLines { steps: vec![step], mapped: vec![mapped] }
}

/// OPS-17: the journal is stored as `docs/redis-keys.md` says, under one tag.
#[tokio::test]
async fn ops_17_the_journal_is_there_for_people() {
    let place = TestServer::new();
    let store = place.open().await;
    assert!(store.save_deployment(deployment("dep_1", DeploymentStage::Running)).await.unwrap());
    assert!(store.write_journal("dep_1", 3, lines("50013")).await.unwrap());
    let mut eye = place.raw_client().await;
    let keys = ["tg:{journal}:all", "tg:{journal}:d:dep_1", "tg:{journal}:in:guild:1"];
    let more = ["tg:{journal}:o:guild:1", "tg:{journal}:s:dep_1"];
    let all = ["tg:{journal}:all", "tg:{journal}:d:dep_1", "tg:{journal}:e:dep_1", keys[2], more[0], more[1]];
    assert_eq!(eye.keys("tg:{journal}:*").await, all);
    assert_eq!(eye.ask::<String>(&["HGET", keys[1], "stage"]).await, "running");
    let line: String = eye.ask(&["HGET", more[1], r#"["role","desk"]"#]).await;
    assert_eq!(
        line,
        r#"{"kind":"role","key":"desk","nth":3,"action":"create","fingerprint":"f0","state":"failed","note":"50013","at":1780000000000002}"#
    );
    assert_eq!(eye.ask::<Vec<String>>(&["LRANGE", all[2], "0", "-1"]).await, [line]);
    assert_eq!(eye.ask::<String>(&["HGET", keys[1], "events"]).await, "1");
    let object: String = eye.ask(&["HGET", more[0], r#"["role","door"]"#]).await;
    assert_eq!(object, r#"{"kind":"role","key":"door","id":"77","fingerprint":"f0"}"#);
}

/// OPS-17: a removed deployment leaves no key behind, and none is removed while it runs.
#[tokio::test]
async fn ops_17_old_deployments_leave_nothing_behind() {
    let place = TestServer::new();
    let store = place.open().await;
    for n in 0..DEPLOYMENTS_KEPT + 20 {
        let id = format!("dep_{n:04}");
        let stage = if n == 5 { DeploymentStage::Running } else { DeploymentStage::Done };
        assert!(store.save_deployment(deployment(&id, stage)).await.unwrap());
        assert!(store.write_journal(&id, 3, lines("x")).await.unwrap());
    }
    let mut eye = place.raw_client().await;
    for pattern in ["tg:{journal}:d:*", "tg:{journal}:s:*", "tg:{journal}:e:*"] {
        assert_eq!(eye.keys(pattern).await.len(), DEPLOYMENTS_KEPT + 1, "{pattern}");
    }
    for index in ["tg:{journal}:all", "tg:{journal}:in:guild:1"] {
        assert_eq!(eye.ask::<usize>(&["ZCARD", index]).await, DEPLOYMENTS_KEPT + 1, "{index}");
    }
    // Longer than one page.
    let listed = store.deployments(None, usize::MAX).await.unwrap();
    assert_eq!(listed.len(), DEPLOYMENTS_KEPT + 1);
    assert!(listed.windows(2).all(|pair| pair[0].id > pair[1].id), "the newest first");
    assert_eq!(listed.last().map(|last| &*last.id), Some("dep_0005"), "what runs stays");
}

/// OPS-17: a full server rejects lines, and stores nothing of them.
#[tokio::test]
async fn ops_17_a_full_server_takes_no_half_of_the_journal() {
    let place = TestServer::new();
    let store = place.open().await;
    assert!(store.save_deployment(deployment("dep_1", DeploymentStage::Running)).await.unwrap());
    assert!(store.write_journal("dep_1", 3, lines("before")).await.unwrap());
    let mut eye = place.raw_client().await;
    eye.ask::<String>(&["CONFIG", "SET", "maxmemory", "1mb"]).await;
    assert_eq!(kind(store.write_journal("dep_1", 3, lines("after")).await), StoreErrorKind::Unavailable);
    let object = ObjectMapping { kind: "role".into(), key: "door".into(), object: None };
    let removal = JournalLines { steps: Vec::new(), mapped: vec![object] };
    assert_eq!(kind(store.write_journal("dep_1", 3, removal).await), StoreErrorKind::Unavailable);
    let done = Deployment { note: Some("after".into()), ..deployment("dep_1", DeploymentStage::Done) };
    assert_eq!(kind(store.save_deployment(done).await), StoreErrorKind::Unavailable);
    eye.ask::<String>(&["CONFIG", "SET", "maxmemory", "0"]).await;
    assert_eq!(store.deployment_steps("dep_1").await.unwrap(), lines("before").steps);
    assert_eq!(store.deployment_events("dep_1").await.unwrap().events, lines("before").steps);
    assert_eq!(store.mapped_objects("guild:1").await.unwrap(), lines("before").mapped);
    assert_eq!(store.deployment("dep_1").await.unwrap(), Some(deployment("dep_1", DeploymentStage::Running)));
}

/// OPS-17: with `wait=1` a line that no replica has in time is not acknowledged.
#[tokio::test]
async fn ops_17_a_line_waits_for_its_replica() {
    let place = TestServer::new();
    let store = RedisStore::open(&format!("{}?wait=1", place.server.url())).await.unwrap();
    let error = store
        .save_deployment(deployment("dep_1", DeploymentStage::Running))
        .await
        .expect_err("nobody has it");
    assert_eq!(error.kind(), StoreErrorKind::Unsure);
    assert!(error.to_string().contains("the journal of deployment dep_1 is on 0 of 1 replicas"), "{error}");
    let late = Deployment { fence: 2, ..deployment("dep_1", DeploymentStage::Done) };
    assert!(!store.save_deployment(late).await.unwrap(), "a refusal has nothing to wait for");
}

/// OPS-17: a deployment that an older version wrote has steps and no events; from then on it has.
#[tokio::test]
async fn ops_17_a_deployment_of_an_older_version_gets_events() {
    let place = TestServer::new();
    let store = place.open().await;
    assert!(store.save_deployment(deployment("dep_1", DeploymentStage::Running)).await.unwrap());
    assert!(store.write_journal("dep_1", 3, lines("older")).await.unwrap());
    let mut eye = place.raw_client().await;
    eye.ask::<i64>(&["UNLINK", "tg:{journal}:e:dep_1"]).await;
    eye.ask::<i64>(&["HDEL", "tg:{journal}:d:dep_1", "events", "write"]).await;
    assert_eq!(store.deployment_events("dep_1").await.unwrap(), StepEvents::default());
    assert!(store.write_journal("dep_1", 3, lines("newer")).await.unwrap());
    let events = lines("newer").steps;
    assert_eq!(store.deployment_events("dep_1").await.unwrap(), StepEvents { dropped: 0, events });
}

/// Data that this program did not write is reported, not guessed at.
#[tokio::test]
async fn a_strange_line_of_the_journal_is_unreadable() {
    let place = TestServer::new();
    let store = place.open().await;
    assert!(store.save_deployment(deployment("dep_1", DeploymentStage::Running)).await.unwrap());
    assert!(store.write_journal("dep_1", 3, lines("x")).await.unwrap());
    let mut eye = place.raw_client().await;
    eye.ask::<i64>(&["HSET", "tg:{journal}:s:dep_1", "x", "{}"]).await;
    eye.ask::<i64>(&["RPUSH", "tg:{journal}:e:dep_1", "{}"]).await;
    eye.ask::<i64>(&["HSET", "tg:{journal}:d:dep_1", "stage", "sleeping"]).await;
    assert_eq!(kind(store.deployment_events("dep_1").await), StoreErrorKind::Unreadable);
    assert_eq!(kind(store.deployment_steps("dep_1").await), StoreErrorKind::Unreadable);
    assert_eq!(kind(store.deployment("dep_1").await), StoreErrorKind::Unreadable);
    assert_eq!(kind(store.deployments(None, 9).await), StoreErrorKind::Unreadable);
}
