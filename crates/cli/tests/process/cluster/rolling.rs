//! A rolling restart, as every deployment of a new version is one.

use std::time::Duration;

use tokio::time::sleep;

use super::load::{self, Load, RetryMode};
use super::nodes::Nodes;
use super::store::Store;
use crate::ALONE;

/// How long the load goes on between two restarts.
const BETWEEN: Duration = Duration::from_millis(400);
const ALL: [usize; 4] = [0, 1, 2, 3];

/// OPS-4, LIM-6: four nodes are stopped in order and started again, one after the other, under
/// load: no request fails, and everything is carried once, in order, within the limit.
async fn restarted_one_after_the_other(store: Store) {
    let mut nodes = Nodes::start(ALL.len(), store).await;
    let load = Load::start(&nodes, RetryMode::Strict);
    for node in ALL {
        sleep(BETWEEN).await;
        nodes.stop(node).await;
        sleep(BETWEEN).await;
        nodes.start_again(node);
        nodes.wait_until_shared_by(&ALL).await;
    }
    sleep(BETWEEN).await;
    let groups = load.end().await;
    load::check(&nodes, &groups, |_| 0).await;
}

/// OPS-4, LIM-6.
#[tokio::test(flavor = "multi_thread")]
async fn ops_4_lim_6_a_rolling_restart_is_not_noticed_on_redis() {
    let _alone = ALONE.lock().await;
    restarted_one_after_the_other(Store::redis()).await;
}

/// OPS-4, LIM-6.
#[tokio::test(flavor = "multi_thread")]
async fn ops_4_lim_6_a_rolling_restart_is_not_noticed_on_postgres() {
    let _alone = ALONE.lock().await;
    restarted_one_after_the_other(Store::postgres()).await;
}
