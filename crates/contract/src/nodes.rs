//! The suites of `Nodes`: which nodes are alive, by the clock; and hints, which may be lost but
//! never block.

use std::time::Duration;

use tidegate_store::nodes::{Node, NodeRecord};
use tidegate_store::{Clock, Nodes, StoreErrorKind};
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

use crate::harness::{Backend, ExpectValue};

const TTL: Duration = Duration::from_secs(15);
const MOMENT: Duration = Duration::from_millis(1);
/// A hint that takes longer than this is considered lost, and sent again.
const PATIENCE: Duration = Duration::from_millis(250);
/// The timeout of everything here.
const BOUND: Duration = Duration::from_secs(30);

async fn names<N: Nodes + ?Sized>(nodes: &N) -> Vec<String> {
    nodes.list_nodes().await.expect_value("list nodes").into_iter().map(|node| node.name).collect()
}

/// A node is listed from its registration until it expires; a heartbeat or another registration
/// extends that.
pub async fn nodes_are_there_until_their_time_is_up(backend: &dyn Backend) {
    let clock = backend.clock();
    let store = backend.open().await.expect_value("open the store");
    assert!(names(&*store).await.is_empty(), "nobody is there at the start");
    let record = NodeRecord {
        address: "10.0.0.2:7400".into(),
        leaving: true,
        unreadable: [3, 12].into(),
        placement_hash: Some("7f \u{e9}".into()),
    };
    let b = store.register("b", &record, TTL).await.expect_value("register");
    assert_eq!(b, Node { name: "b".into(), record, until: clock.now().after(TTL) });
    clock.advance(TTL / 3);
    let a = store.register("a", &NodeRecord::default(), TTL).await.expect_value("register");
    assert_eq!(
        store.list_nodes().await.expect_value("list nodes"),
        [a, b.clone()],
        "by name, with their records"
    );
    clock.set(b.until.before(MOMENT));
    assert_eq!(names(&*store).await, ["a", "b"]);
    clock.set(b.until.after(MOMENT));
    assert_eq!(names(&*store).await, ["a"], "b's time is up");
    let kept = store.heartbeat("a", TTL).await.expect_value("send a heartbeat");
    assert_eq!((kept.name.as_str(), kept.until), ("a", clock.now().after(TTL)));
    assert_eq!(kept.record, NodeRecord::default(), "a heartbeat leaves the record alone");
    clock.advance(TTL - MOMENT);
    assert_eq!(names(&*store).await, ["a"], "a heartbeat gives another ttl");
    let moved =
        store.register("a", &NodeRecord::at("10.0.0.9:1"), TTL * 2).await.expect_value("register again");
    assert_eq!(
        store.list_nodes().await.expect_value("list nodes"),
        [moved],
        "a second register replaces the first"
    );
    clock.advance(TTL * 3);
    assert!(names(&*store).await.is_empty());
}

/// A heartbeat of an unregistered node is refused, so that the node registers again.
pub async fn an_unknown_node_must_register(backend: &dyn Backend) {
    let store = backend.open().await.expect_value("open the store");
    let answer = store.heartbeat("nobody", TTL).await;
    assert_eq!(answer.err().map(|error| error.kind()), Some(StoreErrorKind::Invalid));
    assert!(names(&*store).await.is_empty(), "a refused heartbeat registers nobody");
}

/// Sends until the hint is received: a hint may be lost, not all of them for ever.
async fn reaches<N: Nodes + ?Sized>(
    nodes: &N,
    topic: &str,
    hint: &str,
    listener: &mut Receiver<String>,
) -> bool {
    for _ in 0..20 {
        nodes.notify(topic, hint).await.expect_value("notify");
        while let Ok(Some(received)) = timeout(PATIENCE, listener.recv()).await {
            if received == hint {
                return true;
            }
        }
    }
    false
}

/// A hint reaches the listeners of its topic, in this store and in a second one, and no one else.
pub async fn a_hint_reaches_its_listeners(backend: &dyn Backend) {
    let store = backend.open().await.expect_value("open the store");
    let second = backend.open_second(&store).await.expect_value("open a second store");
    let mut here = store.listen("topic").await.expect_value("listen");
    let mut there = second.listen("topic").await.expect_value("listen");
    let mut elsewhere = store.listen("topic:2").await.expect_value("listen");
    assert!(reaches(&*store, "topic", "schön 1", &mut here).await, "not received in the same store");
    assert!(reaches(&*store, "topic", "2", &mut there).await, "not received in the second store");
    assert!(reaches(&*second, "topic", "3", &mut here).await, "not received the other way round");
    assert!(elsewhere.try_recv().is_err(), "received under another topic");
    assert!(reaches(&*store, "topic:2", "4", &mut elsewhere).await);
    store.notify("nobody listens", "5").await.expect_value("notify no one");
    drop((here, there));
    store.notify("topic", "6").await.expect_value("notify those who have gone");
}

/// A slow listener loses hints: no one waits for it, and it receives later ones.
pub async fn a_slow_listener_blocks_nobody(backend: &dyn Backend) {
    const HINTS: usize = 5_000;
    let store = backend.open().await.expect_value("open the store");
    let mut slow = store.listen("topic").await.expect_value("listen");
    let mut quick = store.listen("other").await.expect_value("listen");
    let flood = async {
        for index in 0..HINTS {
            store.notify("topic", &index.to_string()).await.expect_value("notify");
        }
    };
    assert!(timeout(BOUND, flood).await.is_ok(), "{HINTS} hints were held up by a listener that sleeps");
    assert!(reaches(&*store, "other", "now", &mut quick).await, "a slow listener held up another one");
    let mut kept = 0;
    while slow.try_recv().is_ok() {
        kept += 1;
    }
    assert!(kept <= HINTS, "more was received than was said");
    assert!(reaches(&*store, "topic", "later", &mut slow).await, "a slow listener receives nothing any more");
}
