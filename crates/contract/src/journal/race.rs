//! Concurrent writers, writers that lost their lease, and lines that are read while they are
//! written.

use std::sync::Arc;

use tidegate_core::journal::{DeploymentStage, JournalLines, MemoryJournal, ObjectMapping, StepState};
use tidegate_store::StoreErrorKind;
use tokio::sync::Barrier;

use super::{SCOPE, check, deployment, mapped, marked, step};
use crate::harness::{Backend, ExpectValue};

/// OPS-17: at whatever moment everything stops, either all lines of a write are stored or none; of
/// a refused write, none.
pub async fn journal_lines_are_all_or_nothing(backend: &dyn Backend) {
    let store = backend.open().await.expect_value("open the store");
    assert!(
        store.save_deployment(deployment("a", SCOPE, 1, DeploymentStage::Running)).await.expect_value("keep")
    );
    for round in 0..6 {
        let (mark, count) = (format!("round {round}"), 400);
        let writing = {
            let (store, lines) = (Arc::clone(&store), marked(count, &mark));
            tokio::spawn(async move { store.write_journal("a", 1, lines).await })
        };
        loop {
            let is_over = writing.is_finished();
            let image = backend.crash_image().await.expect_value("take a crash image");
            let steps = image.deployment_steps("a").await.expect_value("look at steps");
            let new = steps.iter().filter(|step| step.note.as_deref() == Some(&*mark)).count();
            assert!(new == 0 || new == count as usize, "{new} of {count} steps are there in round {round}");
            let objects = image.mapped_objects(SCOPE).await.expect_value("look at objects");
            let of_round = |line: &&ObjectMapping| **line == mapped(&line.key, &mark);
            let mapped = objects.iter().filter(of_round).count();
            assert!(mapped == 0 || mapped == count as usize, "{mapped} of {count} objects are there");
            // An image on a server stays live: objects that are read later may be newer than the
            // steps.
            assert!(mapped >= new, "the steps of round {round} are there without their objects");
            if is_over {
                assert_eq!((new, mapped), (count as usize, count as usize), "after round {round}");
                break;
            }
            tokio::task::yield_now().await;
        }
        assert!(writing.await.expect_value("join the writer").expect_value("write lines"));
    }
    let mut bad = marked(5, "bad");
    bad.mapped[4].key = "a\0b".into();
    let refused = store.write_journal("a", 1, bad).await.err().map(|error| error.kind());
    assert_eq!(refused, Some(StoreErrorKind::Invalid), "a line that cannot be kept");
    let steps = store.deployment_steps("a").await.expect_value("look at steps");
    assert!(steps.iter().all(|step| step.note.as_deref() == Some("round 5")), "a refused write left lines");
}

/// OPS-17: a writer that lost the lease changes nothing, neither the deployment nor its steps nor
/// any object; a writer with the same fence or a newer one does.
pub async fn an_old_fence_changes_no_line_of_the_journal(backend: &dyn Backend) {
    let (store, mut book) = (backend.open().await.expect_value("open the store"), MemoryJournal::default());
    for fence in [3, 9, 10, 100] {
        let kept = deployment("a", SCOPE, fence, DeploymentStage::Running);
        assert!(store.save_deployment(kept.clone()).await.expect_value("keep"));
        book.save_deployment(kept);
        let lines = marked(3, &format!("by {fence}"));
        assert!(store.write_journal("a", fence, lines.clone()).await.expect_value("write"));
        book.write_lines("a", fence, lines);
        for old in [0, 2, fence - 1] {
            let late = deployment("a", "guild:2", old, DeploymentStage::Done);
            assert!(!store.save_deployment(late).await.expect_value("keep too late"), "{old} after {fence}");
            let late = JournalLines { mapped: vec![mapped("key-00000", "late")], ..marked(4, "late") };
            assert!(
                !store.write_journal("a", old, late).await.expect_value("write too late"),
                "{old} after {fence}"
            );
            check(&*store, &book, &["a"], &[SCOPE, "guild:2"], &format!("after {old} was too late")).await;
        }
    }
    assert!(!store.write_journal("b", 1_000, marked(1, "x")).await.expect_value("write to nothing"));
    check(&*store, &book, &["a", "b"], &[SCOPE], "after a write to nothing").await;
    let newer = JournalLines { steps: vec![step("key-00001", 1, StepState::Applied)], mapped: Vec::new() };
    assert!(store.write_journal("a", 101, newer.clone()).await.expect_value("write with a newer fence"));
    book.write_lines("a", 101, newer);
    check(&*store, &book, &["a"], &[SCOPE], "after a newer fence").await;
}

