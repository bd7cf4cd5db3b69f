//! A server with a store on it, batches to append, and a direct connection.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue, cmd};
use tidegate_contract::ManualClock;
use tidegate_core::id::Partition;
use tidegate_core::{EndState, Fact, Seq, Time};
use tidegate_fixture::redis::RedisServer;
use tidegate_store::log::{Batch, Lsn, Ownership, StoredOperation, StoredResult};
use tidegate_store::{Clock, Error, Log, Result, StoreErrorKind};
use tidegate_store_redis::RedisStore;

/// The partition that the tests use.
pub(crate) const PARTITION: Partition = 0;
/// How long an owner holds it.
pub(crate) const TTL: Duration = Duration::from_secs(10);

/// A server and a clock.
pub(crate) struct TestServer {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) server: RedisServer,
}

impl TestServer {
    pub(crate) fn new() -> Self {
        Self::of(RedisServer::start())
    }

    pub(crate) fn of(server: RedisServer) -> Self {
        Self { clock: ManualClock::today(), server }
    }

    pub(crate) async fn open(&self) -> RedisStore {
        RedisStore::open_with_clock(&self.server.url(), Arc::clone(&self.clock) as _)
            .await
            .expect("the store opens")
    }

    /// Opens a store and acquires the partition.
    pub(crate) async fn enter(&self) -> (RedisStore, Ownership) {
        let store = self.open().await;
        let owner = store.acquire_partition(PARTITION, "test", TTL).await.expect("the partition is free");
        (store, owner)
    }

    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Opens a direct connection.
    pub(crate) async fn raw_client(&self) -> RawClient {
        RawClient::at(&self.server.url()).await
    }
}

/// A direct connection to the server.
pub(crate) struct RawClient(MultiplexedConnection);

impl RawClient {
    pub(crate) async fn at(url: &str) -> Self {
        let client = redis::Client::open(url).expect("a URL");
        Self(client.get_multiplexed_async_connection().await.expect("a connection"))
    }

    pub(crate) async fn ask<T: FromRedisValue>(&mut self, words: &[&str]) -> T {
        command(words).query_async(&mut self.0).await.expect("an answer")
    }

    /// The matching keys, sorted.
    pub(crate) async fn keys(&mut self, pattern: &str) -> Vec<String> {
        let mut keys: Vec<String> = self.ask(&["KEYS", pattern]).await;
        keys.sort_unstable();
        keys
    }
}

fn command(words: &[&str]) -> Cmd {
    let mut command = cmd(words[0]);
    command.arg(&words[1..]);
    command
}

/// A batch that accepts these seqs, with a fact for each.
pub(crate) fn accepts(seqs: std::ops::Range<u64>, at: Time) -> Batch {
    Batch {
        facts: seqs.clone().map(|seq| Fact::CancelRequested { seq: Seq(seq) }).collect(),
        operations: seqs.map(|seq| operation(seq, at, 512).into()).collect(),
        ..Batch::default()
    }
}

/// An operation with a payload of this length.
pub(crate) fn operation(seq: u64, at: Time, len: usize) -> StoredOperation {
    StoredOperation {
        seq: Seq(seq),
        at,
        group: format!("group {}", seq % 7).into(),
        kind: "http".into(),
        key: None,
        envelope: Bytes::from_static(b"envelope"),
        payload: vec![b'x'; len].into(),
    }
}

/// A result of an operation that has ended.
pub(crate) fn ended(seq: u64, at: Time) -> StoredResult {
    let body = Bytes::from_static(b"body");
    StoredResult { seq: Seq(seq), at, state: EndState::Succeeded, attempt: 1, fault: None, body }
}

/// The seqs of the replayed facts, and the last append.
pub(crate) async fn replayed(store: &dyn Log) -> (Vec<u64>, Lsn) {
    let mut seqs = Vec::new();
    let mut replay = |facts: Vec<Fact>| {
        seqs.extend(facts.iter().map(|fact| match fact {
            Fact::CancelRequested { seq } => seq.0,
            other => panic!("not a fact of this test: {other:?}"),
        }));
    };
    let last = store.load(PARTITION, &mut replay).await.expect("the partition is readable");
    (seqs, last)
}

/// The kind of an error.
#[track_caller]
pub(crate) fn kind<T>(answer: Result<T>) -> StoreErrorKind {
    answer.err().as_ref().map(Error::kind).expect("it should have failed")
}
