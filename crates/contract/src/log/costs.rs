//! Call costs, in stores that keep them: written with the append, once, exactly; removed by
//! retention. Other stores accept and discard them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::bounds::COSTS_MAX;
use tidegate_core::id::Partition;
use tidegate_core::operation::MICRO;
use tidegate_core::{Fence, OperationId, Seq, Time};
use tidegate_store::costs::{Cost, CostQuery, CostReport, LimitSnapshot, sum_costs};
use tidegate_store::log::{Batch, Lsn, Ownership, Retention};
use tidegate_store::{Clock, Store, StoreErrorKind};

use super::mirror::LoadedLog;
use super::{OwnedPartition, PARTITION, TTL};
use crate::harness::{Backend, ExpectValue};
use crate::rng::TestRng;
use crate::samples::{maybe, name, some};

const HOUR: Duration = Duration::from_secs(3_600);

/// Random call costs.
fn costs(rng: &mut TestRng, count: usize, at: Time) -> Vec<Cost> {
    const LIMITS: [&str; 4] = ["acme/points", "acme/requests", "Größe", "it's/\"quoted\""];
    let one = |rng: &mut TestRng, nth: usize| Cost {
        at,
        operation: OperationId::new(at, PARTITION, Seq(1 + rng.below(1_000))),
        claim: Fence(rng.below(1 << 40)),
        nth: (nth % 8) as u8,
        limit: Arc::from(*rng.pick(&LIMITS)),
        shape: name(rng),
        requested: figure(rng),
        actual: maybe(rng, figure),
        restore_rate: maybe(rng, figure),
    };
    (0..count).map(|nth| one(rng, nth)).collect()
}

/// Quarters of tokens: their sums are exact in any order.
fn figure(rng: &mut TestRng) -> u64 {
    rng.below(1 << 20) * (MICRO / 4)
}

fn all() -> CostQuery {
    CostQuery { upstream: None, since: Time::ZERO, most: 1_000 }
}

async fn cost_report(store: &dyn Store, question: CostQuery) -> CostReport {
    store
        .costs()
        .expect_value("find what keeps costs")
        .cost_report(question)
        .await
        .expect_value("sum costs up")
}

/// LIM-10: the costs of an append are durable when it returns, once, whatever else is in it; they
/// are summed up by limit and shape, since a time, for one upstream or all.
pub async fn costs_are_kept_with_their_append(backend: &dyn Backend) {
    let mut rng = TestRng::seeded_or(71);
    let mut kept = Vec::new();
    let mut owned = OwnedPartition::open(backend, PARTITION).await;
    for round in 0..12 {
        let now = backend.clock().advance(HOUR);
        let count = if round % 4 == 3 { 0 } else { 1 + rng.below(300) as usize };
        let costs = costs(&mut rng, count, now);
        kept.extend(costs.clone());
        owned.append(Batch { costs, ..Batch::default() }).await;
        if owned.store.costs().is_none() {
            continue;
        }
        let image = backend.crash_image().await.expect_value("take a crash image");
        for store in [&owned.store, &image] {
            assert_eq!(
                cost_report(&**store, all()).await,
                sum_costs(kept.iter(), &all()),
                "after round {round}"
            );
        }
        if round % 5 == 4 {
            drop((owned, image));
            owned = OwnedPartition::open(backend, PARTITION).await;
            assert_eq!(
                cost_report(&*owned.store, all()).await,
                sum_costs(kept.iter(), &all()),
                "after a restart"
            );
        }
    }
    if owned.store.costs().is_none() {
        return;
    }
    let middle = kept[kept.len() / 2].at;
    for upstream in [None, Some("acme"), Some("Größe"), Some("it's"), Some("acme/points"), Some("")] {
        for (since, most) in [(Time::ZERO, 3), (middle, 100), (Time::MAX, 100), (Time::ZERO, 0)] {
            let question = CostQuery { upstream: upstream.map(Arc::from), since, most };
            assert_eq!(
                cost_report(&*owned.store, question.clone()).await,
                sum_costs(kept.iter(), &question),
                "{question:?}"
            );
        }
    }
}

