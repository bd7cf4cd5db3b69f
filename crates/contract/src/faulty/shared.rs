//! The shared records of a store with fault injection.

use std::time::Duration;

use bytes::Bytes;
use tidegate_core::shared::bucket::{Level, ReservationRequest, ReserveOutcome, Settlement};
use tidegate_core::shared::lease::{AcquireOutcome, Lease, LeaseStatus};
use tidegate_core::shared::record::{
    ForgetOutcome, ForgetTarget, HolderToken, Record, RecordClaim, RecordClaimOutcome,
};
use tidegate_core::shared::window::OpenWindowOutcome;
use tidegate_store::{NamedPage, RecordPage, SharedState, StoreFuture};

use super::{FaultyStore, StoreMethod};

impl SharedState for FaultyStore {
    fn claim_record<'a>(
        &'a self,
        key: &'a str,
        claim: RecordClaim,
    ) -> StoreFuture<'a, RecordClaimOutcome<Bytes>> {
        self.call_with_fault(StoreMethod::ClaimRecord, move || self.inner.claim_record(key, claim))
    }

    fn complete_record<'a>(
        &'a self,
        key: &'a str,
        holder: HolderToken,
        answer: Bytes,
    ) -> StoreFuture<'a, bool> {
        self.call_with_fault(StoreMethod::CompleteRecord, move || {
            self.inner.complete_record(key, holder, answer)
        })
    }

    fn release_record<'a>(&'a self, key: &'a str, holder: HolderToken) -> StoreFuture<'a, bool> {
        self.call_with_fault(StoreMethod::ReleaseRecord, move || self.inner.release_record(key, holder))
    }

    fn renew_record<'a>(&'a self, key: &'a str, holder: HolderToken, ttl: Duration) -> StoreFuture<'a, bool> {
        self.call_with_fault(StoreMethod::RenewRecord, move || self.inner.renew_record(key, holder, ttl))
    }

    fn get_record<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Record<Bytes>>> {
        self.call_with_fault(StoreMethod::GetRecord, move || self.inner.get_record(key))
    }

    fn list_records(&self, after: Option<String>, most: usize) -> StoreFuture<'_, RecordPage> {
        self.call_with_fault(StoreMethod::ListRecords, move || self.inner.list_records(after, most))
    }

    fn forget_record<'a>(&'a self, key: &'a str, what: ForgetTarget) -> StoreFuture<'a, ForgetOutcome> {
        self.call_with_fault(StoreMethod::ForgetRecord, move || self.inner.forget_record(key, what))
    }

    fn sweep_records(&self, most: usize) -> StoreFuture<'_, usize> {
        self.call_with_fault(StoreMethod::SweepRecords, move || self.inner.sweep_records(most))
    }

    fn acquire_lease<'a>(&'a self, name: &'a str, ttl: Duration) -> StoreFuture<'a, AcquireOutcome> {
        self.call_with_fault(StoreMethod::AcquireLease, move || self.inner.acquire_lease(name, ttl))
    }

    fn renew_lease<'a>(
        &'a self,
        name: &'a str,
        lease: Lease,
        ttl: Duration,
    ) -> StoreFuture<'a, Option<Lease>> {
        self.call_with_fault(StoreMethod::RenewLease, move || self.inner.renew_lease(name, lease, ttl))
    }

    fn release_lease<'a>(&'a self, name: &'a str, lease: Lease) -> StoreFuture<'a, bool> {
        self.call_with_fault(StoreMethod::ReleaseLease, move || self.inner.release_lease(name, lease))
    }

    fn lease_status<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<LeaseStatus>> {
        self.call_with_fault(StoreMethod::LeaseStatus, move || self.inner.lease_status(name))
    }

    fn list_leases(&self, after: Option<String>, most: usize) -> StoreFuture<'_, NamedPage<LeaseStatus>> {
        self.call_with_fault(StoreMethod::ListLeases, move || self.inner.list_leases(after, most))
    }

    fn reserve(&self, wanted: Vec<ReservationRequest>) -> StoreFuture<'_, ReserveOutcome> {
        self.call_with_fault(StoreMethod::Reserve, move || self.inner.reserve(wanted))
    }

    fn settle_bucket<'a>(&'a self, name: &'a str, settlement: Settlement) -> StoreFuture<'a, Option<Level>> {
        self.call_with_fault(StoreMethod::SettleBucket, move || self.inner.settle_bucket(name, settlement))
    }

    fn observe_bucket<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<Level>> {
        self.call_with_fault(StoreMethod::ObserveBucket, move || self.inner.observe_bucket(name))
    }

    fn list_buckets(&self, after: Option<String>, most: usize) -> StoreFuture<'_, NamedPage<Level>> {
        self.call_with_fault(StoreMethod::ListBuckets, move || self.inner.list_buckets(after, most))
    }

    fn forget_bucket<'a>(&'a self, name: &'a str) -> StoreFuture<'a, bool> {
        self.call_with_fault(StoreMethod::ForgetBucket, move || self.inner.forget_bucket(name))
    }

    fn open_window<'a>(
        &'a self,
        key: &'a str,
        level: u8,
        ttl: Duration,
    ) -> StoreFuture<'a, OpenWindowOutcome> {
        self.call_with_fault(StoreMethod::OpenWindow, move || self.inner.open_window(key, level, ttl))
    }
}
