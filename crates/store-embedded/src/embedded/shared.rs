//! Shared records on SQLite: each verb is a step of the writer that reads the row, calls the pure
//! function in `core`, and stores the result. Read-only verbs do not involve the writer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::Time;
use tidegate_core::shared::bucket::{self, Level, ReservationRequest, ReserveOutcome, Settlement};
use tidegate_core::shared::lease::{self, AcquireOutcome, Lease, LeaseStatus};
use tidegate_core::shared::record::{
    self, ForgetOutcome, ForgetTarget, HolderToken, Record, RecordClaim, RecordClaimOutcome,
};
use tidegate_core::shared::window::{self, OpenWindowOutcome};
use tidegate_store::{NamedPage, RecordPage, Result, SharedState, StoreFuture};

use super::writer::{StepContext, StepResult};
use super::{EmbeddedStore, SHARED_IN, record_rows, shared_rows as rows};
use crate::checks;

/// The records that one transaction removes.
const SWEPT_AT_ONCE: usize = 256;

impl EmbeddedStore {
    /// Runs one step of the writer of shared records.
    fn write_shared<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut StepContext<'_>) -> StepResult<T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        Box::pin(async move { self.partition(SHARED_IN).await?.write_and_mark(1, work, |_| {}).await })
    }

    /// Runs one read of shared records.
    fn read_shared<T: Send + 'static>(
        &self,
        look: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        Box::pin(async move { self.partition(SHARED_IN).await?.read(look).await })
    }

    /// Runs one step on a record. The function returns the new state, whether to write it, and the
    /// result.
    fn change_record<T: Send + 'static>(
        &self,
        key: &str,
        mut decide: impl FnMut(Option<Record<Bytes>>, Time) -> (Option<Record<Bytes>>, bool, T) + Send + 'static,
    ) -> StoreFuture<'_, T> {
        let (key, recent) = (key.to_owned(), Arc::clone(&self.record_cache));
        Box::pin(async move {
            let name = key.clone();
            let step = move |desk: &mut StepContext<'_>| {
                let (next, is_new, answer) = decide(record_rows::record(desk.sql, &key)?, desk.now);
                if is_new {
                    record_rows::keep_record(desk.sql, &key, next.as_ref())?;
                }
                Ok(Ok((next, answer)))
            };
            let file = self.partition(SHARED_IN).await?;
            let noted = move |stands: &(Option<Record<Bytes>>, T)| recent.update(&name, stands.0.as_ref());
            file.write_and_mark(1, step, noted).await.map(|(_, answer)| answer)
        })
    }

    async fn sweep_some(&self, most: usize) -> Result<usize> {
        let recent = Arc::clone(&self.record_cache);
        let step = move |desk: &mut StepContext<'_>| {
            Ok(Ok((desk.now, record_rows::remove_expired(desk.sql, desk.now, most)?)))
        };
        let file = self.partition(SHARED_IN).await?;
        let swept =
            file.write_then(1, step, move |swept: &(Time, usize)| recent.drop_expired(swept.0)).await?;
        Ok(swept.1)
    }
}

