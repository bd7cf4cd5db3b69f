//! Shared records that are broken.

use std::time::Duration;

use bytes::Bytes;
use tidegate_core::Time;
use tidegate_core::shared::bucket::{Level, Reserve, Reserved, Settlement};
use tidegate_core::shared::lease::{Acquired, Lease, Status};
use tidegate_core::shared::record::{Claim, Claimed, Forget, Forgot, Record, Token};
use tidegate_core::shared::window::{Opened, Window};
use tidegate_store::{Answer, NamedPage, RecordPage, Shared};

use super::{Broken, Quirk};

impl Shared for Broken {
    fn claim_record(&self, key: &str, claim: Claim) -> Answer<'_, Claimed<Bytes>> {
        let key = key.to_owned();
        Box::pin(async move {
            match self.inner.claim_record(&key, claim).await? {
                Claimed::Processing { .. } if self.is(Quirk::RecordTwoWinners) => {
                    Ok(Claimed::Yours { taken_over: false })
                }
                answer => Ok(answer),
            }
        })
    }

    fn complete_record(&self, key: &str, holder: Token, answer: Bytes) -> Answer<'_, bool> {
        let key = key.to_owned();
        Box::pin(async move {
            let done = self.inner.complete_record(&key, holder, answer).await?;
            Ok(done || self.is(Quirk::RecordLateComplete))
        })
    }

    fn release_record(&self, key: &str, holder: Token) -> Answer<'_, bool> {
        self.inner.release_record(key, holder)
    }

    fn renew_record(&self, key: &str, holder: Token, ttl: Duration) -> Answer<'_, bool> {
        self.inner.renew_record(key, holder, ttl)
    }

    fn look_record(&self, key: &str) -> Answer<'_, Option<Record<Bytes>>> {
        self.inner.look_record(key)
    }

    fn list_records(&self, after: Option<String>, most: usize) -> Answer<'_, RecordPage> {
        Box::pin(async move {
            let mut page = self.inner.list_records(after, most).await?;
            if self.is(Quirk::RecordListForgets) && page.records.len() > 1 {
                page.records.pop();
            }
            Ok(page)
        })
    }

    fn forget_record(&self, key: &str, what: Forget) -> Answer<'_, Forgot> {
        let what = if self.is(Quirk::RecordForgetsAnything) { Forget::Claim } else { what };
        self.inner.forget_record(key, what)
    }

    fn sweep_records(&self, most: usize) -> Answer<'_, usize> {
        self.inner.sweep_records(if self.is(Quirk::RecordSweepUnbounded) { usize::MAX } else { most })
    }

    fn acquire_lease(&self, name: &str, ttl: Duration) -> Answer<'_, Acquired> {
        let name = name.to_owned();
        Box::pin(async move {
            match self.inner.acquire_lease(&name, ttl).await? {
                Acquired::Busy { until } if self.is(Quirk::LeaseTwoHolders) => {
                    Ok(Acquired::Held(Lease { fence: 1_000_000, until }))
                }
                answer => Ok(answer),
            }
        })
    }

    fn renew_lease(&self, name: &str, lease: Lease, ttl: Duration) -> Answer<'_, Option<Lease>> {
        self.inner.renew_lease(name, lease, ttl)
    }

    fn release_lease(&self, name: &str, lease: Lease) -> Answer<'_, bool> {
        let name = name.to_owned();
        Box::pin(async move {
            let mut done = self.inner.release_lease(&name, lease).await?;
            if self.is(Quirk::LeaseReleasedByAnyone) {
                for fence in 0..lease.fence + 3 {
                    done |= self.inner.release_lease(&name, Lease { fence, ..lease }).await?;
                }
            }
            Ok(done)
        })
    }

    fn look_lease(&self, name: &str) -> Answer<'_, Option<Status>> {
        let name = name.to_owned();
        Box::pin(async move {
            let status = self.inner.look_lease(&name).await?;
            let is_held = |status: Status| Status { held_until: Some(Time::MAX), ..status };
            Ok(if self.is(Quirk::LeaseLooksHeld) { status.map(is_held) } else { status })
        })
    }

    fn list_leases(&self, after: Option<String>, most: usize) -> Answer<'_, NamedPage<Status>> {
        Box::pin(async move {
            let mut page = self.inner.list_leases(after, most).await?;
            if self.is(Quirk::LeaseListForgets) {
                page.items.pop();
            }
            Ok(page)
        })
    }

    fn reserve(&self, wanted: Vec<Reserve>) -> Answer<'_, Reserved> {
        Box::pin(async move {
            if self.is(Quirk::BucketForgetsSecond) && wanted.len() > 1 {
                let mut zero = wanted.clone();
                zero[1].cost = 0;
                return self.inner.reserve(zero).await;
            }
            match self.inner.reserve(wanted).await? {
                Reserved::Wait { remaining, .. } if self.is(Quirk::BucketGrantsMore) => {
                    Ok(Reserved::Granted { remaining })
                }
                answer => Ok(answer),
            }
        })
    }

    fn settle_bucket(&self, name: &str, settlement: Settlement) -> Answer<'_, Option<Level>> {
        self.inner.settle_bucket(name, settlement)
    }

    fn observe_bucket(&self, name: &str) -> Answer<'_, Option<Level>> {
        let name = name.to_owned();
        Box::pin(async move {
            let level = self.inner.observe_bucket(&name).await?;
            Ok(level.map(|level| match self.quirk {
                Quirk::BucketRounds => Level { carry: 0, ..level },
                Quirk::BucketLosesFloat => Level { tokens: level.tokens as f64 as u64, ..level },
                _ => level,
            }))
        })
    }

    fn list_buckets(&self, after: Option<String>, most: usize) -> Answer<'_, NamedPage<Level>> {
        Box::pin(async move {
            let mut page = self.inner.list_buckets(after, most).await?;
            if self.is(Quirk::BucketListForgets) {
                page.items.pop();
            }
            Ok(page)
        })
    }

    fn forget_bucket(&self, name: &str) -> Answer<'_, bool> {
        let name = name.to_owned();
        Box::pin(async move {
            if self.is(Quirk::BucketForgetsNothing) {
                return Ok(self.inner.observe_bucket(&name).await?.is_some());
            }
            self.inner.forget_bucket(&name).await
        })
    }

    fn open_window(&self, key: &str, level: u8, ttl: Duration) -> Answer<'_, Opened> {
        let key = key.to_owned();
        Box::pin(async move {
            match self.inner.open_window(&key, level, ttl).await? {
                Opened::Wait(window) if self.is(Quirk::WindowAlwaysAsks) => Ok(Opened::Ask(window)),
                answer => Ok(answer),
            }
        })
    }

    fn peek_window(&self, key: &str) -> Answer<'_, Option<Window>> {
        let key = key.to_owned();
        Box::pin(async move {
            let window = self.inner.peek_window(&key).await?;
            let open = self.is(Quirk::WindowNeverCloses).then_some(Window { level: 0, until: Time::MAX });
            Ok(window.or(open))
        })
    }
}
