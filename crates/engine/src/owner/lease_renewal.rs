//! Renews the partition's lease concurrently with everything else, so that a slow store holds
//! nothing up. Whether an append succeeds is the log's own decision, by its epoch; the lease only
//! keeps other nodes away.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tidegate_store::log::Ownership;
use tidegate_store::{Result, Store, StoreErrorKind};
use tokio::time::Instant;

use super::Owner;

type RenewFuture = Pin<Box<dyn Future<Output = Result<Ownership>> + Send>>;

/// Renews a lease repeatedly.
pub(super) struct Renewal {
    store: Arc<dyn Store>,
    owner: Ownership,
    lease: Duration,
    next_at: Instant,
    /// When the renewal in flight was requested.
    asked: Instant,
    under_way: Option<RenewFuture>,
}

/// A completed renewal, and until when the lease certainly holds if it was granted.
pub(super) struct RenewalOutcome {
    answer: Result<Ownership>,
    owned_until: Instant,
}

impl Renewal {
    /// Creates the renewal; the first one is due after a third of the lease.
    pub(super) fn starting(owner: &Owner) -> Self {
        let lease = owner.options.partition_lease;
        let (asked, next_at) = (Instant::now(), Instant::now() + lease / 3);
        let store = Arc::clone(&owner.store);
        Self { store, owner: owner.ownership(), lease, next_at, asked, under_way: None }
    }

    /// Resolves when a renewal has completed. If this is dropped and called again, a renewal in
    /// flight continues.
    pub(super) async fn next(&mut self) -> RenewalOutcome {
        if self.under_way.is_none() {
            tokio::time::sleep_until(self.next_at).await;
            self.asked = Instant::now();
            self.next_at = self.asked + self.lease / 3;
        }
        let (store, owner, lease) = (&self.store, self.owner, self.lease);
        let under_way = self.under_way.get_or_insert_with(|| {
            let store = Arc::clone(store);
            Box::pin(async move { store.renew(owner, lease).await })
        });
        let answer = under_way.await;
        self.under_way = None;
        RenewalOutcome { answer, owned_until: self.asked + self.lease }
    }
}

impl Owner {
    /// The current right to append.
    pub(crate) fn ownership(&self) -> Ownership {
        *self.ownership.borrow()
    }

    /// Applies a renewal; an error means that another node owns the partition now, or that a newer
    /// version has changed the store.
    pub(super) fn apply_renewal(&mut self, renewed: RenewalOutcome) -> Result<()> {
        match renewed.answer {
            Ok(ownership) => {
                self.owned_until = renewed.owned_until;
                self.options.outages.leases.record_success(self.options.partition);
                self.ownership.send_replace(ownership);
                Ok(())
            }
            Err(error) if matches!(error.kind(), StoreErrorKind::Fenced | StoreErrorKind::Unreadable) => {
                Err(error)
            }
            Err(error) => {
                // The next append shows whether it still matters. Logged once for each outage.
                let partition = self.options.partition;
                if self.options.outages.leases.record_failure(partition) {
                    tracing::warn!(partition, %error, "the partition's lease was not renewed");
                } else {
                    tracing::debug!(partition, %error, "the partition's lease was not renewed either");
                }
                Ok(())
            }
        }
    }
}
