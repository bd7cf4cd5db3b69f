//! A lease without a guard, for work that outlives the process which began it: who has its token
//! renews and releases it, in any process.

use std::time::Duration;

use tidegate_core::Time;
use tidegate_core::shared::lease::Lease;

use super::NamedLease;
use crate::Result;

/// What names a held lease. Keep it where whoever continues the work finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseToken {
    /// The name of the held place in the store.
    pub place: String,
    /// The fence of its holder.
    pub fence: u64,
}

impl LeaseToken {
    /// The lease that the fence proves; the store knows when it expires.
    const fn lease(&self) -> Lease {
        Lease { fence: self.fence, until: Time::ZERO }
    }
}

impl NamedLease {
    /// Renews a lease that was [handed over](crate::LeaseGuard::into_token), for `ttl` from now on;
    /// returns `false` if it was lost.
    ///
    /// # Errors
    /// The store's error; the lease may have been renewed.
    pub async fn renew(&self, token: &LeaseToken, ttl: Duration) -> Result<bool> {
        Ok(self.inner.store.renew_lease(&token.place, token.lease(), ttl).await?.is_some())
    }

    /// Releases a lease that was [handed over](crate::LeaseGuard::into_token); returns `false` if
    /// it was lost before.
    ///
    /// # Errors
    /// The store's error; the lease then expires by itself.
    pub async fn release(&self, token: &LeaseToken) -> Result<bool> {
        self.inner.release(&token.place, token.lease()).await
    }
}
