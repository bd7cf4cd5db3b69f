//! Broken shared records.

use std::time::Duration;

use bytes::Bytes;
use tidegate_core::Time;
use tidegate_core::shared::bucket::{Level, ReservationRequest, ReserveOutcome, Settlement};
use tidegate_core::shared::lease::{AcquireOutcome, Lease, LeaseStatus};
use tidegate_core::shared::record::{
    ForgetOutcome, ForgetTarget, HolderToken, Record, RecordClaim, RecordClaimOutcome,
};
use tidegate_core::shared::window::OpenWindowOutcome;
use tidegate_store::{NamedPage, RecordPage, SharedState, StoreFuture};

use super::{BrokenStore, Quirk};

impl SharedState for BrokenStore {
    fn claim_record<'a>(
        &'a self,
        key: &'a str,
        claim: RecordClaim,
    ) -> StoreFuture<'a, RecordClaimOutcome<Bytes>> {
        Box::pin(async move {
            match self.inner.claim_record(key, claim).await? {
                RecordClaimOutcome::Processing { .. } if self.is(Quirk::RecordTwoWinners) => {
                    Ok(RecordClaimOutcome::Granted { taken_over: false })
                }
                answer => Ok(answer),
            }
        })
    }

    fn complete_record<'a>(
        &'a self,
        key: &'a str,
        holder: HolderToken,
        answer: Bytes,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let done = self.inner.complete_record(key, holder, answer).await?;
            Ok(done || self.is(Quirk::RecordLateComplete))
        })
    }

    fn release_record<'a>(&'a self, key: &'a str, holder: HolderToken) -> StoreFuture<'a, bool> {
        self.inner.release_record(key, holder)
    }

    fn renew_record<'a>(&'a self, key: &'a str, holder: HolderToken, ttl: Duration) -> StoreFuture<'a, bool> {
        self.inner.renew_record(key, holder, ttl)
    }

    fn get_record<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Record<Bytes>>> {
        self.inner.get_record(key)
    }

    fn list_records(&self, after: Option<String>, most: usize) -> StoreFuture<'_, RecordPage> {
        Box::pin(async move {
            let mut page = self.inner.list_records(after, most).await?;
            if self.is(Quirk::RecordListForgets) && page.records.len() > 1 {
                page.records.pop();
            }
            Ok(page)
        })
    }

    fn forget_record<'a>(&'a self, key: &'a str, what: ForgetTarget) -> StoreFuture<'a, ForgetOutcome> {
        let what = if self.is(Quirk::RecordForgetsAnything) { ForgetTarget::Claim } else { what };
        self.inner.forget_record(key, what)
    }

    fn sweep_records(&self, most: usize) -> StoreFuture<'_, usize> {
        self.inner.sweep_records(if self.is(Quirk::RecordSweepUnbounded) { usize::MAX } else { most })
    }

    fn acquire_lease<'a>(&'a self, name: &'a str, ttl: Duration) -> StoreFuture<'a, AcquireOutcome> {
        Box::pin(async move {
            match self.inner.acquire_lease(name, ttl).await? {
                AcquireOutcome::Busy { until } if self.is(Quirk::LeaseTwoHolders) => {
                    Ok(AcquireOutcome::Held(Lease { fence: 1_000_000, until }))
                }
                answer => Ok(answer),
            }
        })
    }

    fn renew_lease<'a>(
        &'a self,
        name: &'a str,
        lease: Lease,
        ttl: Duration,
    ) -> StoreFuture<'a, Option<Lease>> {
        self.inner.renew_lease(name, lease, ttl)
    }

    fn release_lease<'a>(&'a self, name: &'a str, lease: Lease) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let mut done = self.inner.release_lease(name, lease).await?;
            if self.is(Quirk::LeaseReleasedByAnyone) {
                for fence in 0..lease.fence + 3 {
                    done |= self.inner.release_lease(name, Lease { fence, ..lease }).await?;
                }
            }
            Ok(done)
        })
    }

    fn lease_status<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<LeaseStatus>> {
        Box::pin(async move {
            let status = self.inner.lease_status(name).await?;
            let is_held = |status: LeaseStatus| LeaseStatus { held_until: Some(Time::MAX), ..status };
            Ok(if self.is(Quirk::LeaseLooksHeld) { status.map(is_held) } else { status })
        })
    }

    fn list_leases(&self, after: Option<String>, most: usize) -> StoreFuture<'_, NamedPage<LeaseStatus>> {
        Box::pin(async move {
            let mut page = self.inner.list_leases(after, most).await?;
            if self.is(Quirk::LeaseListForgets) {
                page.items.pop();
            }
            Ok(page)
        })
    }

    fn reserve(&self, wanted: Vec<ReservationRequest>) -> StoreFuture<'_, ReserveOutcome> {
        Box::pin(async move {
            if self.is(Quirk::BucketForgetsSecond) && wanted.len() > 1 {
                let mut zero = wanted.clone();
                zero[1].cost = 0;
                return self.inner.reserve(zero).await;
            }
            match self.inner.reserve(wanted).await? {
                ReserveOutcome::Wait { remaining, .. } if self.is(Quirk::BucketGrantsMore) => {
                    Ok(ReserveOutcome::Granted { remaining })
                }
                answer => Ok(answer),
            }
        })
    }

    fn settle_bucket<'a>(&'a self, name: &'a str, settlement: Settlement) -> StoreFuture<'a, Option<Level>> {
        self.inner.settle_bucket(name, settlement)
    }

    fn observe_bucket<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<Level>> {
        Box::pin(async move {
            let level = self.inner.observe_bucket(name).await?;
            Ok(level.map(|level| match self.quirk {
                Quirk::BucketRounds => Level { carry: 0, ..level },
                Quirk::BucketLosesFloat => Level { tokens: level.tokens as f64 as u64, ..level },
                _ => level,
            }))
        })
    }

    fn list_buckets(&self, after: Option<String>, most: usize) -> StoreFuture<'_, NamedPage<Level>> {
        Box::pin(async move {
            let mut page = self.inner.list_buckets(after, most).await?;
            if self.is(Quirk::BucketListForgets) {
                page.items.pop();
            }
            Ok(page)
        })
    }

    fn forget_bucket<'a>(&'a self, name: &'a str) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            if self.is(Quirk::BucketForgetsNothing) {
                return Ok(self.inner.observe_bucket(name).await?.is_some());
            }
            self.inner.forget_bucket(name).await
        })
    }

    fn open_window<'a>(
        &'a self,
        key: &'a str,
        level: u8,
        ttl: Duration,
    ) -> StoreFuture<'a, OpenWindowOutcome> {
        Box::pin(async move {
            let ttl = if self.is(Quirk::WindowNeverCloses) { Duration::MAX } else { ttl };
            match self.inner.open_window(key, level, ttl).await? {
                OpenWindowOutcome::Wait(window) if self.is(Quirk::WindowAlwaysAsks) => {
                    Ok(OpenWindowOutcome::Ask(window))
                }
                answer => Ok(answer),
            }
        })
    }
}
