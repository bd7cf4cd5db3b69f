//! A PostgreSQL that comes back as a standby: it can be read, takes no writes, and is promoted
//! after a while.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::load::{self, Load, RetryMode};
use super::nodes::Nodes;
use super::outage::accepts_again;
use super::store::Store;
use crate::ALONE;

/// How long the load goes on before and after.
const BETWEEN: Duration = Duration::from_millis(600);
/// How long calls that were granted before may take to leave.
const LAST_CALLS: Duration = Duration::from_millis(400);
/// How long it stays a standby after that.
const STANDBY: Duration = Duration::from_secs(3);
/// How long an answer may take while nothing can be written.
const REFUSED: Duration = Duration::from_secs(14);
const ALL: [usize; 4] = [0, 1, 2, 3];

/// OPS-8, LIM-30: while the server is in recovery every acceptance is refused with a time and no
/// call leaves, though all can be read; when it is promoted everything goes on by itself, and
/// nothing that was acknowledged is lost.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_lim_30_a_server_in_recovery_takes_nothing_until_it_is_promoted() {
    let _alone = ALONE.lock().await;
    let mut nodes = Nodes::start(ALL.len(), Store::postgres()).await;
    let load = Load::start(&nodes, RetryMode::Patient);
    sleep(BETWEEN).await;
    tokio::task::block_in_place(|| nodes.store.as_postgres().restart_in_recovery());
    sleep(LAST_CALLS).await;
    let calls = |nodes: &Nodes| nodes.limited.stats().calls + nodes.wide.stats().calls;
    let before = calls(&nodes);
    let probe = load::operation("limited", "probe", 0);
    for node in ALL {
        let caller = nodes.doors.at(node);
        let asked = caller.call_full(hyper::Method::POST, "/v1/operations", &[], Some(&probe));
        let asked = timeout(REFUSED, asked).await.expect("it answers in time");
        let (status, headers, text) = asked.expect("a whole answer");
        assert_eq!(status, 503, "node {node}: {text}");
        assert!(headers.contains_key("retry-after"), "node {node}: {headers:?}");
        let (ready, said) = caller.call(hyper::Method::GET, "/readyz", &[], None).await.unwrap();
        assert!(ready == 503 && said.contains("is in recovery"), "{ready} {said}");
    }
    sleep(STANDBY).await;
    assert_eq!(calls(&nodes), before, "calls left while nothing could be written");
    tokio::task::block_in_place(|| nodes.store.as_postgres().promote());
    println!("accepts again after {:?}", accepts_again(&nodes, &probe).await);
    nodes.wait_until_shared_by(&ALL).await;
    sleep(BETWEEN).await;
    let groups = load.end().await;
    // Its call may have ended while that could not be written down, and its node lost the lease
    // before it could be.
    load::check(&nodes, &groups, |_| 1).await;
    load::check_no_step_back(&nodes).await;
}
