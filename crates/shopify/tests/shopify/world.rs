//! Stores, clients and the simulator for the tests.

use std::sync::Arc;
use std::time::Duration;

use tidegate_shopify::Shopify;
use tidegate_shopify::client::Builder;
use tidegate_sim::{ShopifySim, ShopifySimOptions};
use tidegate_store::{SharedState, Store, WallClock};
use tidegate_store_embedded::MemoryStore;

/// The token, which no message may contain.
pub(crate) const TOKEN: &str = "shpat_hunter2";

pub(crate) const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

pub(crate) fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(Arc::new(WallClock)))
}

/// Returns a client builder of the shop `acme` for a server at `url`.
pub(crate) fn builder(store: &Arc<dyn Store>, url: &str) -> Builder {
    builder_for("acme", store, url)
}

pub(crate) fn builder_for(shop: &str, store: &Arc<dyn Store>, url: &str) -> Builder {
    let shared: Arc<dyn SharedState> = Arc::clone(store) as _;
    Shopify::builder(shop, TOKEN, shared).base_url(url).bulk_poll_intervals(ms(20), ms(100))
}

pub(crate) fn client(store: &Arc<dyn Store>, url: &str) -> Shopify {
    builder(store, url).build().unwrap()
}

/// Starts a simulator whose bulk operations take this long.
pub(crate) async fn sim(bulk_takes: Duration, bulk_rows: u64) -> ShopifySim {
    let options = ShopifySimOptions { bulk_takes, bulk_rows, ..ShopifySimOptions::default() };
    ShopifySim::start(options).await.unwrap()
}

/// Returns the URL of a shop in a simulator.
pub(crate) fn at(sim: &ShopifySim, shop: &str) -> String {
    format!("http://{}/shops/{shop}", sim.addr())
}

/// Waits until the condition holds, for half a minute at most.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(ms(10)).await;
    }
    panic!("it never came: {what}");
}
