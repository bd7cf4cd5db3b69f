//! Somebody else's transaction that is left open: for as long as the load runs, and with a table
//! locked.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::load::{self, Load, RetryMode};
use super::nodes::Nodes;
use super::store::Store;
use crate::ALONE;

/// How long the load runs beside a transaction that only stays open.
const OPEN: Duration = Duration::from_secs(8);
/// How long a table is locked: shorter, and longer, than a statement waits for it.
const LOCKED: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(6)];
const BETWEEN: Duration = Duration::from_millis(800);
/// No two seconds without this many calls, while nothing is locked: the limited upstream alone
/// permits a hundred.
const CALLS_MIN: u64 = 20;
/// A machine may stand still for a second.
const LOOK: Duration = Duration::from_secs(2);
const ALL: [usize; 4] = [0, 1, 2, 3];

/// OPS-8, OPS-4, LIM-6: a transaction that stays open slows nobody. A lock on the log holds
/// everything up for as long as it lasts, and then everything goes on: nothing is lost, and nothing
/// is carried twice.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_ops_4_lim_6_a_transaction_that_stays_open_stops_nothing() {
    let _alone = ALONE.lock().await;
    let mut nodes = Nodes::start(ALL.len(), Store::postgres()).await;
    let mut idle = nodes.store.as_postgres().session();
    let mut locking = nodes.store.as_postgres().session();
    idle.query("SET search_path = tidegate; BEGIN ISOLATION LEVEL REPEATABLE READ");
    idle.query("SELECT pg_current_xact_id(); SELECT count(*) FROM log; SELECT count(*) FROM operations");
    locking.query("SET search_path = tidegate");
    let load = Load::start(&nodes, RetryMode::Patient);
    sleep(BETWEEN).await;
    let calls = |nodes: &Nodes| nodes.limited.stats().calls + nodes.wide.stats().calls;
    let end = Instant::now() + OPEN;
    while Instant::now() < end {
        let before = calls(&nodes);
        sleep(LOOK).await;
        let made = calls(&nodes) - before;
        assert!(made >= CALLS_MIN, "{made} calls in {LOOK:?} beside a transaction that is open");
    }
    for locked in LOCKED {
        tokio::task::block_in_place(|| locking.query("BEGIN; LOCK TABLE log IN SHARE MODE"));
        sleep(locked).await;
        tokio::task::block_in_place(|| locking.query("COMMIT"));
        sleep(BETWEEN).await;
    }
    let groups = load.end().await;
    tokio::task::block_in_place(|| idle.query("COMMIT"));
    nodes.wait_until_shared_by(&ALL).await;
    load::check(&nodes, &groups, |_| 0).await;
    load::check_no_step_back(&nodes).await;
}
