//! Small records that any process may need at once, without an owner in between: idempotency
//! records, named leases, stand-alone buckets, hydration windows. Each method is one atomic step
//! and returns exactly what the pure function of the same name in `tidegate_core::shared` returns
//! for the current state, by the store's own clock.

use std::time::Duration;

use bytes::Bytes;
use tidegate_core::shared::bucket::{Level, ReservationRequest, ReserveOutcome, Settlement};
use tidegate_core::shared::lease::{AcquireOutcome, Lease, LeaseStatus};
use tidegate_core::shared::record::{
    ForgetOutcome, ForgetTarget, HolderToken, Record, RecordClaim, RecordClaimOutcome,
};
use tidegate_core::shared::window::OpenWindowOutcome;

use crate::{Hints, StoreFuture};

/// Records that any process may access.
pub trait SharedState: Hints {
    /// Claims an idempotency key, or returns why it cannot be claimed.
    fn claim_record<'a>(
        &'a self,
        key: &'a str,
        claim: RecordClaim,
    ) -> StoreFuture<'a, RecordClaimOutcome<Bytes>>;

    /// Stores the answer under a held key; `false` when the holder has lost it.
    fn complete_record<'a>(
        &'a self,
        key: &'a str,
        holder: HolderToken,
        answer: Bytes,
    ) -> StoreFuture<'a, bool>;

    /// Releases a key as if it had never been claimed; `false` when the holder has lost it.
    fn release_record<'a>(&'a self, key: &'a str, holder: HolderToken) -> StoreFuture<'a, bool>;

    /// Renews a key for another `ttl`; `false` when the holder has lost it.
    fn renew_record<'a>(&'a self, key: &'a str, holder: HolderToken, ttl: Duration) -> StoreFuture<'a, bool>;

    /// Returns the current record under a key; `None` when there is none or it has expired.
    fn get_record<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Record<Bytes>>>;

    /// Returns a page of the current records, in an order of the store's own; records claimed or
    /// removed meanwhile may or may not be included. `after` is the `next` of the previous page. A
    /// page may be short, even empty, without being the last.
    fn list_records(&self, after: Option<String>, most: usize) -> StoreFuture<'_, RecordPage>;

    /// Removes a claim or an answer on an operator's command, whoever holds it.
    fn forget_record<'a>(&'a self, key: &'a str, what: ForgetTarget) -> StoreFuture<'a, ForgetOutcome>;

    /// Removes at most `most` completed records that have expired; returns how many.
    fn sweep_records(&self, most: usize) -> StoreFuture<'_, usize>;

    /// Acquires a named lease if it is free.
    fn acquire_lease<'a>(&'a self, name: &'a str, ttl: Duration) -> StoreFuture<'a, AcquireOutcome>;

    /// Renews a lease; `None` when the holder has lost it.
    fn renew_lease<'a>(
        &'a self,
        name: &'a str,
        lease: Lease,
        ttl: Duration,
    ) -> StoreFuture<'a, Option<Lease>>;

    /// Releases a lease; `false` when the holder has lost it.
    fn release_lease<'a>(&'a self, name: &'a str, lease: Lease) -> StoreFuture<'a, bool>;

    /// Returns the status of a lease; `None` when it was never held.
    fn lease_status<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<LeaseStatus>>;

    /// Returns a page of the leases that are or were held, in an order of the store's own. `after`
    /// is the `next` of the previous page. A page may be short, even empty, without being the last.
    fn list_leases(&self, after: Option<String>, most: usize) -> StoreFuture<'_, NamedPage<LeaseStatus>>;

    /// Takes from every bucket, or from none and returns the delay.
    fn reserve(&self, wanted: Vec<ReservationRequest>) -> StoreFuture<'_, ReserveOutcome>;

    /// Corrects a reservation by its actual cost.
    fn settle_bucket<'a>(&'a self, name: &'a str, settlement: Settlement) -> StoreFuture<'a, Option<Level>>;

    /// Returns the current level of a bucket; `None` when it was never used.
    fn observe_bucket<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<Level>>;

    /// Returns a page of the buckets in use, with the current level of each, in an order of the
    /// store's own. `after` is the `next` of the previous page. A page may be short, even empty,
    /// without being the last.
    fn list_buckets(&self, after: Option<String>, most: usize) -> StoreFuture<'_, NamedPage<Level>>;

    /// Removes a bucket: its next user finds it full. `false` when it was never used.
    fn forget_bucket<'a>(&'a self, name: &'a str) -> StoreFuture<'a, bool>;

    /// Opens a hydration window, or returns the one that is open.
    fn open_window<'a>(
        &'a self,
        key: &'a str,
        level: u8,
        ttl: Duration,
    ) -> StoreFuture<'a, OpenWindowOutcome>;
}

/// A page of records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordPage {
    /// The key and record of each; an answer is replaced by its size in bytes.
    pub records: Vec<(String, Record<usize>)>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<String>,
}

/// A page of named items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPage<T> {
    /// The name and state of each item.
    pub items: Vec<(String, T)>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<String>,
}
