//! Named leases: a hash each, which is never removed, because its fence must never restart.

use std::time::Duration;

use tidegate_core::Time;
use tidegate_core::shared::lease::{self, AcquireOutcome, Lease, LeaseStatus};
use tidegate_store::Result;

use crate::errors::unusable;
use crate::scripts::{self, ScriptCall};
use crate::{RedisStore, reply, span};

impl RedisStore {
    pub(super) async fn acquire(&self, name: &str, ttl: Duration) -> Result<AcquireOutcome> {
        let call = ScriptCall::new(&scripts::LEASE_ACQUIRE, [self.keys.lease(name)])
            .with_arg(self.now())
            .with_arg(span(ttl));
        let doing = format!("acquire the lease {name}");
        let (word, mut parts) = reply::split_verdict(self.run_script(&doing, &call).await?)?;
        if word == "busy" {
            return Ok(AcquireOutcome::Busy { until: reply::time_at(&mut parts, 0)? });
        }
        let fence = reply::part_at(&mut parts, 0)?;
        Ok(AcquireOutcome::Held(Lease { fence, until: reply::time_at(&mut parts, 1)? }))
    }

    /// Extends the lease to `ttl` from now on; zero releases it.
    pub(super) async fn keep_lease(&self, name: &str, lease: Lease, ttl: Duration) -> Result<Option<Lease>> {
        let call = ScriptCall::new(&scripts::LEASE_KEEP, [self.keys.lease(name)]);
        let call = call.with_arg(self.now()).with_arg(lease.fence).with_arg(span(ttl));
        let until: String = reply::parsed(self.run_script(&format!("renew the lease {name}"), &call).await?)?;
        if until.is_empty() {
            return Ok(None);
        }
        let until = until.parse().map(Time::from_micros).map_err(|_| reply::unexpected_reply("a time"))?;
        Ok(Some(Lease { until, ..lease }))
    }

    pub(super) async fn look_at_lease(&self, name: &str) -> Result<Option<LeaseStatus>> {
        let now = self.time().await?;
        let mut look = redis::cmd("HMGET");
        look.arg(self.keys.lease(name)).arg("fence").arg("until");
        let answer =
            self.connection.send(&look).await.map_err(|failed| unusable(self.connection.name(), failed))?;
        let (fence, until): (Option<u64>, Option<u64>) = reply::parsed(answer)?;
        let state = fence
            .zip(until)
            .map(|(fence, until)| lease::LeaseState { fence, until: Time::from_micros(until) });
        Ok(state.and_then(|state| lease::status(state, now)))
    }
}
