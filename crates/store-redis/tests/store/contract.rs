//! The suites that every store must pass, on one server and on a cluster of three.

use std::sync::Arc;

use tidegate_contract::{Backend, HandClock};
use tidegate_fixture::redis::{Redis as Server, RedisCluster};
use tidegate_store::{Answer, Store};
use tidegate_store_redis::Redis;

/// A server, or a cluster, and the clock that stores on it go by.
struct OnServer<S> {
    clock: Arc<HandClock>,
    url: String,
    _server: S,
}

impl OnServer<Server> {
    fn single() -> Self {
        let server = Server::start();
        Self { clock: HandClock::today(), url: server.url(), _server: server }
    }
}

impl OnServer<RedisCluster> {
    fn cluster() -> Self {
        let server = RedisCluster::start();
        Self { clock: HandClock::today(), url: server.url(), _server: server }
    }
}

impl<S: Send + Sync> Backend for OnServer<S> {
    fn open(&self) -> Answer<'_, Arc<dyn Store>> {
        Box::pin(async {
            let store = Redis::open_with_clock(&self.url, Arc::clone(&self.clock) as _).await?;
            Ok(Arc::new(store) as _)
        })
    }

    fn crash(&self) -> Answer<'_, Arc<dyn Store>> {
        self.open()
    }

    fn clock(&self) -> Arc<HandClock> {
        Arc::clone(&self.clock)
    }

    fn beside(&self, _first: &Arc<dyn Store>) -> Answer<'_, Arc<dyn Store>> {
        self.open()
    }
}

mod single {
    tidegate_contract::store_suites!(super::OnServer::single());
}

mod cluster {
    tidegate_contract::store_suites!(super::OnServer::cluster());
}
