//! Very many lines, and unusual text.

use std::sync::Arc;

use tidegate_core::bounds::{DEPLOYMENT_LEN_MAX, JOURNAL_FENCE_MAX, JOURNAL_LINES_MAX, JOURNAL_NAME_LEN_MAX};
use tidegate_core::journal::{
    Deployment, DeploymentStage, DeploymentStep, JournalLines, MemoryJournal, StepState,
};
use tidegate_store::{Store, StoreErrorKind};

use super::{SCOPE, check, deployment, mapped, marked, step};
use crate::harness::{Backend, ExpectValue};

/// OPS-17: the maximum number of lines is written in one call, overwritten, and removed; one more
/// is refused.
pub async fn ten_thousand_journal_lines_are_written_at_once(backend: &dyn Backend) {
    let (store, mut book) = (backend.open().await.expect_value("open the store"), MemoryJournal::default());
    let kept = deployment("large", SCOPE, 1, DeploymentStage::Running);
    assert!(store.save_deployment(kept.clone()).await.expect_value("keep"));
    book.save_deployment(kept);
    let all = u32::try_from(JOURNAL_LINES_MAX).unwrap_or(u32::MAX);
    let mut forgotten = marked(all, "third");
    forgotten.mapped.iter_mut().for_each(|line| line.object = None);
    for (lines, when) in [
        (marked(all, "first"), "at first"),
        (marked(all, "second"), "again"),
        (forgotten, "when they are forgotten"),
    ] {
        assert!(store.write_journal("large", 1, lines.clone()).await.expect_value("write"));
        book.write_lines("large", 1, lines);
        let steps = store.deployment_steps("large").await.expect_value("look at steps");
        assert!(steps == book.steps("large"), "all steps are there {when}");
        let objects = store.mapped_objects(SCOPE).await.expect_value("look at objects");
        assert!(objects == book.mapped_objects(SCOPE), "all objects are as they should be {when}");
    }
    for lines in [
        JournalLines { steps: marked(all + 1, "x").steps, mapped: Vec::new() },
        JournalLines { steps: Vec::new(), mapped: marked(all + 1, "x").mapped },
    ] {
        let refused = store.write_journal("large", 1, lines).await.err().map(|error| error.kind());
        assert_eq!(refused, Some(StoreErrorKind::Invalid), "one line too many");
    }
    let steps = store.deployment_steps("large").await.expect_value("look at steps");
    assert!(steps == book.steps("large"), "what is refused is not written");
}

/// OPS-17: any text round-trips, up to the longest; what some store could not keep, every store
/// refuses; and what was never stored is not found, whatever its name.
pub async fn odd_words_in_the_journal_are_kept_or_refused(backend: &dyn Backend) {
    let (store, mut book) = (backend.open().await.expect_value("open the store"), MemoryJournal::default());
    let long = "ü".repeat(JOURNAL_NAME_LEN_MAX / 2);
    let odd =
        ["", " ", "é", "e\u{301}", "\u{10ffff}", "a\nb\tc", "'; --", "\"}{", "\\x00", "\u{1}", "null", &long];
    for (nth, word) in odd.iter().enumerate() {
        let kept = Deployment {
            note: Some((*word).into()),
            request: Arc::from(&b"\0\xff\r\n"[..]),
            ..deployment(word, word, JOURNAL_FENCE_MAX, DeploymentStage::Failed)
        };
        assert!(store.save_deployment(kept.clone()).await.expect_value("keep"));
        book.save_deployment(kept);
        let of = |key: &str| DeploymentStep {
            kind: (*word).into(),
            action: (*word).into(),
            fingerprint: (*word).into(),
            operation: Some((*word).into()),
            foreign_id: Some((*word).into()),
            note: Some((*word).into()),
            ..step(key, nth as u32, StepState::Failed)
        };
        let mut object = mapped(word, word);
        object.object.iter_mut().for_each(|object| object.place = Some((*word).into()));
        let lines = JournalLines { steps: odd.iter().map(|key| of(key)).collect(), mapped: vec![object] };
        assert!(store.write_journal(word, JOURNAL_FENCE_MAX, lines.clone()).await.expect_value("write"));
        book.write_lines(word, JOURNAL_FENCE_MAX, lines);
    }
    let large = Deployment {
        request: vec![7; DEPLOYMENT_LEN_MAX].into(),
        ..deployment("large", "", 1, DeploymentStage::Done)
    };
    assert!(store.save_deployment(large.clone()).await.expect_value("keep a large one"));
    book.save_deployment(large);
    refuses(&*store).await;
    let never = ["a\0b", "\0", "nowhere"];
    check(&*store, &book, &odd, &odd, "as it was written").await;
    check(&*store, &book, &never, &never, "of what was never kept").await;
    assert!(
        !store.write_journal("a\0b", 1, marked(1, "x")).await.expect_value("write to what was never kept")
    );
}

/// Each of these is refused as a whole.
async fn refuses(store: &dyn Store) {
    let too_long = "x".repeat(JOURNAL_NAME_LEN_MAX + 1);
    let good = deployment("refused", SCOPE, 1, DeploymentStage::Done);
    let larger = vec![7; DEPLOYMENT_LEN_MAX + 1];
    for (bad, why) in [
        (Deployment { id: "a\0".into(), ..good.clone() }, "a zero byte in an id"),
        (Deployment { scope: "\0".into(), ..good.clone() }, "a zero byte in a scope"),
        (Deployment { note: Some("a\0b".into()), ..good.clone() }, "a zero byte in a note"),
        (Deployment { id: too_long.as_str().into(), ..good.clone() }, "a long id"),
        (Deployment { scope: too_long.as_str().into(), ..good.clone() }, "a long scope"),
        (Deployment { fence: JOURNAL_FENCE_MAX + 1, ..good.clone() }, "a large fence"),
        (Deployment { request: larger.into(), ..good }, "a large request"),
    ] {
        let refused = store.save_deployment(bad).await.err().map(|error| error.kind());
        assert_eq!(refused, Some(StoreErrorKind::Invalid), "{why}");
    }
    let good = step("refused", 0, StepState::Planned);
    for (bad, why) in [
        (DeploymentStep { kind: "\0".into(), ..good.clone() }, "a zero byte in a kind"),
        (DeploymentStep { key: too_long.as_str().into(), ..good.clone() }, "a long key"),
        (DeploymentStep { action: "\0".into(), ..good.clone() }, "a zero byte in an action"),
        (DeploymentStep { fingerprint: "\0".into(), ..good.clone() }, "a zero byte in a fingerprint"),
        (DeploymentStep { operation: Some("\0".into()), ..good.clone() }, "a zero byte in an operation"),
        (DeploymentStep { foreign_id: Some("\0".into()), ..good.clone() }, "a zero byte in an object"),
        (DeploymentStep { note: Some("\0".into()), ..good }, "a zero byte in a note"),
    ] {
        let lines =
            JournalLines { steps: vec![step("beside", 0, StepState::Planned), bad], mapped: Vec::new() };
        let refused = store.write_journal("", JOURNAL_FENCE_MAX, lines).await.err().map(|error| error.kind());
        assert_eq!(refused, Some(StoreErrorKind::Invalid), "{why}");
    }
    let refused = store
        .write_journal("", JOURNAL_FENCE_MAX + 1, JournalLines::default())
        .await
        .err()
        .map(|error| error.kind());
    assert_eq!(refused, Some(StoreErrorKind::Invalid), "a large fence");
}
