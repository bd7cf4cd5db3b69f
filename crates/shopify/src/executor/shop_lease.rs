//! The lease of a shop in the queue: the same that programs with the client library hold, so that
//! jobs and programs exclude each other. While a job awaits its end, no process holds the lease:
//! its token is kept with the job, and each poll renews it.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::OperationId;
use tidegate_limits::{Error, LeaseAcquisition, LeaseGuard, LeaseToken, NamedLease, Result};
use tidegate_store::SharedState;
use tidegate_upstream::http::UpstreamConfig;
use tokio::sync::broadcast;

use super::release_watch::ReleaseWatch;
use crate::shop::ShopId;

/// The time to live while a job is being started; whoever starts it renews it.
const STARTING: Duration = Duration::from_secs(30);
/// The time to live while a job awaits its end: many times the longest pause between two polls, so
/// that it outlives a restart.
const AWAITING: Duration = Duration::from_secs(300);

/// How long a job waits for the lease while a release is reported: a dead holder reports none.
const HEARD_PAUSE: Duration = Duration::from_secs(5);
/// How long a job waits for the lease while no release is reported. Asking for it is cheap.
const UNHEARD_PAUSE: Duration = Duration::from_secs(2);

/// The lease of one shop.
pub(super) struct ShopLease {
    lease: NamedLease,
    releases: ReleaseWatch,
}

/// The outcome of asking for a slot.
pub(super) enum SlotAcquisition {
    Held(LeaseGuard),
    /// All are held by others.
    Busy {
        /// When to ask again, unless a release is reported before.
        pause: Duration,
    },
}

/// Returns the name of the lease of the shop behind an upstream: the shop is the one of the base
/// URL, or, where that leads elsewhere, the upstream's name.
pub(super) fn lease_name(config: &UpstreamConfig) -> String {
    let shop = ShopId::of_url(&config.base_url).or_else(|| config.name.parse().ok());
    shop.map_or_else(|| format!("bulk-lock:{}", config.name), |shop| shop.bulk_lease())
}

impl ShopLease {
    /// The lease of this name; jobs that may start because it was released are sent to `starts`.
    pub(super) fn new(
        store: &Arc<dyn SharedState>,
        name: &str,
        places: u32,
        starts: &broadcast::Sender<OperationId>,
    ) -> Result<Self> {
        let lease = NamedLease::with_places(Arc::clone(store), name, STARTING, places)?;
        let releases = ReleaseWatch::new(Arc::clone(store), name, starts.clone());
        Ok(Self { lease, releases })
    }

    pub(super) fn name(&self) -> &str {
        self.lease.name()
    }

    /// Acquires a slot to start a job, or lets it wait for a release while all are held.
    pub(super) async fn acquire(&self, job: Option<OperationId>) -> Result<SlotAcquisition> {
        if let Some(guard) = self.lease.try_acquire().await?.held() {
            return Ok(SlotAcquisition::Held(guard));
        }
        let pause = if self.releases.add(job).await { HEARD_PAUSE } else { UNHEARD_PAUSE };
        // One may have been released before the job was known to wait.
        match self.lease.try_acquire().await?.held() {
            Some(guard) => {
                self.releases.remove(job);
                Ok(SlotAcquisition::Held(guard))
            }
            None => Ok(SlotAcquisition::Busy { pause }),
        }
    }

    /// Keeps the slot of a job that was started.
    pub(super) async fn keep(&self, guard: LeaseGuard) -> LeaseToken {
        let token = guard.into_token();
        self.renew(&token).await;
        token
    }

    /// Renews the slot of a job that awaits its end; returns `false` if it is lost.
    pub(super) async fn renew(&self, token: &LeaseToken) -> bool {
        // If the store fails, the next poll shows what became of it.
        self.lease.renew(token, AWAITING).await.map_err(|error| self.warn("renewed", &error)).unwrap_or(true)
    }

    /// Renews the slot of a job that awaits its end. One that was lost, or never held, is acquired
    /// if one is free: Shopify counts the operation either way.
    pub(super) async fn hold(&self, token: Option<LeaseToken>) -> Option<LeaseToken> {
        if let Some(token) = token
            && self.renew(&token).await
        {
            return Some(token);
        }
        match self.lease.try_acquire().await {
            Ok(LeaseAcquisition::Held(guard)) => Some(self.keep(guard).await),
            Ok(LeaseAcquisition::Busy { .. }) | Err(_) => None,
        }
    }

    /// Releases the slot of a job that has ended.
    pub(super) async fn release(&self, token: &LeaseToken) {
        if let Err(error) = self.lease.release(token).await {
            self.warn("released", &error);
        }
    }

    /// Releases the slot of a job that was not started.
    pub(super) async fn give_back(&self, guard: LeaseGuard) {
        if let Err(error) = guard.release().await {
            self.warn("released", &error);
        }
    }

    fn warn(&self, what: &str, error: &Error) {
        tracing::warn!(lease = self.name(), %error, "the lease of a bulk operation was not {what}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LIM-15: the lease is that of the client library, whatever the upstream is called.
    #[test]
    fn lim_15_an_upstream_has_the_lease_of_its_shop() {
        for (name, url, lease) in [
            ("main", "https://Acme.myshopify.com/admin/api/2026-04", "bulk-lock:acme"),
            ("main", "https://acme.myshopify.com:443", "bulk-lock:acme"),
            ("Acme", "http://127.0.0.1:7/shops/x", "bulk-lock:acme"),
            ("acme", "https://proxy.internal/x.myshopify.com", "bulk-lock:acme"),
            ("a_b", "http://localhost", "bulk-lock:a_b"),
        ] {
            assert_eq!(lease_name(&UpstreamConfig::new(name, url)), lease, "{name} {url}");
        }
    }
}
