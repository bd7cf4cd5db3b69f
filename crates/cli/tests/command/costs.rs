//! `limit costs` against a server.

use std::time::Duration;

use tidegate_core::operation::MICRO;
use tidegate_core::{Fence, OperationId, Seq};
use tidegate_store::costs::Cost;
use tidegate_store::log::Batch;
use tidegate_store::{Clock, Log, WallClock};
use tidegate_store_embedded::{EmbeddedStore, Options};

use crate::support::World;

/// LIM-10: costs are a table for people and JSON for scripts, of one upstream and since a time.
#[tokio::test(flavor = "multi_thread")]
async fn lim_10_costs_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let now = WallClock.now();
    let cost = |limit: &str, shape: &str, hours: u32, actual: u64| Cost {
        at: now.before(hours * Duration::from_secs(3_600)),
        operation: OperationId::new(now, 0, Seq(1)),
        claim: Fence(1),
        nth: 0,
        limit: limit.into(),
        shape: shape.into(),
        requested: 52 * MICRO,
        actual: Some(actual * MICRO),
        restore_rate: None,
    };
    let store = EmbeddedStore::open(dir.path(), Options::default()).unwrap();
    let owner = store.acquire_partition(0, "before", Duration::from_secs(1)).await.unwrap();
    let costs = vec![cost("acme/points", "GetOrders#1f", 2, 30), cost("acme/points", "ListShops#77", 0, 10)];
    store.append(owner, Batch { costs, ..Batch::default() }).await.unwrap();
    store.release(owner).await.unwrap();
    drop(store);
    let world = World::on(&format!("file:{}", dir.path().display())).await;
    let table = world.run(&["limit", "costs"]).await;
    let first: Vec<&str> = table.expect_success().lines().next().unwrap().split('\t').collect();
    assert_eq!(first[..7], ["GetOrders", "acme/points", "1", "52", "30", "30.0", "75.0 %"], "{table:?}");
    assert_eq!((first[8], table.expect_success().lines().count()), ("GetOrders#1f", 2));
    let young =
        world.run(&["limit", "costs", "--since", "1h", "--upstream", "acme", "--limit", "5", "--json"]).await;
    let young = young.json();
    assert_eq!(
        (young["costs"].as_array().map(Vec::len), &young["costs"][0]["shape"]),
        (Some(1), &"ListShops#77".into())
    );
    let none = world.run(&["limit", "costs", "--upstream", "nobody"]).await;
    assert_eq!((none.expect_success(), none.err.trim()), ("", "no call has reported its cost"));
    let wrong = world.run(&["limit", "costs", "--limit", "0"]).await;
    assert!(wrong.exit == Some(1) && wrong.err.contains("limit"), "{wrong:?}");
}
