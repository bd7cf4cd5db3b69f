//! The suites that every store must pass, on a server of their own.

use std::sync::Arc;

use tidegate_contract::{Backend, HandClock};
use tidegate_fixture::postgres::Postgres as Server;
use tidegate_store::{Answer, Store, Upkeep};
use tidegate_store_postgres::{Options, Postgres};

/// A server that goes by a clock moved by hand.
struct OnServer {
    clock: Arc<HandClock>,
    server: Server,
}

impl OnServer {
    fn new() -> Self {
        Self { clock: HandClock::today(), server: Server::start() }
    }

    async fn store(&self) -> tidegate_store::Result<Arc<dyn Store>> {
        let options = Options { clock: Some(Arc::clone(&self.clock) as _) };
        let store = Postgres::connect_with(&self.server.url(), options).await?;
        store.migrate().await?;
        Ok(Arc::new(store))
    }
}

impl Backend for OnServer {
    fn open(&self) -> Answer<'_, Arc<dyn Store>> {
        Box::pin(self.store())
    }

    /// What another connection sees is what is there.
    fn crash(&self) -> Answer<'_, Arc<dyn Store>> {
        Box::pin(self.store())
    }

    fn clock(&self) -> Arc<HandClock> {
        Arc::clone(&self.clock)
    }

    fn beside(&self, _: &Arc<dyn Store>) -> Answer<'_, Arc<dyn Store>> {
        Box::pin(self.store())
    }
}

tidegate_contract::store_suites!(OnServer::new());