/// LIM-10: costs are stored with the rest of their append or not at all, at whatever moment
/// everything stops.
pub async fn costs_are_all_or_nothing(backend: &dyn Backend) {
    let mut rng = TestRng::seeded_or(72);
    let owned = OwnedPartition::open(backend, PARTITION).await;
    if owned.store.costs().is_none() {
        return;
    }
    let mut before = Vec::new();
    for round in 1..=6 {
        let costs = costs(&mut rng, 1_000, backend.clock().now());
        let after: Vec<Cost> = before.iter().cloned().chain(costs.clone()).collect();
        let (store, owner) = (Arc::clone(&owned.store), owned.owner);
        let batch = Batch { costs, ..Batch::default() };
        let append = tokio::spawn(async move { store.append(owner, batch).await });
        loop {
            let is_over = append.is_finished();
            let image = backend.crash_image().await.expect_value("take a crash image");
            let found = LoadedLog::load(&*image, PARTITION).await;
            let summed_up = cost_report(&*image, all()).await;
            // A server's image stays live, so costs that are read later than the replay may be
            // newer than it.
            if found.last == Lsn(round) {
                assert_eq!(summed_up, sum_costs(after.iter(), &all()), "the append is there");
            } else {
                let either = summed_up == sum_costs(before.iter(), &all())
                    || summed_up == sum_costs(after.iter(), &all());
                assert!(either, "some of the costs of an append are there");
            }
            if is_over {
                break;
            }
            tokio::task::yield_now().await;
        }
        append.await.expect_value("join the append").expect_value("append a batch");
        before = after;
    }
}

/// LIM-10: a refused append keeps no costs: from an older owner, after a failed append, or with
/// more than an append may have.
pub async fn a_refused_append_keeps_no_costs(backend: &dyn Backend) {
    let mut rng = TestRng::seeded_or(73);
    let old = OwnedPartition::open(backend, PARTITION).await;
    let now = backend.clock().now();
    let first = costs(&mut rng, 5, now);
    old.append(Batch { costs: first.clone(), ..Batch::default() }).await;
    let stale = old.owner;
    drop(old);
    let owned = OwnedPartition::open(backend, PARTITION).await;
    let mut refused = |owner: Ownership, batch: Batch, count| {
        let batch = Batch { costs: costs(&mut rng, count, now), ..batch };
        let store = Arc::clone(&owned.store);
        async move { store.append(owner, batch).await.map_err(|error| error.kind()) }
    };
    assert_eq!(refused(stale, Batch::default(), 5).await, Err(StoreErrorKind::Fenced));
    let unfounded = Batch { follows: Some(Lsn(7)), ..Batch::default() };
    assert_eq!(refused(owned.owner, unfounded, 5).await, Err(StoreErrorKind::Unavailable));
    assert_eq!(refused(owned.owner, Batch::default(), COSTS_MAX + 1).await, Err(StoreErrorKind::Invalid));
    if owned.store.costs().is_some() {
        assert_eq!(cost_report(&*owned.store, all()).await, sum_costs(first.iter(), &all()));
    }
    assert_eq!(refused(owned.owner, Batch::default(), COSTS_MAX).await, Ok(Lsn(2)), "the most there may be");
}

/// LIM-10: retention removes the costs of one partition, a bounded number at once, and only for its
/// owner.
pub async fn costs_go_when_their_time_is_up(backend: &dyn Backend) {
    const OTHER: Partition = PARTITION + 1;
    let mut rng = TestRng::seeded_or(74);
    let owned = OwnedPartition::open(backend, PARTITION).await;
    let Some(cost_store) = owned.store.costs() else { return };
    let elsewhere =
        owned.store.acquire_partition(OTHER, "suite", TTL).await.expect_value("own another partition");
    let there = costs(&mut rng, 3, backend.clock().now());
    let batch = Batch { costs: there.clone(), ..Batch::default() };
    owned.store.append(elsewhere, batch).await.expect_value("append elsewhere");
    let mut kept = Vec::new();
    for _ in 0..4 {
        let costs = costs(&mut rng, 10, backend.clock().advance(HOUR));
        kept.extend(costs.clone());
        owned.append(Batch { costs, ..Batch::default() }).await;
    }
    // Meanwhile its lease has expired, and no one else wanted it.
    let cut = kept[20].at;
    let sweep = |before, most| cost_store.sweep_costs(owned.owner, Retention { ended_before: before, most });
    assert_eq!(sweep(Time::ZERO, 100).await.expect_value("sweep"), 0);
    assert_eq!(sweep(cut, 0).await.expect_value("sweep"), 0);
    for wanted in [7, 7, 6, 0] {
        assert_eq!(sweep(cut, 7).await.expect_value("sweep"), wanted);
    }
    kept.drain(..20);
    let left: Vec<Cost> = there.into_iter().chain(kept).collect();
    assert_eq!(cost_report(&*owned.store, all()).await, sum_costs(left.iter(), &all()));
    let image = backend.crash_image().await.expect_value("take a crash image");
    assert_eq!(cost_report(&*image, all()).await, sum_costs(left.iter(), &all()), "in an image");
    let stale = Ownership { epoch: tidegate_store::log::Epoch(owned.owner.epoch.0 + 7), ..owned.owner };
    let refused = cost_store.sweep_costs(stale, Retention { ended_before: Time::MAX, most: 9 }).await;
    assert_eq!(refused.map_err(|error| error.kind()), Err(StoreErrorKind::Fenced));
    assert_eq!(sweep(Time::MAX, 1_000).await.expect_value("sweep"), 20);
}

