//! Named leases: a hash each, which stays for ever, because its fence must never start anew.

use std::time::Duration;

use tidegate_core::Time;
use tidegate_core::shared::lease::{self, Acquired, Lease, Status};
use tidegate_store::Result;

use crate::scripts::{self, Call};
use crate::trouble::unusable;
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

    pub(super) async fn look_at_lease(&self, name: &str) -> Result<Option<Status>> {
        let now = self.time().await?;
        let mut look = redis::cmd("HMGET");
        look.arg(self.keys.lease(name)).arg("fence").arg("until");
        let answer = self.link.send(&look).await.map_err(|failed| unusable(self.link.name(), failed))?;
        let (fence, until): (Option<u64>, Option<u64>) = reply::parsed(answer)?;
        let state =
            fence.zip(until).map(|(fence, until)| lease::State { fence, until: Time::from_micros(until) });
        Ok(state.and_then(|state| lease::look(state, now)))
    }
}
