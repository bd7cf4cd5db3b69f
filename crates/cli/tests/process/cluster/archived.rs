//! Nodes with an archive: one is killed while it is away, and all that ended reaches it all the
//! same.

use std::time::Duration;

use tidegate_core::OperationId;
use tidegate_fixture::postgres::PostgresServer;
use tidegate_store::Archive;
use tidegate_store_postgres::PostgresArchive;
use tokio::time::{sleep, timeout};

use super::load;
use super::nodes::{Nodes, Setup};
use super::store::Store;
use crate::ALONE;

const GROUPS: usize = 8;
const EACH: usize = 15;
/// In which time everything is archived: a lease that runs out, and the longest pause between two
/// tries.
const ARCHIVED: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

/// Operations that wait for the archive, as a node tells it.
async fn waiting(nodes: &Nodes, node: usize) -> Option<f64> {
    let metrics = nodes.doors.at(node).get("/metrics").await;
    let line =
        metrics.lines().find_map(|line| line.strip_prefix("tidegate_archive_waiting ").map(str::to_owned));
    line.and_then(|figure| figure.parse().ok())
}

/// Waits until the archive has all of these; answers how each ended.
async fn archived(archive: &PostgresArchive, ids: &[OperationId]) -> Vec<String> {
    let all = async {
        loop {
            let found = archive.read(ids.to_vec()).await.unwrap_or_default();
            let results = found.into_iter().flatten().filter_map(|stored| stored.result);
            let states: Vec<_> = results.map(|result| format!("{:?}", result.state)).collect();
            if states.len() == ids.len() {
                return states;
            }
            sleep(LOOK).await;
        }
    };
    timeout(ARCHIVED, all).await.expect("all that ended is archived in time")
}

/// OPS-8: operations end on two nodes while the archive is away; one node is killed, the archive
/// comes back, and the other brings everything to it, what the dead node had noted too. Each is
/// there once, by its id.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_a_killed_node_leaves_nothing_out_of_the_archive() {
    let _alone = ALONE.lock().await;
    let mut database = PostgresServer::start();
    let archive = PostgresArchive::at(&database.url()).unwrap();
    let more = format!("archive = \"{}\"", database.url());
    let mut nodes = Nodes::start_with(2, Store::redis(), Setup { store: more, ..Setup::default() }).await;
    let first = nodes.doors.submit(&load::operation("wide", "first", 0)).await;
    nodes.doors.wait_until_ended(&first).await;
    let mut ids: Vec<OperationId> = vec![first.parse().unwrap()];
    archived(&archive, &ids).await;
    tokio::task::block_in_place(|| database.kill());
    let mut names = Vec::new();
    for upstream in ["limited", "wide"] {
        for (group, n) in (0..GROUPS).flat_map(|group| (0..EACH).map(move |n| (group, n))) {
            names
                .push(nodes.doors.submit(&load::operation(upstream, &format!("{upstream}{group}"), n)).await);
        }
    }
    for name in &names {
        assert_eq!(nodes.doors.wait_until_ended(name).await["state"], "succeeded");
        ids.push(name.parse().unwrap());
    }
    // The one that keeps the limit has surely something to bring.
    let dies = nodes.owner_of(&names[0], 0).await;
    let lives = 1 - dies;
    let seen = async {
        while waiting(&nodes, dies).await.is_none_or(|waiting| waiting < 1.0) {
            sleep(LOOK).await;
        }
    };
    timeout(ARCHIVED, seen).await.expect("it is told how many wait");
    nodes.doors.at(dies).get("/readyz").await;
    nodes.doors.set_open(dies, false);
    nodes.kill(dies);
    tokio::task::block_in_place(|| database.restart());
    nodes.wait_until_shared_by(&[lives]).await;
    let states = archived(&archive, &ids).await;
    assert!(states.iter().all(|state| state == "Succeeded"), "{states:?}");
    let nothing_waits = async {
        while waiting(&nodes, lives).await != Some(0.0) {
            sleep(LOOK).await;
        }
    };
    timeout(ARCHIVED, nothing_waits).await.expect("nothing waits any more");
}
