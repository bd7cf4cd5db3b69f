//! Lists of leases and buckets: the pages together return each item once, in its current state.

use std::collections::BTreeMap;
use std::time::Duration;

use tidegate_core::operation::MICRO;
use tidegate_core::shared::bucket::ReservationRequest;
use tidegate_core::shared::lease::AcquireOutcome;
use tidegate_store::{NamedPage, Store, StoreFuture};

use super::KEYS;
use crate::harness::{Backend, ExpectValue};

/// More pages than any list here has, even if many are empty.
const PAGES_MAX: usize = 400;
/// The number of names of each kind.
const COUNT: usize = 11;

fn names() -> Vec<String> {
    (0..COUNT).map(|number| format!("{}/{number}", KEYS[number % KEYS.len()])).collect()
}

/// Requests a page of a list from a store.
type Lister<T> = for<'a> fn(&'a dyn Store, Option<String>, usize) -> StoreFuture<'a, NamedPage<T>>;

/// Collects all pages of a list. A name must not occur twice.
async fn all_pages<T>(store: &dyn Store, most: usize, page: Lister<T>) -> BTreeMap<String, T> {
    let (mut found, mut after) = (BTreeMap::new(), None);
    for _ in 0..PAGES_MAX {
        let NamedPage { items, next } = page(store, after, most).await.expect_value("list");
        assert!(items.len() <= most, "a page of {} where at most {most} were asked for", items.len());
        for (name, item) in items {
            assert!(found.insert(name.clone(), item).is_none(), "{name} is there twice");
        }
        after = next;
        if after.is_none() {
            break;
        }
    }
    assert!(after.is_none(), "a list has no end");
    found
}

/// LIM-15: every lease that was ever held is listed, with whether it is held now.
pub async fn leases_are_listed_page_by_page(backend: &dyn Backend) {
    let store = backend.open().await.expect_value("open the store");
    for (number, name) in names().iter().enumerate() {
        let ttl = Duration::from_secs(if number % 2 == 0 { 1 } else { 60 });
        let acquired = store.acquire_lease(name, ttl).await.expect_value("acquire");
        assert!(matches!(acquired, AcquireOutcome::Held(_)), "{acquired:?}");
    }
    backend.clock().advance(Duration::from_secs(2));
    for most in [1, 4, 100] {
        let found = all_pages(&*store, most, |store, after, most| store.list_leases(after, most)).await;
        let listed: Vec<(String, bool)> =
            found.into_iter().map(|(name, status)| (name, status.held_until.is_some())).collect();
        let mut wanted: Vec<(String, bool)> =
            names().into_iter().enumerate().map(|(number, name)| (name, number % 2 == 1)).collect();
        wanted.sort_unstable();
        assert_eq!(listed, wanted, "pages of {most}");
    }
}

/// LIM-5: every used bucket is listed with its current level; a forgotten one is not.
pub async fn buckets_are_listed_page_by_page(backend: &dyn Backend) {
    let store = backend.open().await.expect_value("open the store");
    for name in names() {
        let want = ReservationRequest { name, cost: 3 * MICRO, capacity: 5 * MICRO, refill_per_s: MICRO };
        store.reserve(vec![want]).await.expect_value("reserve");
    }
    let now = backend.clock().advance(Duration::from_secs(1));
    let mut wanted = names();
    wanted.sort_unstable();
    let gone = wanted.remove(4);
    assert!(store.forget_bucket(&gone).await.expect_value("forget"), "it was there");
    assert!(!store.forget_bucket(&gone).await.expect_value("forget"), "it is gone");
    for most in [1, 4, 100] {
        let found = all_pages(&*store, most, |store, after, most| store.list_buckets(after, most)).await;
        assert!(found.values().all(|level| (level.tokens, level.at) == (3 * MICRO, now)), "{found:?}");
        assert_eq!(found.into_keys().collect::<Vec<_>>(), wanted, "pages of {most}");
    }
}
