//! Attempts whose job ends elsewhere: written with their append, replaced by claim, read back by
//! operation, and removed with it.

use bytes::Bytes;
use tidegate_core::{EndState, Fence, Seq, Time};
use tidegate_store::Clock;
use tidegate_store::attempt::{AttemptState, StoredAttempt};
use tidegate_store::log::{Batch, Retention, StoredOperation, StoredResult};

use super::{OwnedPartition, PARTITION};
use crate::harness::{Backend, ExpectValue};
use tidegate_store::Log;

fn operation(seq: u64, at: Time) -> StoredOperation {
    let (group, kind) = ("g".into(), "job".into());
    StoredOperation {
        seq: Seq(seq),
        at,
        group,
        kind,
        key: None,
        envelope: Bytes::new(),
        payload: Bytes::new(),
    }
}

fn awaiting(seq: u64, fence: u64) -> StoredAttempt {
    StoredAttempt {
        seq: Seq(seq),
        fence: Fence(fence),
        number: 1,
        at: Time::from_millis(1_700_000_000_000),
        ended_at: None,
        state: AttemptState::Awaiting,
        external_id: Some("job-\u{1f980}".into()),
        cost: None,
        memo: Bytes::from((0..=255).collect::<Vec<u8>>()),
    }
}

/// The end of an attempt: what it does not mention stays.
fn end(seq: u64, fence: u64, state: AttemptState) -> StoredAttempt {
    let ended_at = Some(Time::from_millis(1_700_000_000_500));
    let (external_id, memo) = (None, Bytes::new());
    StoredAttempt { ended_at, state, cost: Some(u64::MAX), external_id, memo, ..awaiting(seq, fence) }
}

fn ended(seq: u64, fence: u64, state: AttemptState) -> StoredAttempt {
    awaiting(seq, fence).merge(end(seq, fence, state))
}

async fn check<L: Log + ?Sized>(log: &L, wanted: &[(u64, Vec<StoredAttempt>)], when: &str) {
    let seqs = wanted.iter().map(|(seq, _)| Seq(*seq)).collect();
    let found = log.read_attempts(PARTITION, seqs).await.expect_value("read attempts");
    let wanted: Vec<_> = wanted.iter().map(|(_, attempts)| attempts.clone()).collect();
    assert_eq!(found, wanted, "{when}");
}

/// OPS-8: what an executor must remember is durable with the append that settles its claim, and is
/// read back in the order asked, by fence.
pub async fn attempts_are_kept_with_their_append(backend: &dyn Backend) {
    let owned = OwnedPartition::open(backend, PARTITION).await;
    let now = backend.clock().now();
    let operations = (1..=4).map(|seq| operation(seq, now).into()).collect();
    let bare =
        StoredAttempt { external_id: None, memo: Bytes::new(), number: u16::MAX, ..awaiting(3, 1 << 40) };
    let attempts = vec![awaiting(2, 9), awaiting(2, 4), bare.clone()];
    owned.append(Batch { operations, attempts, ..Batch::default() }).await;
    let wanted = [
        (3, vec![bare.clone()]),
        (1, vec![]),
        (2, vec![awaiting(2, 4), awaiting(2, 9)]),
        (99, vec![]),
        (3, vec![bare]),
    ];
    check(&*owned.store, &wanted, "at once").await;
    let none = owned.store.read_attempts(PARTITION + 1, vec![Seq(2)]).await.expect_value("read elsewhere");
    assert_eq!(none, [Vec::new()], "of another partition");
    assert!(owned.store.read_attempts(PARTITION, Vec::new()).await.expect_value("read none").is_empty());
    let image = backend.crash_image().await.expect_value("take a crash image");
    check(&*image, &wanted, "in the image").await;
    drop(owned);
    let owned = OwnedPartition::open(backend, PARTITION).await;
    check(&*owned.store, &wanted, "after a restart").await;
}