/// OPS-17: an old and a new holder write concurrently, over two stores; from the new holder's first
/// line on, no write of the old one succeeds.
pub async fn the_newer_fence_wins_the_journal(backend: &dyn Backend) {
    let old = backend.open().await.expect_value("open the store");
    let new = backend.open_second(&old).await.expect_value("open another store beside it");
    let mut book = MemoryJournal::default();
    for round in 0..10_u64 {
        let (before, after) = (round * 2 + 1, round * 2 + 2);
        assert!(
            old.save_deployment(deployment("a", SCOPE, before, DeploymentStage::Running))
                .await
                .expect_value("keep")
        );
        let start = Arc::new(Barrier::new(2));
        let late = {
            let (store, start) = (Arc::clone(&old), Arc::clone(&start));
            tokio::spawn(async move {
                start.wait().await;
                let mut done = Vec::new();
                for _ in 0..6 {
                    done.push(
                        store.write_journal("a", before, marked(20, "old")).await.expect_value("write"),
                    );
                    let kept = deployment("a", SCOPE, before, DeploymentStage::Failed);
                    done.push(store.save_deployment(kept).await.expect_value("keep"));
                }
                done
            })
        };
        start.wait().await;
        assert!(
            new.save_deployment(deployment("a", SCOPE, after, DeploymentStage::Running))
                .await
                .expect_value("take over")
        );
        assert!(new.write_journal("a", after, marked(20, "new")).await.expect_value("write"));
        let done = late.await.expect_value("join the old writer");
        let refused = done.iter().position(|done| !done).unwrap_or(done.len());
        assert!(
            done[refused..].iter().all(|done| !done),
            "round {round}: after a refusal nothing is taken: {done:?}"
        );
        let later = old.write_journal("a", before, marked(20, "old")).await.expect_value("write too late");
        assert!(!later, "round {round}: the old one is told that it has lost the lease");
        let found = new.deployment("a").await.expect_value("look").expect_value("find it");
        assert_eq!((found.fence, found.stage), (after, DeploymentStage::Running), "round {round}");
        book.save_deployment(deployment("a", SCOPE, before, DeploymentStage::Running));
        for _ in done.iter().step_by(2).filter(|done| **done) {
            book.write_lines("a", before, marked(20, "old"));
        }
        book.save_deployment(found);
        book.write_lines("a", after, marked(20, "new"));
        check(&*new, &book, &["a"], &[SCOPE], &format!("after round {round}")).await;
    }
}

/// Many concurrent writers, on the same scope and on others, with the same objects in different
/// orders: each call returns, and there is no deadlock.
pub async fn many_write_the_journal_at_once(backend: &dyn Backend) {
    const WRITERS: usize = 12;
    let first = backend.open().await.expect_value("open the store");
    let second = backend.open_second(&first).await.expect_value("open another store beside it");
    let start = Arc::new(Barrier::new(WRITERS));
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let store = Arc::clone(if writer % 2 == 0 { &first } else { &second });
        let start = Arc::clone(&start);
        writers.push(tokio::spawn(async move {
            let (id, scope) = (format!("writer-{writer:02}"), format!("guild:{}", writer % 3));
            start.wait().await;
            for round in 0..8 {
                let kept = deployment(&id, &scope, 1, DeploymentStage::Running);
                assert!(store.save_deployment(kept).await.expect_value("keep"), "{id}");
                let mut lines = marked(30, &id);
                if writer % 4 > 1 {
                    lines.mapped.reverse();
                }
                let forgotten = lines.mapped.iter_mut().skip(round % 2).step_by(2);
                forgotten.for_each(|line| line.object = None);
                assert!(store.write_journal(&id, 1, lines).await.expect_value("write"), "{id}");
            }
        }));
    }
    for writer in writers {
        writer.await.expect_value("join a writer");
    }
    let all = first.deployments(None, usize::MAX).await.expect_value("list deployments");
    assert_eq!(all.len(), WRITERS, "each has its deployment");
    for found in all {
        let steps = second.deployment_steps(&found.id).await.expect_value("look at steps");
        assert_eq!(steps.len(), 30, "{} has all of its steps", found.id);
        assert!(steps.iter().all(|step| step.note.as_deref() == Some(&*found.id)), "and nobody else's");
    }
}
