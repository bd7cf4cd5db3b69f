//! Shared records in maps: each verb reads the state, calls the pure function in `core`, and stores
//! the result.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::time::Duration;

use bytes::Bytes;
use rustc_hash::FxHashMap;
use tidegate_core::shared::bucket::{self, Level, ReservationRequest, ReserveOutcome, Settlement};
use tidegate_core::shared::lease::{self, AcquireOutcome, Lease, LeaseStatus};
use tidegate_core::shared::record::{
    self, ForgetOutcome, ForgetTarget, HolderToken, Record, RecordClaim, RecordClaimOutcome,
};
use tidegate_core::shared::window::{self, HydrationWindow, OpenWindowOutcome};
use tidegate_store::{NamedPage, RecordPage, SharedState, StoreFuture};

use super::{MemoryStore, ready};
use crate::checks::check_unique_names;

/// Closed windows are removed when there are this many windows, and twice as many as were left the
/// last time.
const WINDOWS_KEPT_MIN: usize = 1_024;

/// Everything that is shared between processes.
#[derive(Default)]
pub(super) struct Tables {
    records: BTreeMap<String, Record<Bytes>>,
    leases: HashMap<String, lease::LeaseState>,
    buckets: FxHashMap<String, Level>,
    windows: HashMap<String, HydrationWindow>,
    windows_max: usize,
}

impl Tables {
    pub(super) fn record_count(&self) -> u64 {
        self.records.len() as u64
    }

    /// Stores the new state of a record; `None` removes it.
    fn keep_record(&mut self, key: &str, record: Option<Record<Bytes>>) {
        if let Some(record) = record {
            self.records.insert(key.to_owned(), record);
        }
    }
}

/// A page of named entries, in the order of the names.
fn page<T>(all: impl Iterator<Item = (String, T)>, after: Option<&str>, most: usize) -> NamedPage<T> {
    let mut items: Vec<_> = all.filter(|(name, _)| after.is_none_or(|after| name.as_str() > after)).collect();
    items.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    let is_last = items.len() <= most;
    items.truncate(most);
    let next = items.last().filter(|_| !is_last).map(|(name, _)| name.clone());
    NamedPage { items, next }
}

