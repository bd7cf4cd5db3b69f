//! The suites that every store must pass, on a server of their own.

use std::sync::Arc;

use tidegate_contract::{Backend, ManualClock};
use tidegate_fixture::postgres::PostgresServer;
use tidegate_store::{Store, StoreFuture, Upkeep};
use tidegate_store_postgres::{Options, PostgresStore};

/// A server with a clock that is moved by hand.
struct PostgresBackend {
    clock: Arc<ManualClock>,
    server: PostgresServer,
}

impl PostgresBackend {
    fn new() -> Self {
        Self { clock: ManualClock::today(), server: PostgresServer::start() }
    }

    async fn store(&self) -> tidegate_store::Result<Arc<dyn Store>> {
        let options = Options::default().with_clock(Arc::clone(&self.clock) as _);
        let store = PostgresStore::connect_with(&self.server.url(), options).await?;
        store.migrate().await?;
        Ok(Arc::new(store))
    }
}

impl Backend for PostgresBackend {
    fn open(&self) -> StoreFuture<'_, Arc<dyn Store>> {
        Box::pin(self.store())
    }

    /// Another connection sees what is durable.
    fn crash_image(&self) -> StoreFuture<'_, Arc<dyn Store>> {
        Box::pin(self.store())
    }

    fn clock(&self) -> Arc<ManualClock> {
        Arc::clone(&self.clock)
    }

    fn open_second(&self, _: &Arc<dyn Store>) -> StoreFuture<'_, Arc<dyn Store>> {
        Box::pin(self.store())
    }
}

tidegate_contract::store_suites!(PostgresBackend::new());
