//! Somebody else's transaction that locks Tidegate's rows in the wrong order, so that the server
//! ends one of the two.

use std::time::Duration;

use tokio::time::sleep;

use super::load::{self, Load, RetryMode};
use super::node_clients::partition_of;
use super::nodes::Nodes;
use super::store::Store;
use crate::ALONE;

/// How long the load goes on before, between and after.
const BETWEEN: Duration = Duration::from_millis(500);
const TIMES: usize = 4;
/// In which time all partitions with a load have an append that waits: shorter than a deadlock may
/// stand.
const OTHERS: Duration = Duration::from_millis(150);
const ALL: [usize; 4] = [0, 1, 2, 3];

/// OPS-8, OPS-4, LIM-6: an append holds its partition and waits for a table; the stranger has the
/// table and waits for the partition. The server ends the append: nothing is lost, carried twice or
/// out of order, and it goes on.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_ops_4_lim_6_a_deadlock_ends_an_append_and_nothing_else() {
    let _alone = ALONE.lock().await;
    let mut nodes = Nodes::start(ALL.len(), Store::postgres()).await;
    let probe = nodes.doors.submit(&load::operation("limited", "probe", 0)).await;
    let mut stranger = nodes.store.as_postgres().session();
    let mut watcher = nodes.store.as_postgres().session();
    // The first to wait finds the deadlock and is ended, and the stranger is never the first.
    watcher.query("ALTER SYSTEM SET deadlock_timeout = '400ms'");
    watcher.query("SELECT pg_reload_conf()");
    stranger.query("SET search_path = tidegate; SET deadlock_timeout = '1min'");
    let load = Load::start(&nodes, RetryMode::Patient);
    for _ in 0..TIMES {
        sleep(BETWEEN).await;
        tokio::task::block_in_place(|| {
            stranger.query("BEGIN; LOCK TABLE operations, results IN SHARE MODE");
            wait_for_an_append(&mut watcher);
            let row =
                format!("SELECT epoch FROM partitions WHERE partition = {} FOR UPDATE", partition_of(&probe));
            stranger.query(&row);
            stranger.query("COMMIT");
        });
    }
    sleep(BETWEEN).await;
    let deadlocks: usize = tokio::task::block_in_place(|| {
        watcher.query("SELECT pg_stat_force_next_flush(); SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'")
    })
    .trim()
    .parse()
    .unwrap();
    println!("{deadlocks} deadlocks");
    let groups = load.end().await;
    load::check(&nodes, &groups, |_| 0).await;
    load::check_no_step_back(&nodes).await;
    assert!(deadlocks > 0, "there was no deadlock");
}

/// Waits until the nodes wait for the stranger's table.
fn wait_for_an_append(watcher: &mut tidegate_fixture::postgres::PsqlSession) {
    const WAITING: &str = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'relation'";
    while watcher.query(WAITING) == "0" {}
    // The first may be of another partition; the one that is meant appends many times in this time.
    watcher.query(&format!("SELECT pg_sleep({})", OTHERS.as_secs_f64()));
}