impl SharedState for MemoryStore {
    fn claim_record<'a>(
        &'a self,
        key: &'a str,
        claim: RecordClaim,
    ) -> StoreFuture<'a, RecordClaimOutcome<Bytes>> {
        ready(move || {
            let mut tables = self.shared();
            let (next, answer) = record::claim(tables.records.remove(key), claim, self.clock.now());
            tables.keep_record(key, next);
            Ok(answer)
        })
    }

    fn complete_record<'a>(
        &'a self,
        key: &'a str,
        holder: HolderToken,
        answer: Bytes,
    ) -> StoreFuture<'a, bool> {
        ready(move || {
            let mut tables = self.shared();
            let (next, done) = record::complete(tables.records.remove(key), holder, answer);
            tables.keep_record(key, next);
            Ok(done)
        })
    }

    fn release_record<'a>(&'a self, key: &'a str, holder: HolderToken) -> StoreFuture<'a, bool> {
        ready(move || {
            let mut tables = self.shared();
            let (next, done) = record::release(tables.records.remove(key), holder);
            tables.keep_record(key, next);
            Ok(done)
        })
    }

    fn renew_record<'a>(&'a self, key: &'a str, holder: HolderToken, ttl: Duration) -> StoreFuture<'a, bool> {
        ready(move || {
            let mut tables = self.shared();
            let (next, done) = record::renew(tables.records.remove(key), holder, self.clock.now(), ttl);
            tables.keep_record(key, next);
            Ok(done)
        })
    }

    fn get_record<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Record<Bytes>>> {
        ready(move || {
            let now = self.clock.now();
            Ok(self.shared().records.get(key).filter(|record| record::is_live(record, now)).cloned())
        })
    }

    fn list_records(&self, after: Option<String>, most: usize) -> StoreFuture<'_, RecordPage> {
        ready(move || {
            let (tables, now) = (self.shared(), self.clock.now());
            let from = after.map_or(Bound::Unbounded, Bound::Excluded);
            let mut standing = tables
                .records
                .range((from, Bound::Unbounded))
                .filter(|(_, record)| record::is_live(record, now))
                .map(|(key, record)| (key.clone(), record.without_answer()));
            let records: Vec<_> = standing.by_ref().take(most).collect();
            let next = standing.next().and_then(|_| records.last().map(|(key, _)| key.clone()));
            Ok(RecordPage { records, next })
        })
    }

    fn forget_record<'a>(&'a self, key: &'a str, what: ForgetTarget) -> StoreFuture<'a, ForgetOutcome> {
        ready(move || {
            let mut tables = self.shared();
            let (next, forgot) = record::forget(tables.records.remove(key), what, self.clock.now());
            tables.keep_record(key, next);
            Ok(forgot)
        })
    }

    fn sweep_records(&self, most: usize) -> StoreFuture<'_, usize> {
        ready(move || {
            let (mut tables, now) = (self.shared(), self.clock.now());
            let swept: Vec<String> = tables
                .records
                .iter()
                .filter(|(_, record)| record::is_sweepable(record, now))
                .map(|(key, _)| key.clone())
                .take(most)
                .collect();
            for key in &swept {
                tables.records.remove(key);
            }
            Ok(swept.len())
        })
    }

    fn acquire_lease<'a>(&'a self, name: &'a str, ttl: Duration) -> StoreFuture<'a, AcquireOutcome> {
        ready(move || {
            let mut tables = self.shared();
            let state = tables.leases.entry(name.to_owned()).or_default();
            let (next, answer) = lease::acquire(*state, self.clock.now(), ttl);
            *state = next;
            Ok(answer)
        })
    }

    fn renew_lease<'a>(
        &'a self,
        name: &'a str,
        lease: Lease,
        ttl: Duration,
    ) -> StoreFuture<'a, Option<Lease>> {
        ready(move || {
            let mut tables = self.shared();
            let Some(state) = tables.leases.get_mut(name) else { return Ok(None) };
            let (next, answer) = lease::renew(*state, lease.fence, self.clock.now(), ttl);
            *state = next;
            Ok(answer)
        })
    }

    fn release_lease<'a>(&'a self, name: &'a str, lease: Lease) -> StoreFuture<'a, bool> {
        ready(move || {
            let mut tables = self.shared();
            let Some(state) = tables.leases.get_mut(name) else { return Ok(false) };
            let (next, done) = lease::release(*state, lease.fence, self.clock.now());
            *state = next;
            Ok(done)
        })
    }

    fn lease_status<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<LeaseStatus>> {
        ready(move || {
            let state = self.shared().leases.get(name).copied();
            Ok(state.and_then(|state| lease::status(state, self.clock.now())))
        })
    }

    fn list_leases(&self, after: Option<String>, most: usize) -> StoreFuture<'_, NamedPage<LeaseStatus>> {
        ready(move || {
            let (tables, now) = (self.shared(), self.clock.now());
            let all = tables.leases.iter();
            let all = all.filter_map(|(name, state)| Some((name.clone(), lease::status(*state, now)?)));
            Ok(page(all, after.as_deref(), most))
        })
    }

    fn reserve(&self, wanted: Vec<ReservationRequest>) -> StoreFuture<'_, ReserveOutcome> {
        ready(move || {
            check_unique_names(&wanted)?;
            let mut tables = self.shared();
            let states: Vec<_> = wanted.iter().map(|want| tables.buckets.get(&want.name).copied()).collect();
            let (levels, answer) = bucket::reserve(&states, &wanted, self.clock.now());
            for (want, level) in wanted.into_iter().zip(levels) {
                match tables.buckets.get_mut(&want.name) {
                    Some(known) => *known = level,
                    None => drop(tables.buckets.insert(want.name, level)),
                }
            }
            Ok(answer)
        })
    }

    fn settle_bucket<'a>(&'a self, name: &'a str, settlement: Settlement) -> StoreFuture<'a, Option<Level>> {
        ready(move || {
            let mut tables = self.shared();
            let Some(level) = tables.buckets.get_mut(name) else { return Ok(None) };
            *level = bucket::settle(*level, settlement, self.clock.now());
            Ok(Some(*level))
        })
    }

    fn observe_bucket<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<Level>> {
        ready(move || {
            let level = self.shared().buckets.get(name).copied();
            Ok(level.map(|level| bucket::observe(level, self.clock.now())))
        })
    }

    fn list_buckets(&self, after: Option<String>, most: usize) -> StoreFuture<'_, NamedPage<Level>> {
        ready(move || {
            let (tables, now) = (self.shared(), self.clock.now());
            let all = tables.buckets.iter();
            let all = all.map(|(name, level)| (name.clone(), bucket::observe(*level, now)));
            Ok(page(all, after.as_deref(), most))
        })
    }

    fn forget_bucket<'a>(&'a self, name: &'a str) -> StoreFuture<'a, bool> {
        ready(move || Ok(self.shared().buckets.remove(name).is_some()))
    }

    fn open_window<'a>(
        &'a self,
        key: &'a str,
        level: u8,
        ttl: Duration,
    ) -> StoreFuture<'a, OpenWindowOutcome> {
        ready(move || {
            let (mut tables, now) = (self.shared(), self.clock.now());
            if tables.windows.len() >= tables.windows_max.max(WINDOWS_KEPT_MIN) {
                tables.windows.retain(|_, window| window.until > now);
                tables.windows_max = tables.windows.len() * 2;
            }
            let (next, answer) = window::open(tables.windows.get(key).copied(), level, now, ttl);
            tables.windows.insert(key.to_owned(), next);
            Ok(answer)
        })
    }
}
