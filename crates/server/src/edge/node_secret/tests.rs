//! The secret of the nodes: one for all nodes of a store, which a stranger cannot guess.

use tidegate_store::WallClock;
use tidegate_store_embedded::MemoryStore;

use super::*;

fn store() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(Arc::new(WallClock)))
}

fn saying(secret: &NodeSecret) -> HeaderMap {
    HeaderMap::from_iter([(AUTHORIZATION, secret.header())])
}

/// Nodes on one store authenticate each other without a configured secret, and no one else.
#[tokio::test]
async fn nodes_on_one_store_know_each_other() {
    let shared = store();
    let ann = NodeSecret::from_store(Arc::clone(&shared)).await.unwrap();
    let ben = NodeSecret::from_store(shared).await.unwrap();
    assert!(ann.is_presented_in(&saying(&ben)).await && ben.is_presented_in(&saying(&ann)).await);
    let cleo = NodeSecret::from_store(store()).await.unwrap();
    let dora = NodeSecret::configured("a-secret-of-some-length").unwrap();
    for stranger in [saying(&cleo), saying(&dora), HeaderMap::new()] {
        assert!(!ann.is_presented_in(&stranger).await);
    }
    assert!(!dora.is_presented_in(&saying(&ann)).await);
    assert!(ann.header().is_sensitive() && dora.header().is_sensitive());
}

/// A store that came back empty gets the secret back from a node, or all nodes adopt another one.
#[tokio::test(start_paused = true)]
async fn a_store_that_forgot_the_secret_does_not_part_its_nodes() {
    let ann = NodeSecret::from_store(store()).await.unwrap();
    let before = saying(&ann);
    // As if the store had been emptied and another node had been there first.
    let emptied = store();
    let ben = NodeSecret::from_store(Arc::clone(&emptied)).await.unwrap();
    let ann = NodeSecret { stored: ann.stored.map(|kept| StoredSecret { store: emptied, ..kept }), ..ann };
    assert!(!ann.is_presented_in(&saying(&ben)).await, "it has looked a moment ago");
    tokio::time::advance(LOOK_GAP).await;
    assert!(ann.is_presented_in(&saying(&ben)).await);
    assert!(!ann.is_presented_in(&before).await, "the old one is good for nothing");
}
