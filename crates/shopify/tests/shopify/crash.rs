//! A process that dies while its bulk operation runs: the next one adopts it.

use std::sync::Arc;

use tidegate_fixture::redis::RedisServer;
use tidegate_store::Store;
use tokio::time::Instant;

use crate::bulk::PRODUCTS;
use crate::world::{at, builder, ms, sim};

/// LIM-29, LIM-15: the lease of a dead process expires, what it had started is looked up and
/// adopted, and there are never two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lim_29_what_a_dead_process_left_is_taken_on() {
    let (server, sim) = (RedisServer::start(), sim(ms(4_000), 5).await);
    let (redis, url) = (server.url(), at(&sim, "acme"));
    let dying = {
        let (redis, url) = (redis.clone(), url.clone());
        move || {
            // A process of its own: its tasks end with it, and nothing is released.
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            let id = runtime.block_on(async {
                let store: Arc<dyn Store> = tidegate_store_redis::open(&redis).await.unwrap();
                let client = builder(&store, &url).lease_ttl(ms(600)).build().unwrap();
                let running = client.bulk().query(PRODUCTS).await.unwrap();
                let id = running.id().to_owned();
                std::mem::forget(running);
                id
            });
            runtime.shutdown_background();
            id
        }
    };
    let id = tokio::task::spawn_blocking(dying).await.unwrap();
    let store: Arc<dyn Store> = tidegate_store_redis::open(&redis).await.unwrap();
    let client = builder(&store, &url).lease_ttl(ms(600)).build().unwrap();
    let start = Instant::now();
    let running = client.bulk().query(PRODUCTS).await.unwrap();
    assert!(running.is_adopted() && running.id() == id, "{running:?} after {:?}", start.elapsed());
    running.wait().await.unwrap();
    let shop = &sim.stats().shops["acme"];
    assert_eq!((shop.bulk_started, shop.overstepped), (1, 0));
}