/// The row of a claim is replaced, or gets its end, by a later append or later in the same one;
/// others stay.
pub async fn the_last_row_of_an_attempt_stands(backend: &dyn Backend) {
    let mut owned = OwnedPartition::open(backend, PARTITION).await;
    let operations = vec![operation(1, backend.clock().now()).into()];
    let moved = StoredAttempt { external_id: None, memo: Bytes::from_static(b"moved"), ..awaiting(1, 4) };
    let first =
        Batch { operations, attempts: vec![moved, awaiting(1, 5), awaiting(1, 6)], ..Batch::default() };
    owned.append(first).await;
    let moved = StoredAttempt { external_id: None, cost: Some(3), ..awaiting(1, 4) };
    owned.append(Batch { attempts: vec![moved.clone()], ..Batch::default() }).await;
    check(&*owned.store, &[(1, vec![moved, awaiting(1, 5), awaiting(1, 6)])], "replaced").await;
    let twice = vec![awaiting(1, 4), end(1, 4, AttemptState::Unknown), end(1, 5, AttemptState::Retried)];
    owned.append(Batch { attempts: twice, ..Batch::default() }).await;
    let both = [ended(1, 4, AttemptState::Unknown), ended(1, 5, AttemptState::Retried)];
    let wanted = [(1, both.into_iter().chain([awaiting(1, 6)]).collect())];
    check(&*owned.store, &wanted, "ended").await;
    drop(owned);
    owned = OwnedPartition::open(backend, PARTITION).await;
    check(&*owned.store, &wanted, "after a restart").await;
}

/// An append that is refused keeps no attempts.
pub async fn a_refused_append_keeps_no_attempts(backend: &dyn Backend) {
    let owned = OwnedPartition::open(backend, PARTITION).await;
    owned
        .append(Batch { operations: vec![operation(1, backend.clock().now()).into()], ..Batch::default() })
        .await;
    backend.clock().advance(super::TTL * 2);
    let newer = owned.store.acquire_partition(PARTITION, "newer", super::TTL).await.expect_value("take over");
    let append =
        |owner, attempt| owned.store.append(owner, Batch { attempts: vec![attempt], ..Batch::default() });
    assert!(append(owned.owner, awaiting(1, 4)).await.is_err(), "an old epoch appends nothing");
    check(&*owned.store, &[(1, vec![])], "of a refused append").await;
    let long = StoredAttempt { memo: vec![0; 1 << 20].into(), ..awaiting(1, 4) };
    assert!(append(newer, long).await.is_err(), "a memo is bounded");
    check(&*owned.store, &[(1, vec![])], "of one that is too long").await;
}

/// Attempts go with their operation, and a rerun keeps them.
pub async fn attempts_go_with_their_operation(backend: &dyn Backend) {
    let owned = OwnedPartition::open(backend, PARTITION).await;
    let now = backend.clock().now();
    let result = |seq: u64, at: Time| {
        let (state, body) = (EndState::Failed, Bytes::new());
        StoredResult { seq: Seq(seq), at, state, attempt: 1, fault: None, body }
    };
    let later = now.after(super::TTL);
    let first = Batch {
        operations: (1..=3).map(|seq| operation(seq, now).into()).collect(),
        results: vec![result(1, now), result(2, later)],
        attempts: (1..=3).map(|seq| awaiting(seq, 4)).collect(),
        ..Batch::default()
    };
    owned.append(first).await;
    owned.append(Batch { reopened: vec![Seq(2)], ..Batch::default() }).await;
    let all = [(1, vec![awaiting(1, 4)]), (2, vec![awaiting(2, 4)]), (3, vec![awaiting(3, 4)])];
    check(&*owned.store, &all, "of operations that ended, run again and never ended").await;
    let retention = Retention { ended_before: later, most: 9 };
    assert_eq!(owned.store.sweep(owned.owner, retention).await.expect_value("sweep"), 1);
    let wanted = [(1, vec![]), (2, vec![awaiting(2, 4)]), (3, vec![awaiting(3, 4)])];
    check(&*owned.store, &wanted, "after a sweep").await;
}
