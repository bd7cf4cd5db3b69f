//! Whether this node is too old for the store it is on. Looked at, never changed: the layout is the business of those who
//! open the store.

use tidegate_core::id::Partition;
use tidegate_store::StoreErrorKind;

use super::Member;

impl Member {
    /// Whether a newer version has changed the store. Then this node gives no more signs of life and takes nothing on;
    /// what it serves ends by itself with the next renewal.
    pub(super) async fn is_outdated(&mut self) -> bool {
        // Whatever else is wrong is said by what comes next.
        let newer =
            self.store.check_layout().await.err().filter(|error| error.kind() == StoreErrorKind::Unreadable);
        let before = std::mem::replace(&mut self.outdated, newer.is_some());
        match newer {
            Some(error) if !before => {
                tracing::error!(%error, "the layout of the store is not one of this version: this node takes no more part");
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
