//! For each suite a store with the defect that the suite exists to detect. A suite that no store
//! can fail proves nothing.

mod audit;
mod costs;
mod journal;
mod log;
mod nodes_and_upkeep;
mod quirk;
mod shared;

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use tidegate_contract::{Backend, ManualClock};
use tidegate_store::attempt::StoredAttempt;
use tidegate_store::log::{Ownership, PartitionOwner};
use tidegate_store::{Store, StoreFuture};

use crate::memory::MemoryBackend;
use quirk::{CASES, Quirk};

/// What a broken store remembers from one opening to the next.
#[derive(Default)]
struct Notes {
    latest: Option<Ownership>,
    calls: u64,
    owners: Vec<PartitionOwner>,
    attempts: Vec<StoredAttempt>,
}

/// A store with one defect.
struct BrokenStore {
    inner: Arc<dyn Store>,
    quirk: Quirk,
    is_image: bool,
    notes: Arc<Mutex<Notes>>,
}

impl BrokenStore {
    fn is(&self, quirk: Quirk) -> bool {
        self.quirk == quirk
    }

    /// Whether the defect shows only in a crash image.
    fn is_in_image(&self, quirk: Quirk) -> bool {
        self.is_image && self.quirk == quirk
    }
}

struct BrokenBackend {
    inner: MemoryBackend,
    quirk: Quirk,
    notes: Arc<Mutex<Notes>>,
}

impl BrokenBackend {
    fn new(quirk: Quirk) -> Self {
        Self { inner: MemoryBackend::new(), quirk, notes: Arc::default() }
    }

    fn wrap(&self, inner: Arc<dyn Store>, is_image: bool) -> Arc<dyn Store> {
        Arc::new(BrokenStore { inner, quirk: self.quirk, is_image, notes: Arc::clone(&self.notes) })
    }
}

impl Backend for BrokenBackend {
    fn open(&self) -> StoreFuture<'_, Arc<dyn Store>> {
        Box::pin(async move { Ok(self.wrap(self.inner.open().await?, false)) })
    }

    fn crash_image(&self) -> StoreFuture<'_, Arc<dyn Store>> {
        Box::pin(async move { Ok(self.wrap(self.inner.crash_image().await?, true)) })
    }

    fn clock(&self) -> Arc<ManualClock> {
        self.inner.clock()
    }
}

type Suite = for<'a> fn(&'a dyn Backend) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

macro_rules! suites {
    (() $($part:ident: $($suite:ident),+;)+) => {
        vec![$($((stringify!($suite), (|backend| Box::pin(tidegate_contract::$part::$suite(backend))) as Suite)),+),+]
    };
}

fn all() -> Vec<(&'static str, Suite)> {
    tidegate_contract::every_suite!([suites])
}

/// Runs a suite under a clock that skips every wait; returns its failure message.
fn complaint(suite: Suite, quirk: Quirk) -> Option<String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let trial = std::thread::spawn(move || {
        let backend = BrokenBackend::new(quirk);
        runtime.block_on(suite(&backend));
    });
    let panic = trial.join().err()?;
    let text = panic.downcast_ref::<String>().cloned();
    Some(text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
}

#[test]
fn a_wrapped_store_with_nothing_wrong_passes() {
    for (name, suite) in all() {
        assert_eq!(complaint(suite, Quirk::None), None, "{name}");
    }
}

#[test]
fn every_suite_finds_what_it_is_there_to_find() {
    let mut missed = Vec::new();
    for (name, suite) in all() {
        for (_, quirk) in CASES.iter().filter(|(suite, _)| *suite == name) {
            match complaint(suite, *quirk) {
                Some(text) => println!("{name}, {quirk:?}: {}", text.lines().next().unwrap_or_default()),
                None => missed.push((name, quirk)),
            }
        }
    }
    assert!(missed.is_empty(), "these were not found: {missed:?}");
}

#[test]
fn no_suite_is_without_a_store_that_fails_it() {
    let names: BTreeSet<_> = all().into_iter().map(|(name, _)| name).collect();
    let tried: BTreeSet<_> = CASES.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, tried);
}
