//! The layer on every store, several processes' worth of it at once, in real time.

#[cfg(test)]
mod cases;
#[cfg(test)]
mod service;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate_fixture::postgres::PostgresServer;
    use tidegate_fixture::redis::RedisServer;
    use tidegate_store::{SteadyClock, Store};
    use tidegate_store_embedded::{EmbeddedStore, MemoryStore, Options};

    use crate::cases;

    /// The connections to one store, as four processes have them; an embedded store has one
    /// process.
    const PROCESSES: usize = 4;

    fn same(store: &Arc<dyn Store>) -> Vec<Arc<dyn Store>> {
        (0..PROCESSES).map(|_| Arc::clone(store)).collect()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn in_memory() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(SteadyClock::new())));
        cases::all(&same(&store)).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn embedded() {
        let dir = tempfile::tempdir().unwrap();
        {
            let store: Arc<dyn Store> =
                Arc::new(EmbeddedStore::open(dir.path(), Options::default()).unwrap());
            cases::all(&same(&store)).await;
            let mut waited = 0;
            while Arc::strong_count(&store) > 1 && waited < 1_000 {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                waited += 1;
            }
        }
        let again: Arc<dyn Store> = Arc::new(EmbeddedStore::open(dir.path(), Options::default()).unwrap());
        cases::answers_outlive_the_process(&again).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn on_redis() {
        let server = RedisServer::start();
        let mut stores = Vec::new();
        for _ in 0..PROCESSES {
            stores.push(tidegate_store_redis::open(&server.url()).await.unwrap());
        }
        cases::all(&stores).await;
        cases::answers_outlive_the_process(&stores[1]).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn on_postgres() {
        let server = PostgresServer::start();
        let mut stores: Vec<Arc<dyn Store>> = Vec::new();
        for _ in 0..PROCESSES {
            stores.push(Arc::new(
                tidegate_store_postgres::PostgresStore::connect(&server.url()).await.unwrap(),
            ));
        }
        stores[0].migrate().await.unwrap();
        cases::all(&stores).await;
        cases::answers_outlive_the_process(&stores[1]).await;
    }
}