impl SharedState for EmbeddedStore {
    fn claim_record<'a>(
        &'a self,
        key: &'a str,
        claim: RecordClaim,
    ) -> StoreFuture<'a, RecordClaimOutcome<Bytes>> {
        let now = self.files.options.clock.now();
        if let Some(completed) = self.record_cache.completed(key, now) {
            let (_, answer) = record::claim(Some(completed), claim, now);
            return Box::pin(std::future::ready(Ok(answer)));
        }
        self.change_record(key, move |state, now| {
            let (next, answer) = record::claim(state, claim, now);
            (next, matches!(answer, RecordClaimOutcome::Granted { .. }), answer)
        })
    }

    fn complete_record<'a>(
        &'a self,
        key: &'a str,
        holder: HolderToken,
        answer: Bytes,
    ) -> StoreFuture<'a, bool> {
        self.change_record(key, move |state, _| {
            let (next, done) = record::complete(state, holder, answer.clone());
            (next, done, done)
        })
    }

    fn release_record<'a>(&'a self, key: &'a str, holder: HolderToken) -> StoreFuture<'a, bool> {
        self.change_record(key, move |state, _| {
            let (next, done) = record::release(state, holder);
            (next, done, done)
        })
    }

    fn renew_record<'a>(&'a self, key: &'a str, holder: HolderToken, ttl: Duration) -> StoreFuture<'a, bool> {
        self.change_record(key, move |state, now| {
            let (next, done) = record::renew(state, holder, now, ttl);
            (next, done, done)
        })
    }

    fn get_record<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Record<Bytes>>> {
        let (key, clock) = (key.to_owned(), Arc::clone(&self.files.options.clock));
        self.read_shared(move |sql| {
            Ok(record_rows::record(sql, &key)?.filter(|record| record::is_live(record, clock.now())))
        })
    }

    fn list_records(&self, after: Option<String>, most: usize) -> StoreFuture<'_, RecordPage> {
        let clock = Arc::clone(&self.files.options.clock);
        self.read_shared(move |sql| record_rows::list_records(sql, after.as_deref(), most, clock.now()))
    }

    fn forget_record<'a>(&'a self, key: &'a str, what: ForgetTarget) -> StoreFuture<'a, ForgetOutcome> {
        self.change_record(key, move |state, now| {
            let (next, forgot) = record::forget(state, what, now);
            (next, forgot == ForgetOutcome::Gone, forgot)
        })
    }

    fn sweep_records(&self, most: usize) -> StoreFuture<'_, usize> {
        Box::pin(async move {
            let mut swept = 0;
            while swept < most {
                let wanted = SWEPT_AT_ONCE.min(most - swept);
                let removed = self.sweep_some(wanted).await?;
                swept += removed;
                if removed < wanted {
                    break;
                }
            }
            Ok(swept)
        })
    }

    fn acquire_lease<'a>(&'a self, name: &'a str, ttl: Duration) -> StoreFuture<'a, AcquireOutcome> {
        let name = name.to_owned();
        self.write_shared(move |desk| {
            let (next, answer) = lease::acquire(rows::lease(desk.sql, &name)?, desk.now, ttl);
            if matches!(answer, AcquireOutcome::Held(_)) {
                rows::keep_lease(desk.sql, &name, next)?;
            }
            Ok(Ok(answer))
        })
    }

    fn renew_lease<'a>(
        &'a self,
        name: &'a str,
        lease: Lease,
        ttl: Duration,
    ) -> StoreFuture<'a, Option<Lease>> {
        let name = name.to_owned();
        self.write_shared(move |desk| {
            let (next, kept) = lease::renew(rows::lease(desk.sql, &name)?, lease.fence, desk.now, ttl);
            if kept.is_some() {
                rows::keep_lease(desk.sql, &name, next)?;
            }
            Ok(Ok(kept))
        })
    }

    fn release_lease<'a>(&'a self, name: &'a str, lease: Lease) -> StoreFuture<'a, bool> {
        let name = name.to_owned();
        self.write_shared(move |desk| {
            let (next, done) = lease::release(rows::lease(desk.sql, &name)?, lease.fence, desk.now);
            if done {
                rows::keep_lease(desk.sql, &name, next)?;
            }
            Ok(Ok(done))
        })
    }

    fn lease_status<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<LeaseStatus>> {
        let (name, clock) = (name.to_owned(), Arc::clone(&self.files.options.clock));
        self.read_shared(move |sql| Ok(lease::status(rows::lease(sql, &name)?, clock.now())))
    }

    fn list_leases(&self, after: Option<String>, most: usize) -> StoreFuture<'_, NamedPage<LeaseStatus>> {
        let clock = Arc::clone(&self.files.options.clock);
        self.read_shared(move |sql| {
            let NamedPage { items, next } = rows::list_leases(sql, after.as_deref(), most)?;
            let now = clock.now();
            let standing = |(name, state)| Some((name, lease::status(state, now)?));
            Ok(NamedPage { items: items.into_iter().filter_map(standing).collect(), next })
        })
    }

    fn reserve(&self, wanted: Vec<ReservationRequest>) -> StoreFuture<'_, ReserveOutcome> {
        self.write_shared(move |desk| {
            if let Err(refused) = checks::check_unique_names(&wanted) {
                return Ok(Err(refused));
            }
            let states: Vec<Option<Level>> = wanted
                .iter()
                .map(|want| rows::bucket(desk.sql, &want.name))
                .collect::<rusqlite::Result<_>>()?;
            let (levels, answer) = bucket::reserve(&states, &wanted, desk.now);
            for ((want, state), level) in wanted.iter().zip(states).zip(levels) {
                if state != Some(level) {
                    rows::keep_bucket(desk.sql, &want.name, level)?;
                }
            }
            Ok(Ok(answer))
        })
    }

    fn settle_bucket<'a>(&'a self, name: &'a str, settlement: Settlement) -> StoreFuture<'a, Option<Level>> {
        let name = name.to_owned();
        self.write_shared(move |desk| {
            let Some(state) = rows::bucket(desk.sql, &name)? else { return Ok(Ok(None)) };
            let level = bucket::settle(state, settlement, desk.now);
            rows::keep_bucket(desk.sql, &name, level)?;
            Ok(Ok(Some(level)))
        })
    }

    fn observe_bucket<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<Level>> {
        let (name, clock) = (name.to_owned(), Arc::clone(&self.files.options.clock));
        self.read_shared(move |sql| {
            Ok(rows::bucket(sql, &name)?.map(|level| bucket::observe(level, clock.now())))
        })
    }

    fn list_buckets(&self, after: Option<String>, most: usize) -> StoreFuture<'_, NamedPage<Level>> {
        let clock = Arc::clone(&self.files.options.clock);
        self.read_shared(move |sql| {
            let NamedPage { items, next } = rows::list_buckets(sql, after.as_deref(), most)?;
            let now = clock.now();
            let items = items.into_iter().map(|(name, level)| (name, bucket::observe(level, now)));
            Ok(NamedPage { items: items.collect(), next })
        })
    }

    fn forget_bucket<'a>(&'a self, name: &'a str) -> StoreFuture<'a, bool> {
        let name = name.to_owned();
        self.write_shared(move |desk| Ok(Ok(rows::forget_bucket(desk.sql, &name)?)))
    }

    fn open_window<'a>(
        &'a self,
        key: &'a str,
        level: u8,
        ttl: Duration,
    ) -> StoreFuture<'a, OpenWindowOutcome> {
        let key = key.to_owned();
        self.write_shared(move |desk| {
            let (next, answer) = window::open(rows::window(desk.sql, &key)?, level, desk.now, ttl);
            if matches!(answer, OpenWindowOutcome::Ask(_)) {
                rows::keep_window(desk.sql, &key, next, desk.now)?;
            }
            Ok(Ok(answer))
        })
    }
}
