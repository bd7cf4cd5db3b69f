//! A deployment that was handed in at one node, carried by another one, and finished by the first
//! when that one was killed.

use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::node_clients::partition_of;
use super::store::Store;
use crate::ALONE;
use crate::caller::Caller;
use crate::child::{RunningServer, StartingServer, tidegate};
use crate::deployed::{
    GUILD, UPSTREAM_TOKEN, discord, small, stop_at, upstream, wait_until_ended, wait_until_stopped,
};

const LOOK: Duration = Duration::from_millis(50);
/// What a dead node had under way is taken up half a minute later.
const WHOLE_TEST: Duration = Duration::from_secs(150);

fn start(dir: &std::path::Path) -> RunningServer {
    let mut command = tidegate();
    command.env(UPSTREAM_TOKEN.0, UPSTREAM_TOKEN.1).current_dir(dir);
    command.arg("serve").arg("--config").arg(dir.join("tidegate.toml")).args(["--listen", "127.0.0.1:0"]);
    tokio::task::block_in_place(|| RunningServer::of(StartingServer::of(command)))
}

/// Which of the two owns the place of the guild's operations.
async fn owner(nodes: &[RunningServer; 2], calls: &[Caller; 2]) -> usize {
    let request = json!({ "method": "GET", "path": format!("/guilds/{GUILD}") });
    let look = json!({ "upstream": "discord", "group": format!("guild:{GUILD}"), "request": request });
    calls[0].post("/v1/operations?wait_ms=5000", &[], &look).await;
    let read = calls[0].get(&format!("/v1/operations?group=guild:{GUILD}&limit=1")).await;
    let read: Value = serde_json::from_str(&read).unwrap();
    let partition = json!(partition_of(read["operations"][0]["id"].as_str().unwrap()));
    let view: Value = serde_json::from_str(&calls[0].get("/v1/cluster").await).unwrap();
    let owned = |node: &RunningServer| {
        let address = node.address.trim_start_matches("http://");
        let it = view["nodes"].as_array().unwrap().iter().find(|it| it["address"] == address).unwrap();
        it["partitions"].as_array().unwrap().contains(&partition)
    };
    nodes.iter().position(owned).unwrap()
}

/// Until both have their share.
async fn shared(calls: &[Caller; 2]) {
    loop {
        let view: Value = serde_json::from_str(&calls[0].get("/v1/cluster").await).unwrap();
        let shares =
            view["nodes"].as_array().unwrap().iter().map(|node| node["partitions"].as_array().unwrap().len());
        if shares.collect::<Vec<_>>() == [8, 8] {
            return;
        }
        sleep(LOOK).await;
    }
}

async fn killed_in_the_middle(store: Store) {
    let sim = discord().await;
    let dir = tempfile::tempdir().unwrap();
    let text =
        format!("[server]\nlisten = \"127.0.0.1:0\"\n[store]\nurl = \"{}\"\n{}", store.url(), upstream(&sim));
    std::fs::write(dir.path().join("tidegate.toml"), text).unwrap();
    let nodes = [start(dir.path()), start(dir.path())];
    let calls = [Caller::of(&nodes[0].address), Caller::of(&nodes[1].address)];
    shared(&calls).await;
    let owner = owner(&nodes, &calls).await;
    let other = &calls[1 - owner];
    stop_at(&sim, 5).await;
    let begun = other.post("/v1/deployments", &[], &small()).await;
    let id = begun["id"].as_str().unwrap().to_owned();
    wait_until_stopped(&sim).await;
    let [first, second] = nodes;
    let (dead, _alive) = if owner == 0 { (first, second) } else { (second, first) };
    tokio::task::block_in_place(|| dead.kill());
    Caller::of(&format!("http://{}", sim.addr()))
        .call(Method::DELETE, "/_sim/stop", &[], None)
        .await
        .unwrap();
    let done = wait_until_ended(other, &id).await;
    assert_eq!(done["stage"], "done", "{done}");
    let stats = sim.stats();
    assert_eq!((stats.all.duplicates, stats.all.objects["channels"]), (0, 8), "{stats:?}");
    assert_eq!(stats.all.objects["messages"], 2, "{stats:?}");
}

/// OPS-15, OPS-18: whichever node is asked, the owner of the place deploys; when it is killed the
/// next owner goes on from the journal without being asked, and nothing is made twice.
#[tokio::test(flavor = "multi_thread")]
async fn ops_15_ops_18_a_deployment_outlives_the_node_that_carries_it() {
    let _alone = ALONE.lock().await;
    timeout(WHOLE_TEST, killed_in_the_middle(Store::redis())).await.expect("it ends in time");
}
