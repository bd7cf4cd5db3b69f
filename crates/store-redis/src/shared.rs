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
use tidegate_core::shared::window::OpenWindowOutcome;
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
    fn claim_record<'a>(
        &'a self,
        key: &'a str,
        claim: RecordClaim,
    ) -> StoreFuture<'a, RecordClaimOutcome<Bytes>> {
        Box::pin(self.claim(key, claim))
    }

    fn complete_record<'a>(
        &'a self,
        key: &'a str,
        holder: HolderToken,
        answer: Bytes,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.complete(key, holder, &answer).await })
    }

    fn release_record<'a>(&'a self, key: &'a str, holder: HolderToken) -> StoreFuture<'a, bool> {
        Box::pin(self.release_claim(key, holder))
    }

    fn renew_record<'a>(&'a self, key: &'a str, holder: HolderToken, ttl: Duration) -> StoreFuture<'a, bool> {
        Box::pin(self.renew_claim(key, holder, ttl))
    }

    fn get_record<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Record<Bytes>>> {
        Box::pin(self.look_at_record(key))
    }

    fn list_records(&self, after: Option<String>, most: usize) -> StoreFuture<'_, RecordPage> {
        Box::pin(async move { self.page_of_records(after.as_deref(), most).await })
    }

    fn forget_record<'a>(&'a self, key: &'a str, what: ForgetTarget) -> StoreFuture<'a, ForgetOutcome> {
        Box::pin(self.forget(key, what))
    }

    fn sweep_records(&self, most: usize) -> StoreFuture<'_, usize> {
        Box::pin(self.sweep_expired(most))
    }

    fn acquire_lease<'a>(&'a self, name: &'a str, ttl: Duration) -> StoreFuture<'a, AcquireOutcome> {
        Box::pin(self.acquire(name, ttl))
    }

    fn renew_lease<'a>(
        &'a self,
        name: &'a str,
        lease: Lease,
        ttl: Duration,
    ) -> StoreFuture<'a, Option<Lease>> {
        Box::pin(self.keep_lease(name, lease, ttl))
    }

    fn release_lease<'a>(&'a self, name: &'a str, lease: Lease) -> StoreFuture<'a, bool> {
        Box::pin(async move { Ok(self.keep_lease(name, lease, Duration::ZERO).await?.is_some()) })
    }

    fn lease_status<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<LeaseStatus>> {
        Box::pin(self.look_at_lease(name))
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

    fn settle_bucket<'a>(&'a self, name: &'a str, settlement: Settlement) -> StoreFuture<'a, Option<Level>> {
        Box::pin(self.settle(name, settlement))
    }

    fn observe_bucket<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<Level>> {
        Box::pin(self.observe(name))
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

    fn forget_bucket<'a>(&'a self, name: &'a str) -> StoreFuture<'a, bool> {
        Box::pin(self.forget_one_bucket(name))
    }

    fn open_window<'a>(
        &'a self,
        key: &'a str,
        level: u8,
        ttl: Duration,
    ) -> StoreFuture<'a, OpenWindowOutcome> {
        Box::pin(self.open_one(key, level, ttl))
    }
}
