//! Shared records on Redis: each verb is one short script that does the same as the pure function
//! in `core`. For buckets, the scripts return the state before, and the pure function interprets
//! it. Idempotency records use plain commands where they can.

mod buckets;
mod leases;
mod name_pages;
mod record_pages;
mod record_swap;
mod record_sweep;
mod record_value;
mod records;
mod windows;

use std::time::Duration;

use bytes::Bytes;
use redis::Value;
use tidegate_core::shared::bucket::{Level, ReservationRequest, ReserveOutcome, Settlement};
use tidegate_core::shared::lease::{AcquireOutcome, Lease, LeaseStatus};
use tidegate_core::shared::record::{
    ForgetOutcome, ForgetTarget, HolderToken, Record, RecordClaim, RecordClaimOutcome,
};
use tidegate_core::shared::window::{HydrationWindow, OpenWindowOutcome};
use tidegate_store::{NamedPage, RecordPage, Result, SharedState, StoreFuture};

use crate::RedisStore;
use crate::errors::undecided;
use crate::scripts::ScriptCall;

impl RedisStore {
    /// Calls a script that changes a shared record.
    pub(crate) async fn run_script(&self, doing: &str, call: &ScriptCall<'_>) -> Result<Value> {
        call.send(&self.connection).await.map_err(|failed| undecided(self.connection.name(), doing, failed))
    }
}

impl SharedState for RedisStore {
    fn claim_record(&self, key: &str, claim: RecordClaim) -> StoreFuture<'_, RecordClaimOutcome<Bytes>> {
        let key = key.to_owned();
        Box::pin(async move { self.claim(&key, claim).await })
    }

    fn complete_record(&self, key: &str, holder: HolderToken, answer: Bytes) -> StoreFuture<'_, bool> {
        let key = key.to_owned();
        Box::pin(async move { self.complete(&key, holder, &answer).await })
    }

    fn release_record(&self, key: &str, holder: HolderToken) -> StoreFuture<'_, bool> {
        let key = key.to_owned();
        Box::pin(async move { self.release_claim(&key, holder).await })
    }

    fn renew_record(&self, key: &str, holder: HolderToken, ttl: Duration) -> StoreFuture<'_, bool> {
        let key = key.to_owned();
        Box::pin(async move { self.renew_claim(&key, holder, ttl).await })
    }

    fn get_record(&self, key: &str) -> StoreFuture<'_, Option<Record<Bytes>>> {
        let key = key.to_owned();
        Box::pin(async move { self.look_at_record(&key).await })
    }

    fn list_records(&self, after: Option<String>, most: usize) -> StoreFuture<'_, RecordPage> {
        Box::pin(async move { self.page_of_records(after.as_deref(), most).await })
    }

    fn forget_record(&self, key: &str, what: ForgetTarget) -> StoreFuture<'_, ForgetOutcome> {
        let key = key.to_owned();
        Box::pin(async move { self.forget(&key, what).await })
    }

    fn sweep_records(&self, most: usize) -> StoreFuture<'_, usize> {
        Box::pin(self.sweep_expired(most))
    }

    fn acquire_lease(&self, name: &str, ttl: Duration) -> StoreFuture<'_, AcquireOutcome> {
        let name = name.to_owned();
        Box::pin(async move { self.acquire(&name, ttl).await })
    }

    fn renew_lease(&self, name: &str, lease: Lease, ttl: Duration) -> StoreFuture<'_, Option<Lease>> {
        let name = name.to_owned();
        Box::pin(async move { self.keep_lease(&name, lease, ttl).await })
    }

    fn release_lease(&self, name: &str, lease: Lease) -> StoreFuture<'_, bool> {
        let name = name.to_owned();
        Box::pin(async move { Ok(self.keep_lease(&name, lease, Duration::ZERO).await?.is_some()) })
    }

    fn lease_status(&self, name: &str) -> StoreFuture<'_, Option<LeaseStatus>> {
        let name = name.to_owned();
        Box::pin(async move { self.look_at_lease(&name).await })
    }

    fn list_leases(&self, after: Option<String>, most: usize) -> StoreFuture<'_, NamedPage<LeaseStatus>> {
        Box::pin(async move {
            let names = self.page_of_names(&self.keys.leases(), after.as_deref(), most).await?;
            let mut items = Vec::with_capacity(names.names.len());
            for name in names.names {
                items.extend(self.look_at_lease(&name).await?.map(|status| (name, status)));
            }
            Ok(NamedPage { items, next: names.next })
        })
    }

    fn reserve(&self, wanted: Vec<ReservationRequest>) -> StoreFuture<'_, ReserveOutcome> {
        Box::pin(async move { self.reserve_all(&wanted).await })
    }

    fn settle_bucket(&self, name: &str, settlement: Settlement) -> StoreFuture<'_, Option<Level>> {
        let name = name.to_owned();
        Box::pin(async move { self.settle(&name, settlement).await })
    }

    fn observe_bucket(&self, name: &str) -> StoreFuture<'_, Option<Level>> {
        let name = name.to_owned();
        Box::pin(async move { self.observe(&name).await })
    }

    fn list_buckets(&self, after: Option<String>, most: usize) -> StoreFuture<'_, NamedPage<Level>> {
        Box::pin(async move {
            let names = self.page_of_names(&self.keys.buckets(), after.as_deref(), most).await?;
            let mut items = Vec::with_capacity(names.names.len());
            for name in names.names {
                items.extend(self.observe(&name).await?.map(|level| (name, level)));
            }
            Ok(NamedPage { items, next: names.next })
        })
    }

    fn forget_bucket(&self, name: &str) -> StoreFuture<'_, bool> {
        let name = name.to_owned();
        Box::pin(async move { self.forget_one_bucket(&name).await })
    }

    fn open_window(&self, key: &str, level: u8, ttl: Duration) -> StoreFuture<'_, OpenWindowOutcome> {
        let key = key.to_owned();
        Box::pin(async move { self.open_one(&key, level, ttl).await })
    }

    fn peek_window(&self, key: &str) -> StoreFuture<'_, Option<HydrationWindow>> {
        let key = key.to_owned();
        Box::pin(async move { self.peek(&key).await })
    }
}
