//! Named leases: a hash each, which stays for ever, because its fence must never start anew.

use std::time::Duration;

use tidegate_core::Time;
use tidegate_core::shared::lease::{Acquired, Lease};
use tidegate_store::Result;

use crate::scripts::{self, Call};
use crate::{Redis, reply, span};

impl Redis {
    pub(super) async fn acquire(&self, name: &str, ttl: Duration) -> Result<Acquired> {
        let call =
            Call::new(&scripts::LEASE_ACQUIRE, [self.keys.lease(name)]).with(self.now()).with(span(ttl));
        let doing = format!("give out the lease {name}");
        let (word, mut parts) = reply::said(self.step(&doing, &call).await?)?;
        if word == "busy" {
            return Ok(Acquired::Busy { until: reply::time_at(&mut parts, 0)? });
        }
        let fence = reply::at(&mut parts, 0)?;
        Ok(Acquired::Held(Lease { fence, until: reply::time_at(&mut parts, 1)? }))
    }

    /// Keeps it for `ttl` from now on, which gives it back when that is nothing.
    pub(super) async fn keep_lease(&self, name: &str, lease: Lease, ttl: Duration) -> Result<Option<Lease>> {
        let call = Call::new(&scripts::LEASE_KEEP, [self.keys.lease(name)]);
        let call = call.with(self.now()).with(lease.fence).with(span(ttl));
        let until: String = reply::parsed(self.step(&format!("keep the lease {name}"), &call).await?)?;
        if until.is_empty() {
            return Ok(None);
        }
        let until = until.parse().map(Time::from_micros).map_err(|_| reply::odd("a time"))?;
        Ok(Some(Lease { until, ..lease }))
    }
}
