//! The suites of `AuditLog`: pages cover all entries once, newest first; an entry is durable when
//! its write returns; and the log is bounded by count and by age.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::Time;
use tidegate_core::bounds::AUDIT_TEXT_LEN_MAX;
use tidegate_store::audit::{AuditEntry, AuditId, AuditRetention};
use tidegate_store::{Store, StoreErrorKind};

use crate::harness::{Backend, ExpectValue};
use crate::rng::TestRng;

/// The number of entries in a random sequence.
const ENTRIES: usize = 120;
/// A retention that keeps everything.
const ALL: AuditRetention = AuditRetention { entries: 10_000, since: Time::ZERO };
const TEXTS: [&str; 6] = ["", "anna", "it's \"full\"\n\\", "50 % _*", "Größe \u{1f980}\u{7f}", "[1] {x} -"];

fn entry(at: u64, tie: u32) -> AuditEntry {
    AuditEntry {
        id: AuditId { at: Time::from_micros(at), tie },
        node: "node-1".into(),
        by: "anna".into(),
        action: "pause".into(),
        kind: "groups".into(),
        subject: "shop:1".into(),
        detail: None,
        reason: Some("template fix".into()),
        status: 200,
    }
}

fn any_entry(rng: &mut TestRng) -> AuditEntry {
    let mut word = || Arc::<str>::from(*rng.pick(&TEXTS));
    let [node, by, action, kind, subject, detail, reason] = std::array::from_fn(|_| word());
    // A small set of moments, so that some are the same; one is as late as a time can be stored.
    let at = if rng.percent(5) { i64::MAX.cast_unsigned() } else { 1_780_000_000_000_000 + rng.below(40) };
    let tie = if rng.percent(10) { u32::MAX } else { rng.below(50) as u32 };
    let (detail, reason) = (rng.percent(60).then_some(detail), rng.percent(60).then_some(reason));
    let id = AuditId { at: Time::from_micros(at), tie };
    AuditEntry { id, node, by, action, kind, subject, detail, reason, status: 200 + rng.below(350) as u16 }
}

/// Reads the whole log in pages of this size.
async fn read_all(store: &dyn Store, most: usize) -> Vec<AuditEntry> {
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let page = store.audit_entries(before, most).await.expect_value("read the audit log");
        assert!(page.entries.len() <= most, "a page of {most} has {} entries", page.entries.len());
        found.extend(page.entries);
        let Some(next) = page.next else { return found };
        assert!(before.is_none_or(|before| next < before), "{next} comes after {before:?}");
        before = Some(next);
    }
}

/// For entries added in any order, also twice and by two processes, pages of any size cover the log
/// once, newest first; also after a restart.
pub async fn the_audit_log_lists_newest_first(backend: &dyn Backend) {
    let (mut rng, mut known) = (TestRng::seeded_or(173), BTreeMap::new());
    let store = backend.open().await.expect_value("open the store");
    let second = backend.open_second(&store).await.expect_value("open a second store");
    assert_eq!(read_all(&*store, 3).await, [], "there is nothing at the start");
    for _ in 0..ENTRIES {
        let new = any_entry(&mut rng);
        let new = known.entry(new.id).or_insert(new).clone();
        let writer = if rng.percent(50) { &store } else { &second };
        writer.add_audit_entry(new, ALL).await.expect_value("add an entry");
    }
    let wanted: Vec<AuditEntry> = known.into_values().rev().collect();
    assert!(wanted.len() < ENTRIES, "the suite is about entries that are added twice, too");
    for most in [1, 7, wanted.len(), usize::MAX] {
        assert!(read_all(&*second, most).await == wanted, "in pages of {most}");
    }
    let before = Some(AuditId { at: Time::from_micros(1), tie: 7 });
    let page = store.audit_entries(before, 9).await.expect_value("read before everything");
    assert!(page.entries.is_empty() && page.next.is_none(), "{page:?}");
    drop((store, second));
    let store = backend.open().await.expect_value("open the store again");
    assert!(read_all(&*store, 50).await == wanted, "after a restart");
}

/// An entry is durable when its write returns, at whatever moment everything stops.
pub async fn an_audit_entry_is_durable(backend: &dyn Backend) {
    let store = backend.open().await.expect_value("open the store");
    for round in 1..=5_u32 {
        store.add_audit_entry(entry(7, round), ALL).await.expect_value("add an entry");
        let image = backend.crash_image().await.expect_value("take a crash image");
        let found = read_all(&*image, 100).await;
        let wanted: Vec<AuditEntry> = (1..=round).rev().map(|tie| entry(7, tie)).collect();
        assert_eq!(found, wanted, "in the image after entry {round}");
    }
}

/// The newest entries stay, and of those the ones from the given time on.
pub async fn the_audit_log_is_bounded(backend: &dyn Backend) {
    let store = backend.open().await.expect_value("open the store");
    let add = async |at, tie, entries, since| -> Vec<(u64, u32)> {
        let retention = AuditRetention { entries, since: Time::from_micros(since) };
        store.add_audit_entry(entry(at, tie), retention).await.expect_value("add an entry");
        let left = read_all(&*store, 100).await;
        left.iter().map(|entry| (entry.id.at.as_micros(), entry.id.tie)).collect()
    };
    for at in 1..=9 {
        add(at, 0, 4, 0).await;
    }
    let newest = [(10, 0), (9, 0), (8, 0), (7, 0)];
    assert_eq!(add(10, 0, 4, 0).await, newest, "by count");
    assert_eq!(add(10, 0, 4, 0).await, newest, "the same entry needs no more room");
    assert_eq!(add(3, 0, 4, 0).await, newest, "an older entry gets no room");
    assert_eq!(add(10, 5, 4, 9).await, [(10, 5), (10, 0), (9, 0)], "by age, from that time on");
    assert_eq!(add(86_400, 1, 4, 86_400).await, [(86_400, 1)], "all but the new one are too old");
}

/// A text that some store could not keep is refused by all, and changes nothing; the longest is
/// kept.
pub async fn odd_audit_entries_are_kept_or_refused(backend: &dyn Backend) {
    let store = backend.open().await.expect_value("open the store");
    let long: Arc<str> = "é".repeat(AUDIT_TEXT_LEN_MAX / 2).into();
    let kept = AuditEntry { subject: Arc::clone(&long), detail: Some(long), ..entry(7, 1) };
    store.add_audit_entry(kept.clone(), ALL).await.expect_value("add a long entry");
    let longer: Arc<str> = "x".repeat(AUDIT_TEXT_LEN_MAX + 1).into();
    let refused = [
        AuditEntry { subject: "a\0b".into(), ..entry(8, 1) },
        AuditEntry { reason: Some("\0".into()), ..entry(8, 2) },
        AuditEntry { detail: Some(longer), ..entry(8, 3) },
        entry(u64::MAX, 4),
    ];
    for entry in refused {
        let id = entry.id;
        let refusal = store.add_audit_entry(entry, ALL).await.err().map(|error| error.kind());
        assert_eq!(refusal, Some(StoreErrorKind::Invalid), "{id}");
    }
    assert_eq!(read_all(&*store, 100).await, [kept]);
}
