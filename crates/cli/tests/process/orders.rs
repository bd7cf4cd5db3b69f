//! Orders placed with the usual clients of two languages, over a line that is cut now and then, at
//! services that know nothing of repeats: what stands in front of them sees to it that each order
//! is there once.

mod cutter;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::Ordering;

use serde_json::Value;
use tidegate_fixture::redis::RedisServer;
use tokio::task::block_in_place;
use tokio::time::Instant;

use crate::ALONE;
use crate::caller::Caller;
use crate::child::{RunningServer, StartingServer, proxy};
use crate::cluster::chance;
use crate::languages::{Service, node, python, run};
use cutter::CuttingProxy;

/// At each of the two services.
const ORDERS: usize = 5_000;
/// Orders that are placed at once.
const WORKERS: usize = 16;

/// Places the orders with a client at a service behind a proxy and a bad line, and looks at what is
/// there.
async fn place(name: &str, service: Command, mut client: Command, store: String) {
    let service = block_in_place(|| Service::start(service));
    let dir = tempfile::tempdir().unwrap();
    let proxy = StartingServer::of(proxy(dir.path(), &service.address, &store));
    let proxy = block_in_place(|| RunningServer::of(proxy));
    let line =
        CuttingProxy::start(proxy.address.trim_start_matches("http://").to_owned(), chance(name)).await;
    client
        .arg(format!("http://127.0.0.1:{}/orders", line.port))
        .args([ORDERS, WORKERS].map(|n| n.to_string()));
    let since = Instant::now();
    let told = tokio::task::spawn_blocking(move || run(&mut client)).await.unwrap();
    println!(
        "{name}: {ORDERS} orders in {:?}, {} replays, {:?}",
        since.elapsed(),
        told["replays"],
        line.counts
    );

    let there: Vec<Value> = serde_json::from_str(&Caller::of(&service.address).get("/orders").await).unwrap();
    let mut ids: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for order in &there {
        ids.entry(order["number"].to_string()).or_default().push(&order["id"]);
    }
    let doubles: Vec<_> = ids.iter().filter(|(_, ids)| ids.len() > 1).collect();
    assert!(doubles.is_empty(), "{name}: there twice: {doubles:?}");
    let told_ids: BTreeMap<String, Vec<&Value>> =
        told["ids"].as_object().unwrap().iter().map(|(number, id)| (number.clone(), vec![id])).collect();
    assert_eq!(told_ids.len(), ORDERS, "{name}: the client knows of each order");
    assert!(ids == told_ids, "{name}: what is there is not what the client was told");
    assert_eq!(there.len(), ORDERS, "{name}: none is lost");

    // A line that was never cut would prove nothing.
    for cuts in [&line.counts.requests, &line.counts.answers] {
        assert!(cuts.load(Ordering::Relaxed) > ORDERS / 200, "{name}: {:?}", line.counts);
    }
    assert!(told["replays"].as_u64().unwrap() > 0, "{name}: no repeat was answered again");
}

/// IDM-12, IDM-17: 10,000 orders over a line that cuts one connection in twenty, 5,000 with
/// requests at a service in Python and 5,000 with got at one in Node, neither of which was changed
/// for it: none is there twice and none is lost.
#[tokio::test(flavor = "multi_thread")]
async fn idm_12_idm_17_no_order_is_lost_and_none_is_there_twice() {
    let _alone = ALONE.lock().await;
    let redis = block_in_place(RedisServer::start);
    place("requests", python("orders/service.py"), python("orders/client.py"), "file:keys".to_owned()).await;
    place("got", node("orders/service.mjs"), node("orders/client.mjs"), redis.url()).await;
}
