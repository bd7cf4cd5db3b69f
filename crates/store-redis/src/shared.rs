//! Shared records on Redis: each verb is one short script that does to what is kept what the pure function in `core`
//! does. Of buckets the scripts answer what was there before, and the pure function says what that means. Idempotency
//! records go by plain commands where they can.

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
use tidegate_core::shared::bucket::{Level, Reserve, Reserved, Settlement};
use tidegate_core::shared::lease::{Acquired, Lease, Status};
use tidegate_core::shared::record::{Claim, Claimed, Forget, Forgot, Record, Token};
use tidegate_core::shared::window::{Opened, Window};
use tidegate_store::{Answer, NamedPage, RecordPage, Result, Shared};

use crate::Redis;
use crate::scripts::Call;
use crate::trouble::undecided;

impl Redis {
    /// Calls a script that changes a shared record.
    pub(crate) async fn step(&self, doing: &str, call: &Call<'_>) -> Result<Value> {
        call.send(&self.link).await.map_err(|failed| undecided(self.link.name(), doing, failed))
    }
}

impl Shared for Redis {
    fn claim_record(&self, key: &str, claim: Claim) -> Answer<'_, Claimed<Bytes>> {
        let key = key.to_owned();
        Box::pin(async move { self.claim(&key, claim).await })
    }

    fn complete_record(&self, key: &str, holder: Token, answer: Bytes) -> Answer<'_, bool> {
        let key = key.to_owned();
        Box::pin(async move { self.complete(&key, holder, &answer).await })
    }

    fn release_record(&self, key: &str, holder: Token) -> Answer<'_, bool> {
        let key = key.to_owned();
        Box::pin(async move { self.release_claim(&key, holder).await })
    }

    fn renew_record(&self, key: &str, holder: Token, ttl: Duration) -> Answer<'_, bool> {
        let key = key.to_owned();
        Box::pin(async move { self.renew_claim(&key, holder, ttl).await })
    }

    fn look_record(&self, key: &str) -> Answer<'_, Option<Record<Bytes>>> {
        let key = key.to_owned();
        Box::pin(async move { self.look_at_record(&key).await })
    }

    fn list_records(&self, after: Option<String>, most: usize) -> Answer<'_, RecordPage> {
        Box::pin(async move { self.page_of_records(after.as_deref(), most).await })
    }

    fn forget_record(&self, key: &str, what: Forget) -> Answer<'_, Forgot> {
        let key = key.to_owned();
        Box::pin(async move { self.forget(&key, what).await })
    }

    fn sweep_records(&self, most: usize) -> Answer<'_, usize> {
        Box::pin(self.sweep_expired(most))
    }

    fn acquire_lease(&self, name: &str, ttl: Duration) -> Answer<'_, Acquired> {
        let name = name.to_owned();
        Box::pin(async move { self.acquire(&name, ttl).await })
    }

    fn renew_lease(&self, name: &str, lease: Lease, ttl: Duration) -> Answer<'_, Option<Lease>> {
        let name = name.to_owned();
        Box::pin(async move { self.keep_lease(&name, lease, ttl).await })
    }

    fn release_lease(&self, name: &str, lease: Lease) -> Answer<'_, bool> {
        let name = name.to_owned();
        Box::pin(async move { Ok(self.keep_lease(&name, lease, Duration::ZERO).await?.is_some()) })
    }

    fn look_lease(&self, name: &str) -> Answer<'_, Option<Status>> {
        let name = name.to_owned();
        Box::pin(async move { self.look_at_lease(&name).await })
    }

    fn list_leases(&self, after: Option<String>, most: usize) -> Answer<'_, NamedPage<Status>> {
        Box::pin(async move {
            let names = self.page_of_names(&self.keys.leases(), after.as_deref(), most).await?;
            let mut items = Vec::with_capacity(names.names.len());
            for name in names.names {
                items.extend(self.look_at_lease(&name).await?.map(|status| (name, status)));
            }
            Ok(NamedPage { items, next: names.next })
        })
    }

    fn reserve(&self, wanted: Vec<Reserve>) -> Answer<'_, Reserved> {
        Box::pin(async move { self.reserve_all(&wanted).await })
    }

    fn settle_bucket(&self, name: &str, settlement: Settlement) -> Answer<'_, Option<Level>> {
        let name = name.to_owned();
        Box::pin(async move { self.settle(&name, settlement).await })
    }

    fn observe_bucket(&self, name: &str) -> Answer<'_, Option<Level>> {
        let name = name.to_owned();
        Box::pin(async move { self.observe(&name).await })
    }

    fn list_buckets(&self, after: Option<String>, most: usize) -> Answer<'_, NamedPage<Level>> {
        Box::pin(async move {
            let names = self.page_of_names(&self.keys.buckets(), after.as_deref(), most).await?;
            let mut items = Vec::with_capacity(names.names.len());
            for name in names.names {
                items.extend(self.observe(&name).await?.map(|level| (name, level)));
            }
            Ok(NamedPage { items, next: names.next })
        })
    }

    fn forget_bucket(&self, name: &str) -> Answer<'_, bool> {
        let name = name.to_owned();
        Box::pin(async move { self.forget_one_bucket(&name).await })
    }

    fn open_window(&self, key: &str, level: u8, ttl: Duration) -> Answer<'_, Opened> {
        let key = key.to_owned();
        Box::pin(async move { self.open_one(&key, level, ttl).await })
    }

    fn peek_window(&self, key: &str) -> Answer<'_, Option<Window>> {
        let key = key.to_owned();
        Box::pin(async move { self.peek(&key).await })
    }
}
