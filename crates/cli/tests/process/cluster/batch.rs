//! A batch over all partitions, submitted to one node.

use serde_json::{Value, json};

use super::load;
use super::node_clients::partition_of;
use super::nodes::Nodes;
use super::store::Store;
use crate::ALONE;
use crate::arrivals::arrivals;

const MEMBERS: usize = 100;
const GROUPS: usize = 25;

/// OPS-4: every member is accepted with its result in order, and each group is executed once, in
/// the batch's order.
async fn over_all_partitions(store: Store) {
    let nodes = Nodes::start(4, store).await;
    let group = |n: usize| format!("batch{}", n % GROUPS);
    let operations: Vec<_> = (0..MEMBERS).map(|n| load::operation("wide", &group(n), n)).collect();
    let body = json!({ "operations": operations });
    let answer = nodes.doors.at(0).post("/v1/operations/batch", &[], &body).await;
    let members = answer["operations"].as_array().unwrap();
    assert_eq!(members.len(), MEMBERS);
    let ids: Vec<_> = members.iter().map(|member| member["id"].as_str().expect("accepted")).collect();
    let mut partitions: Vec<_> = ids.iter().map(|id| partition_of(id)).collect();
    partitions.sort_unstable();
    partitions.dedup();
    assert!(partitions.len() > 6, "{partitions:?} is not many");
    for (n, id) in ids.iter().enumerate() {
        let ended: Value = nodes.doors.wait_until_ended(id).await;
        let told = (&ended["state"], &ended["group"], &ended["result"]["body"]["body"]["id"]);
        assert_eq!(told, (&json!("succeeded"), &json!(group(n)), &json!(n)), "{ended}");
    }
    let arrived = arrivals(&nodes.wide).await;
    for first in 0..GROUPS {
        let expected: Vec<_> = (first..MEMBERS).step_by(GROUPS).collect();
        assert_eq!(arrived[&format!("/{}", group(first))], expected);
    }
}

/// OPS-4.
#[tokio::test(flavor = "multi_thread")]
async fn ops_4_a_batch_reaches_every_partition_on_redis() {
    let _alone = ALONE.lock().await;
    over_all_partitions(Store::redis()).await;
}

/// OPS-4.
#[tokio::test(flavor = "multi_thread")]
async fn ops_4_a_batch_reaches_every_partition_on_postgres() {
    let _alone = ALONE.lock().await;
    over_all_partitions(Store::postgres()).await;
}
