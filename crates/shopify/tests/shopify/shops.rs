//! Bulk operations of one shop and of two, on a real Redis: through the client's lease, from the
//! handles of several processes.

use std::sync::Arc;

use tidegate_fixture::redis::RedisServer;
use tidegate_store::Store;

use crate::bulk::PRODUCTS;
use crate::world::{at, builder_for, ms, sim};

const ORDERS: &str = "{ orders { edges { node { id } } } }";

async fn stores(server: &RedisServer) -> [Arc<dyn Store>; 2] {
    let url = server.url();
    let open = || tidegate_store_redis::open(&url);
    [open().await.unwrap(), open().await.unwrap()]
}

/// LIM-21, LIM-3: two bulk jobs of one shop from two processes: the second waits and then runs, and
/// Shopify never has to refuse one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lim_21_the_second_of_one_shop_waits_and_then_runs() {
    let (server, sim) = (RedisServer::start(), sim(ms(700), 5).await);
    let stores = stores(&server).await;
    let run = async |store: &Arc<dyn Store>, query: &str| {
        let client = builder_for("acme", store, &at(&sim, "acme")).build().unwrap();
        let running = client.bulk().query(query).await.unwrap();
        let at_once = sim.stats().shops["acme"].bulk_running;
        let fence = running.fence().unwrap();
        running.wait().await.unwrap();
        (at_once, fence)
    };
    let (one, other) = tokio::join!(run(&stores[0], PRODUCTS), run(&stores[1], ORDERS));
    assert_eq!((one.0, other.0), (1, 1), "never two at once");
    assert_ne!(one.1, other.1, "each has a fence of its own");
    let shop = &sim.stats().shops["acme"];
    assert_eq!((shop.bulk_started, shop.overstepped), (2, 0));
}

/// LIM-21: two bulk jobs of two shops run at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lim_21_those_of_two_shops_run_at_once() {
    let (server, sim) = (RedisServer::start(), sim(ms(60_000), 5).await);
    let stores = stores(&server).await;
    let mut running = Vec::new();
    for (shop, store) in ["acme", "other"].into_iter().zip(&stores) {
        let client = builder_for(shop, store, &at(&sim, shop)).patience(ms(0)).build().unwrap();
        running.push(client.bulk().query(PRODUCTS).await.unwrap());
    }
    let stats = sim.stats();
    assert_eq!((stats.shops["acme"].bulk_running, stats.shops["other"].bulk_running), (1, 1));
}

/// LIM-29: with five slots as many run at once, of one shop, and the sixth waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lim_29_five_places_are_five_at_once() {
    let (server, sim) = (RedisServer::start(), sim(ms(60_000), 5).await);
    let stores = stores(&server).await;
    let mut running = Vec::new();
    for nth in 0..6 {
        let client = builder_for("acme", &stores[nth % 2], &at(&sim, "acme")).bulk_at_once(5).patience(ms(0));
        let query = format!("{{ products(query: \"{nth}\") {{ edges {{ node {{ id }} }} }} }}");
        running.push(client.build().unwrap().bulk().query(&query).await);
    }
    let told: Vec<_> = running.iter().map(Result::is_ok).collect();
    assert_eq!(told, [true, true, true, true, true, false]);
    let shop = &sim.stats().shops["acme"];
    assert_eq!((shop.bulk_running, shop.overstepped), (5, 0), "the lease held the sixth back, not Shopify");
}
