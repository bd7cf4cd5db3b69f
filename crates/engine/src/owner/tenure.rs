//! Staying the owner: the partition's lease is renewed beside everything else, so that a store that answers slowly
//! holds nothing up. Whether an append stands is the log's own decision, by its epoch; this only keeps others away.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tidegate_store::log::Ownership;
use tidegate_store::{Kind, Result, Store};
use tokio::time::Instant;

use super::Owner;

type Renewing = Pin<Box<dyn Future<Output = Result<Ownership>> + Send>>;

/// Renews a lease, one time after the other.
pub(super) struct Renewal {
    store: Arc<dyn Store>,
    owner: Ownership,
    lease: Duration,
    next_at: Instant,
    under_way: Option<Renewing>,
}

impl Renewal {
    /// The first one is due after a third of the lease.
    pub(super) fn starting(owner: &Owner) -> Self {
        let lease = owner.options.partition_lease;
        let next_at = Instant::now() + lease / 3;
        Self { store: Arc::clone(&owner.store), owner: owner.ownership(), lease, next_at, under_way: None }
    }

    /// Resolves when a renewal has been answered. What has begun goes on if this is dropped and called again.
    pub(super) async fn next(&mut self) -> Result<Ownership> {
        if self.under_way.is_none() {
            tokio::time::sleep_until(self.next_at).await;
            self.next_at = Instant::now() + self.lease / 3;
        }
        let (store, owner, lease) = (&self.store, self.owner, self.lease);
        let under_way = self.under_way.get_or_insert_with(|| {
            let store = Arc::clone(store);
            Box::pin(async move { store.renew(owner, lease).await })
        });
        let renewed = under_way.await;
        self.under_way = None;
        renewed
    }
}

impl Owner {
    /// The right to append, as it stands.
    pub(crate) fn ownership(&self) -> Ownership {
        *self.tenure.borrow()
    }

    /// Takes note of a renewal; an error means that another node owns the partition now, or that a newer version has
    /// changed the store.
    pub(super) fn renewed(&self, renewed: Result<Ownership>) -> Result<()> {
        match renewed {
            Ok(ownership) => {
                self.tenure.send_replace(ownership);
                Ok(())
            }
            Err(error) if matches!(error.kind(), Kind::Fenced | Kind::Unreadable) => Err(error),
            Err(error) => {
                // The next append says whether it still matters.
                tracing::warn!(%error, "the partition's lease was not renewed");
                Ok(())
            }
        }
    }
}
