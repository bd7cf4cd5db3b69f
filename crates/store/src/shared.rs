//! Small facts that any process may need at once, with no owner in between: idempotency records, named leases,
//! stand-alone buckets, hydration windows. Each verb is one atomic step and answers exactly as the pure function
//! of the same name in `tidegate_core::shared` does on the state that was there, by the store's own clock.

use std::time::Duration;

use bytes::Bytes;
use tidegate_core::shared::bucket::{Level, ReservationRequest, ReserveOutcome, Settlement};
use tidegate_core::shared::lease::{AcquireOutcome, Lease, LeaseStatus};
use tidegate_core::shared::record::{
    ForgetOutcome, ForgetTarget, HolderToken, Record, RecordClaim, RecordClaimOutcome,
};
use tidegate_core::shared::window::{HydrationWindow, OpenWindowOutcome};

use crate::StoreFuture;

/// Records that any process may touch.
pub trait SharedState: Send + Sync {
    /// Claims an idempotency key, or says what stands in the way.
    fn claim_record(&self, key: &str, claim: RecordClaim) -> StoreFuture<'_, RecordClaimOutcome<Bytes>>;

    /// Stores the answer under a key that is held; `false` when the holder has lost it.
    fn complete_record(&self, key: &str, holder: HolderToken, answer: Bytes) -> StoreFuture<'_, bool>;

    /// Gives a key back as if it had never been claimed; `false` when the holder has lost it.
    fn release_record(&self, key: &str, holder: HolderToken) -> StoreFuture<'_, bool>;

    /// Keeps a key for another `ttl`; `false` when the holder has lost it.
    fn renew_record(&self, key: &str, holder: HolderToken, ttl: Duration) -> StoreFuture<'_, bool>;

    /// What stands under a key now; `None` when nothing does or its time is up.
    fn get_record(&self, key: &str) -> StoreFuture<'_, Option<Record<Bytes>>>;

    /// A page of the records that stand now, in an order of the store's own; what is claimed or goes meanwhile may be
    /// in it or not. `after` is the `next` of the page before. A page may be short, even empty, and not the last.
    fn list_records(&self, after: Option<String>, most: usize) -> StoreFuture<'_, RecordPage>;

    /// Takes a claim or an answer away by a person's order, whoever holds it.
    fn forget_record(&self, key: &str, what: ForgetTarget) -> StoreFuture<'_, ForgetOutcome>;

    /// Removes at most `most` completed records that have expired; answers how many.
    fn sweep_records(&self, most: usize) -> StoreFuture<'_, usize>;

    /// Takes a named lease if it is free.
    fn acquire_lease(&self, name: &str, ttl: Duration) -> StoreFuture<'_, AcquireOutcome>;

    /// Keeps a lease; `None` when the holder has lost it.
    fn renew_lease(&self, name: &str, lease: Lease, ttl: Duration) -> StoreFuture<'_, Option<Lease>>;

    /// Gives a lease back; `false` when the holder has lost it.
    fn release_lease(&self, name: &str, lease: Lease) -> StoreFuture<'_, bool>;

    /// How a lease stands now; `None` when nobody has ever held it.
    fn lease_status(&self, name: &str) -> StoreFuture<'_, Option<LeaseStatus>>;

    /// A page of the leases that somebody holds or held, in an order of the store's own. `after` is
    /// the `next` of the page before. A page may be short, even empty, and not the last.
    fn list_leases(&self, after: Option<String>, most: usize) -> StoreFuture<'_, NamedPage<LeaseStatus>>;

    /// Takes from every bucket, or from none and says when.
    fn reserve(&self, wanted: Vec<ReservationRequest>) -> StoreFuture<'_, ReserveOutcome>;

    /// Corrects what was taken by what it really cost.
    fn settle_bucket(&self, name: &str, settlement: Settlement) -> StoreFuture<'_, Option<Level>>;

    /// What is in a bucket now; `None` when nobody has used it.
    fn observe_bucket(&self, name: &str) -> StoreFuture<'_, Option<Level>>;

    /// A page of the buckets that somebody has used, with what is in each now, in an order of the
    /// store's own. `after` is the `next` of the page before. A page may be short, even empty, and
    /// not the last.
    fn list_buckets(&self, after: Option<String>, most: usize) -> StoreFuture<'_, NamedPage<Level>>;

    /// Forgets a bucket: whoever uses it next finds it full. `false` when nobody has used it.
    fn forget_bucket(&self, name: &str) -> StoreFuture<'_, bool>;

    /// Opens a hydration window, or says that one is open.
    fn open_window(&self, key: &str, level: u8, ttl: Duration) -> StoreFuture<'_, OpenWindowOutcome>;

    /// The window that is open now.
    fn peek_window(&self, key: &str) -> StoreFuture<'_, Option<HydrationWindow>>;
}

/// Some of the records that stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordPage {
    /// The key of each and where it stands; of an answer, how many bytes it has.
    pub records: Vec<(String, Record<usize>)>,
    /// Where the next page begins; `None` when this was the last.
    pub next: Option<String>,
}

/// Some of what is kept by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPage<T> {
    /// The name of each and how it stands.
    pub items: Vec<(String, T)>,
    /// Where the next page begins; `None` when this was the last.
    pub next: Option<String>,
}
