//! Checks whether this node is too old for the layout of its store. The check only reads: the
//! layout is managed by those who open the store.

use tidegate_core::id::Partition;
use tidegate_store::StoreErrorKind;

use super::Member;

impl Member {
    /// Returns whether a newer version has changed the store. If so, this node sends no more
    /// heartbeats and acquires nothing; the partitions that it serves end by themselves with the
    /// next renewal.
    pub(super) async fn is_outdated(&mut self) -> bool {
        // The next step reports any other error.
        let newer =
            self.store.check_layout().await.err().filter(|error| error.kind() == StoreErrorKind::Unreadable);
        let before = std::mem::replace(&mut self.outdated, newer.is_some());
        match newer {
            Some(error) if !before => {
                tracing::error!(%error, "this version cannot read the store's format: this node takes no further part");
            }
            None if before => {
                self.unreadable.clear();
                tracing::info!("the store can be read again");
            }
            _ => {}
        }
        if self.outdated {
            let here: Vec<Partition> = self.held.keys().copied().collect();
            self.view.send_modify(|view| {
                view.nodes.clear();
                view.owners.clear();
                view.local_partitions = here;
            });
        }
        self.outdated
    }
}
