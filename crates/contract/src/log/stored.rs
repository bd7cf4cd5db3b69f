//! Stored operations and results: byte for byte, and only the current result.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::{EndState, Seq, Time};
use tidegate_store::Clock;
use tidegate_store::log::{Batch, StoredResult};

use super::mirror::Mirror;
use super::{OwnedPartition, PARTITION};
use crate::harness::{Backend, ExpectValue};
use crate::rng::TestRng;
use crate::samples::BatchWriter;

/// Payloads, envelopes and results round-trip, in the requested order; missing ones are `None`.
pub async fn bodies_come_back_byte_for_byte(backend: &dyn Backend) {
    let mut author = BatchWriter::new(TestRng::seeded_or(31));
    let mut mirror = Mirror::default();
    let owned = OwnedPartition::open(backend, PARTITION).await;
    let mut batch = author.sized_batch(9, backend.clock().now());
    let every_byte: Vec<u8> = (0..=255).collect();
    Arc::make_mut(&mut batch.operations[0]).payload = Bytes::new();
    Arc::make_mut(&mut batch.operations[1]).payload = Bytes::from(every_byte.repeat(2_048));
    Arc::make_mut(&mut batch.operations[2]).envelope = Bytes::from(every_byte);
    Arc::make_mut(&mut batch.operations[3]).key = Some("O'Brien; — \u{1f980}".into());
    batch.results[0].body = Bytes::from(author.rng.bytes(1_000_000));
    batch.results[1].body = Bytes::new();
    mirror.note(&batch);
    owned.append(batch).await;
    mirror.check(&*owned.store, PARTITION, "at once").await;
    let asked = vec![Seq(5), Seq(u64::MAX), Seq(1), Seq(0), Seq(10), Seq(5)];
    let found = owned.store.read(PARTITION, asked.clone()).await.expect_value("read");
    let wanted: Vec<_> = asked.iter().map(|seq| mirror.stored.get(seq).cloned()).collect();
    assert!(found == wanted, "operations come in the order asked, `None` for what is not kept");
    let found = owned.store.load_operations(PARTITION, asked).await.expect_value("read operations");
    let wanted: Vec<_> = wanted.into_iter().map(|stored| Some(stored?.operation)).collect();
    assert!(found == wanted, "without results they come in the order asked too");
    assert!(
        owned
            .store
            .load_operations(PARTITION, Vec::new())
            .await
            .expect_value("read no operations")
            .is_empty()
    );
    assert_eq!(
        owned.store.load_operations(PARTITION + 1, vec![Seq(1)]).await.expect_value("read elsewhere"),
        [None]
    );
    assert!(owned.store.read(PARTITION, Vec::new()).await.expect_value("read nothing").is_empty());
    assert_eq!(owned.store.read(PARTITION + 1, vec![Seq(1)]).await.expect_value("read elsewhere"), [None]);
    drop(owned);
    let owned = OwnedPartition::open(backend, PARTITION).await;
    mirror.check(&*owned.store, PARTITION, "after a restart").await;
}

/// OPS-9: a rerun operation has no result until it has ended again; then it has the new one.
pub async fn reopened_operations_have_no_result(backend: &dyn Backend) {
    let now = backend.clock().now();
    let first = BatchWriter::new(TestRng::seeded_or(32)).sized_batch(4, now);
    let seq = first.results[0].seq;
    let again = Batch { reopened: vec![seq], ..Batch::default() };
    let end = Batch { results: vec![succeeded(seq, now.after(super::TTL))], ..Batch::default() };
    let steps =
        [(first, "ended"), (again.clone(), "reopened"), (end, "ended again"), (again, "reopened twice")];
    written_step_by_step(backend, steps).await;
}

/// A later result replaces an earlier one, whether the operation was reopened or not; of two in one
/// append the later one counts. The rest of such an append is stored as usual.
pub async fn the_last_result_stands(backend: &dyn Backend) {
    let now = backend.clock().now();
    let mut author = BatchWriter::new(TestRng::seeded_or(33));
    let first = author.sized_batch(4, now);
    let seq = first.results[0].seq;
    let mut over = author.sized_batch(4, now);
    over.results.push(succeeded(seq, now.after(super::TTL)));
    let failed = StoredResult { state: EndState::Failed, attempt: 8, ..succeeded(seq, now) };
    let twice = Batch { results: vec![failed, succeeded(seq, now)], ..Batch::default() };
    let canceled = StoredResult { state: EndState::Canceled, ..succeeded(seq, now) };
    let at_once = Batch { results: vec![canceled], reopened: vec![seq], ..Batch::default() };
    let steps =
        [(first, "ended"), (over, "written over"), (twice, "written twice"), (at_once, "and reopened")];
    written_step_by_step(backend, steps).await;
}

fn succeeded(seq: Seq, at: Time) -> StoredResult {
    let body = Bytes::from_static(b"the second answer");
    StoredResult { seq, at, state: EndState::Succeeded, attempt: 7, fault: None, body }
}

/// Appends each batch, and checks what is stored after it: at once, in an image, and after a
/// restart.
async fn written_step_by_step(backend: &dyn Backend, steps: [(Batch, &str); 4]) {
    let mut mirror = Mirror::default();
    let mut owned = OwnedPartition::open(backend, PARTITION).await;
    for (batch, when) in steps {
        mirror.note(&batch);
        owned.append(batch).await;
        mirror.check(&*owned.store, PARTITION, when).await;
        let image = backend.crash_image().await.expect_value("take a crash image");
        mirror.check(&*image, PARTITION, &format!("in the image, {when}")).await;
        drop(owned);
        owned = OwnedPartition::open(backend, PARTITION).await;
        mirror.check(&*owned.store, PARTITION, &format!("after a restart, {when}")).await;
    }
}
