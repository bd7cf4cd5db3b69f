//! Nodes on one store, each a process of its own, on their bad days: restarted, killed, frozen, and
//! without their store. What reached the upstreams is what counts.

mod archived;
mod away;
mod batch;
mod browser;
mod clock;
mod cut;
mod deadlock;
mod deployed;
mod flush;
mod frozen;
mod idle;
mod internal;
mod killed;
mod load;
mod node_clients;
mod nodes;
mod outage;
mod outbox;
mod paced;
mod patched;
mod recovery;
mod relay;
mod rolling;
mod shards;
mod store;
mod strangers;
mod versions;

use tidegate_sim::rng::SeededRng;

use crate::ALONE;
use store::Store;

/// Chance for a test: the same in each run, unless `TIDEGATE_SEED` says another.
pub(crate) fn chance(what: &str) -> SeededRng {
    println!("{what} draws as a run {}", tidegate_contract::rng::how_to_repeat());
    SeededRng::new(tidegate_contract::rng::seed_or(7400))
}

/// OPS-8, OPS-4, LIM-6, LIM-24: nodes that are killed and nodes that are frozen, see `killed` and
/// `frozen`. What a dead node had under way is taken up half a minute later: so these days are
/// lived through side by side.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_ops_4_lim_6_lim_24_dead_and_frozen_nodes_cost_nothing_but_time() {
    let _alone = ALONE.lock().await;
    let days = [
        tokio::spawn(killed::killed_and_back(Store::redis())),
        tokio::spawn(killed::killed_and_back(Store::postgres())),
        tokio::spawn(frozen::frozen_past_its_lease(Store::redis())),
    ];
    for day in days {
        day.await.unwrap();
    }
}
