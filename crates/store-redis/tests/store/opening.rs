//! Opening: which servers are accepted, and what is reported of them.

use tidegate_fixture::redis::RedisServer;
use tidegate_store::{Log, SharedState, StoreErrorKind, Upkeep};
use tidegate_store_redis::RedisStore;

use crate::sample::{PARTITION, RawClient, TTL, TestServer, accepts, kind};

/// OPS-8: a server that evicts keys when it is full is rejected.
#[tokio::test]
async fn ops_8_a_server_that_evicts_is_refused() {
    let server = RedisServer::start_with(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]);
    let error = RedisStore::open(&server.url()).await.err().expect("it evicts");
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
    assert!(error.to_string().contains("allkeys-lru at 104857600 bytes"), "{error}");
    let mut eye = RawClient::at(&server.url()).await;
    eye.ask::<String>(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]).await;
    assert!(RedisStore::open(&server.url()).await.is_ok());
}

/// A password is in no error and in no description, right or wrong.
#[tokio::test]
async fn a_password_is_never_told() {
    let mut server = RedisServer::start_with(&["--requirepass", "s3cr3t-right"]);
    let at = |password: &str| format!("redis://:{password}@127.0.0.1:{}/3", server.port());
    let (right, wrong) = (at("s3cr3t-right"), at("s3cr3t-wrong"));
    let store = RedisStore::open(&right).await.unwrap();
    assert_eq!(store.describe(), format!("redis://127.0.0.1:{}/3", server.port()));
    let mut said = vec![RedisStore::open(&wrong).await.err().expect("a wrong password")];
    assert_eq!(said[0].kind(), StoreErrorKind::Unavailable);
    server.kill();
    said.extend(store.health().await.err());
    said.extend(store.acquire_partition(PARTITION, "test", TTL).await.err());
    said.extend(store.acquire_lease("bulk", TTL).await.err());
    said.extend(RedisStore::open(&right).await.err());
    assert_eq!(said.len(), 5);
    for error in said {
        assert!(!format!("{error} {error:?}").contains("s3cr3t"), "{error:?}");
    }
}

/// A server reports its version and how it persists its data; where reading settings is forbidden,
/// its version only.
#[tokio::test]
async fn a_server_tells_its_version_and_settings() {
    let server = RedisServer::start_with(&["--appendfsync", "always"]);
    let store = RedisStore::open(&server.url()).await.unwrap();
    let told = store.server_settings().await.unwrap();
    let value = |name: &str| told.iter().find(|(found, _)| found == name).map(|(_, value)| &**value);
    assert_eq!((value("appendonly"), value("appendfsync")), (Some("yes"), Some("always")), "{told:?}");
    let mut eye = RawClient::at(&server.url()).await;
    eye.ask::<String>(&["ACL", "SETUSER", "default", "-config"]).await;
    let version: Vec<_> = told.iter().filter(|(name, _)| name.ends_with("_version")).cloned().collect();
    assert!(!version.is_empty());
    assert_eq!(store.server_settings().await.unwrap(), version);
}

/// Data of a newer program is not touched; prefixes are separate.
#[tokio::test]
async fn a_newer_format_is_refused_and_prefixes_are_apart() {
    let place = TestServer::new();
    let (store, owner) = place.enter().await;
    store.append(owner, accepts(1..4, place.now())).await.unwrap();
    let other = RedisStore::open(&format!("{}?prefix=other", place.server.url())).await.unwrap();
    assert_eq!(other.stats().await.unwrap().operations, 0);
    let owner_there = other.acquire_partition(PARTITION, "other", TTL).await.unwrap();
    let mut eye = place.raw_client().await;
    eye.ask::<String>(&["SET", "other:format", "4"]).await;
    assert_eq!(kind(other.migrate().await), StoreErrorKind::Unreadable);
    assert_eq!(kind(other.check_layout().await), StoreErrorKind::Unreadable);
    // An existing owner notices too.
    assert_eq!(kind(other.renew(owner_there, TTL).await), StoreErrorKind::Unreadable);
    assert_eq!(kind(other.health().await), StoreErrorKind::Unreadable);
    assert_eq!(
        kind(RedisStore::open(&format!("{}?prefix=other", place.server.url())).await),
        StoreErrorKind::Unreadable
    );
    assert!(store.migrate().await.is_ok());
}

/// OPS-8: with `wait=1` an append is acknowledged when a replica has it, and is unsure when none
/// has it in time. A replica itself accepts no writes.
#[tokio::test]
async fn ops_8_an_append_waits_for_its_replica() {
    let master = RedisServer::start();
    let port = master.port().to_string();
    let mut replica =
        RedisServer::start_with(&["--replicaof", "127.0.0.1", &port, "--repl-diskless-sync-delay", "0"]);
    let mut eye = RawClient::at(&replica.url()).await;
    let mut is_linked = String::new();
    while !is_linked.contains("master_link_status:up") {
        is_linked = eye.ask(&["INFO", "replication"]).await;
    }
    let store = RedisStore::open(&format!("{}?wait=1", master.url())).await.unwrap();
    let owner = store.acquire_partition(PARTITION, "test", TTL).await.unwrap();
    let now = tidegate_core::Time::from_millis(1);
    store.append(owner, accepts(1..4, now)).await.unwrap();
    assert_eq!(eye.ask::<String>(&["HGET", "tg:{0}:head", "last"]).await, "1");
    let second = RedisStore::open(&replica.url()).await;
    assert_eq!(kind(second), StoreErrorKind::Unavailable, "a replica takes no writes");
    replica.kill();
    let error = store.append(owner, accepts(4..5, now)).await.expect_err("nobody else has it");
    assert_eq!(error.kind(), StoreErrorKind::Unsure);
    assert!(error.to_string().contains("on 0 of 1 replicas"), "{error}");
}

/// A server without TLS is unavailable over `rediss`; nothing panics for lack of a cryptography
/// provider.
#[tokio::test]
async fn a_server_without_tls_is_out_of_reach_of_rediss() {
    let server = RedisServer::start();
    for url in [
        format!("rediss://127.0.0.1:{}", server.port()),
        format!("rediss+cluster://127.0.0.1:{}", server.port()),
    ] {
        assert_eq!(kind(RedisStore::open(&url).await), StoreErrorKind::Unavailable);
    }
}
