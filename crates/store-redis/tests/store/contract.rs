//! The suites that every store must pass, on one server and on a cluster of three.

use std::sync::Arc;

use tidegate_contract::{Backend, ManualClock};
use tidegate_fixture::redis::{RedisCluster, RedisServer as Server};
use tidegate_store::{Store, StoreFuture};
use tidegate_store_redis::RedisStore;

/// A server or a cluster, and the clock of its stores.
struct RedisBackend<S> {
    clock: Arc<ManualClock>,
    url: String,
    _server: S,
}

impl RedisBackend<Server> {
    fn single() -> Self {
        let server = Server::start();
        Self { clock: ManualClock::today(), url: server.url(), _server: server }
    }
}

impl RedisBackend<RedisCluster> {
    fn cluster() -> Self {
        let server = RedisCluster::start();
        Self { clock: ManualClock::today(), url: server.url(), _server: server }
    }
}

impl<S: Send + Sync> Backend for RedisBackend<S> {
    fn open(&self) -> StoreFuture<'_, Arc<dyn Store>> {
        Box::pin(async {
            let store = RedisStore::open_with_clock(&self.url, Arc::clone(&self.clock) as _).await?;
            Ok(Arc::new(store) as _)
        })
    }

    fn crash_image(&self) -> StoreFuture<'_, Arc<dyn Store>> {
        self.open()
    }

    fn clock(&self) -> Arc<ManualClock> {
        Arc::clone(&self.clock)
    }

    fn open_second(&self, _first: &Arc<dyn Store>) -> StoreFuture<'_, Arc<dyn Store>> {
        self.open()
    }
}

mod single {
    tidegate_contract::store_suites!(super::RedisBackend::single());
}

mod cluster {
    tidegate_contract::store_suites!(super::RedisBackend::cluster());
}