fn standing(rng: &mut TestRng, name: &str, now: Time) -> LimitSnapshot {
    LimitSnapshot {
        name: name.into(),
        kind: (*rng.pick(&["drip", "window", "gate", "cap"])).into(),
        capacity: maybe(rng, |rng| rng.below(1 << 50)),
        refill_per_s: maybe(rng, |rng| rng.below(1 << 50)),
        level: maybe(rng, |rng| rng.below(1 << 50)),
        source: (*rng.pick(&["config", "operator", "learned"])).into(),
        closed_until: maybe(rng, |_| now.after(HOUR)),
        updated_at: now,
    }
}

/// LIM-10: the state of limits is kept by name, the latest of each, separately for each partition,
/// and only for its owner.
pub async fn limits_are_kept_as_they_stand(backend: &dyn Backend) {
    let mut rng = TestRng::seeded_or(75);
    let owned = OwnedPartition::open(backend, PARTITION).await;
    let Some(cost_store) = owned.store.costs() else { return };
    let mut wanted = BTreeMap::new();
    for _ in 0..6 {
        let now = backend.clock().advance(HOUR);
        let names = ["acme", "acme/points", "Größe", "it's \"quoted\""];
        let mut names = some(&mut rng, 4, |rng| *rng.pick(&names));
        names.sort_unstable();
        names.dedup();
        let limits: Vec<_> = names.into_iter().map(|name| standing(&mut rng, name, now)).collect();
        wanted.extend(limits.iter().map(|standing| (Arc::clone(&standing.name), standing.clone())));
        cost_store.save_limit_snapshots(owned.owner, limits).await.expect_value("save the state of limits");
    }
    let found = cost_store.limit_snapshots(PARTITION).await.expect_value("look at limits");
    assert_eq!(found, wanted.into_values().collect::<Vec<_>>());
    assert!(cost_store.limit_snapshots(PARTITION + 1).await.expect_value("look elsewhere").is_empty());
    let newer = Ownership { epoch: tidegate_store::log::Epoch(owned.owner.epoch.0 + 7), ..owned.owner };
    let late = vec![standing(&mut rng, "late", Time::ZERO)];
    let refused = cost_store.save_limit_snapshots(newer, late).await.map_err(|error| error.kind());
    assert_eq!(refused, Err(StoreErrorKind::Fenced));
    assert_eq!(
        cost_store.limit_snapshots(PARTITION).await.expect_value("look at limits"),
        found,
        "nothing of it is there"
    );
}

/// LIM-10: the state of limits that are gone is removed: by name, and all that was last saved
/// before a time; only by the owner, and nothing else.
pub async fn limits_that_are_gone_are_removed(backend: &dyn Backend) {
    let mut rng = TestRng::seeded_or(76);
    let owned = OwnedPartition::open(backend, PARTITION).await;
    let Some(cost_store) = owned.store.costs() else { return };
    let mut save = async |names: &[&str]| {
        let now = backend.clock().advance(HOUR);
        let limits = names.iter().map(|name| standing(&mut rng, name, now)).collect();
        cost_store.save_limit_snapshots(owned.owner, limits).await.expect_value("save the state of limits");
        now
    };
    let names = async || {
        let found = cost_store.limit_snapshots(PARTITION).await.expect_value("look at limits");
        found.iter().map(|one| one.name.to_string()).collect::<Vec<_>>()
    };
    save(&["old", "older", "renewed", "it's \"quoted\""]).await;
    let newest = save(&["a", "b", "renewed"]).await;
    let gone: Vec<Arc<str>> = vec!["a".into(), "it's \"quoted\"".into(), "never there".into()];
    let newer = Ownership { epoch: tidegate_store::log::Epoch(owned.owner.epoch.0 + 7), ..owned.owner };
    let refused = cost_store.remove_limit_snapshots(newer, gone.clone(), newest).await;
    assert_eq!(refused.map_err(|error| error.kind()), Err(StoreErrorKind::Fenced));
    assert_eq!(names().await.len(), 6, "nothing of it was done");
    cost_store.remove_limit_snapshots(owned.owner, gone, Time::ZERO).await.expect_value("remove by name");
    assert_eq!(names().await, ["b", "old", "older", "renewed"]);
    cost_store.remove_limit_snapshots(owned.owner, Vec::new(), newest).await.expect_value("remove old ones");
    assert_eq!(names().await, ["b", "renewed"]);
}
