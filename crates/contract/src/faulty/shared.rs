//! The shared records of a store that fails on purpose.

use std::time::Duration;

use bytes::Bytes;
use tidegate_core::shared::bucket::{Level, Reserve, Reserved, Settlement};
use tidegate_core::shared::lease::{Acquired, Lease, Status};
use tidegate_core::shared::record::{Claim, Claimed, Forget, Forgot, Record, Token};
use tidegate_core::shared::window::{Opened, Window};
use tidegate_store::{Answer, NamedPage, RecordPage, Shared};

use super::{Faulty, Verb};

impl Shared for Faulty {
    fn claim_record(&self, key: &str, claim: Claim) -> Answer<'_, Claimed<Bytes>> {
        let key = key.to_owned();
        self.pass(Verb::ClaimRecord, move || self.inner.claim_record(&key, claim))
    }

    fn complete_record(&self, key: &str, holder: Token, answer: Bytes) -> Answer<'_, bool> {
        let key = key.to_owned();
        self.pass(Verb::CompleteRecord, move || self.inner.complete_record(&key, holder, answer))
    }

    fn release_record(&self, key: &str, holder: Token) -> Answer<'_, bool> {
        let key = key.to_owned();
        self.pass(Verb::ReleaseRecord, move || self.inner.release_record(&key, holder))
    }

    fn renew_record(&self, key: &str, holder: Token, ttl: Duration) -> Answer<'_, bool> {
        let key = key.to_owned();
        self.pass(Verb::RenewRecord, move || self.inner.renew_record(&key, holder, ttl))
    }

    fn look_record(&self, key: &str) -> Answer<'_, Option<Record<Bytes>>> {
        let key = key.to_owned();
        self.pass(Verb::LookRecord, move || self.inner.look_record(&key))
    }

    fn list_records(&self, after: Option<String>, most: usize) -> Answer<'_, RecordPage> {
        self.pass(Verb::ListRecords, move || self.inner.list_records(after, most))
    }

    fn forget_record(&self, key: &str, what: Forget) -> Answer<'_, Forgot> {
        let key = key.to_owned();
        self.pass(Verb::ForgetRecord, move || self.inner.forget_record(&key, what))
    }

    fn sweep_records(&self, most: usize) -> Answer<'_, usize> {
        self.pass(Verb::SweepRecords, move || self.inner.sweep_records(most))
    }

    fn acquire_lease(&self, name: &str, ttl: Duration) -> Answer<'_, Acquired> {
        let name = name.to_owned();
        self.pass(Verb::AcquireLease, move || self.inner.acquire_lease(&name, ttl))
    }

    fn renew_lease(&self, name: &str, lease: Lease, ttl: Duration) -> Answer<'_, Option<Lease>> {
        let name = name.to_owned();
        self.pass(Verb::RenewLease, move || self.inner.renew_lease(&name, lease, ttl))
    }

    fn release_lease(&self, name: &str, lease: Lease) -> Answer<'_, bool> {
        let name = name.to_owned();
        self.pass(Verb::ReleaseLease, move || self.inner.release_lease(&name, lease))
    }

    fn look_lease(&self, name: &str) -> Answer<'_, Option<Status>> {
        let name = name.to_owned();
        self.pass(Verb::LookLease, move || self.inner.look_lease(&name))
    }

    fn list_leases(&self, after: Option<String>, most: usize) -> Answer<'_, NamedPage<Status>> {
        self.pass(Verb::ListLeases, move || self.inner.list_leases(after, most))
    }

    fn reserve(&self, wanted: Vec<Reserve>) -> Answer<'_, Reserved> {
        self.pass(Verb::Reserve, move || self.inner.reserve(wanted))
    }

    fn settle_bucket(&self, name: &str, settlement: Settlement) -> Answer<'_, Option<Level>> {
        let name = name.to_owned();
        self.pass(Verb::SettleBucket, move || self.inner.settle_bucket(&name, settlement))
    }

    fn observe_bucket(&self, name: &str) -> Answer<'_, Option<Level>> {
        let name = name.to_owned();
        self.pass(Verb::ObserveBucket, move || self.inner.observe_bucket(&name))
    }

    fn list_buckets(&self, after: Option<String>, most: usize) -> Answer<'_, NamedPage<Level>> {
        self.pass(Verb::ListBuckets, move || self.inner.list_buckets(after, most))
    }

    fn forget_bucket(&self, name: &str) -> Answer<'_, bool> {
        let name = name.to_owned();
        self.pass(Verb::ForgetBucket, move || self.inner.forget_bucket(&name))
    }

    fn open_window(&self, key: &str, level: u8, ttl: Duration) -> Answer<'_, Opened> {
        let key = key.to_owned();
        self.pass(Verb::OpenWindow, move || self.inner.open_window(&key, level, ttl))
    }

    fn peek_window(&self, key: &str) -> Answer<'_, Option<Window>> {
        let key = key.to_owned();
        self.pass(Verb::PeekWindow, move || self.inner.peek_window(&key))
    }
}
