//! The events of deployments: written with the lines of their steps, in order, and bounded.

use std::sync::Arc;

use tidegate_core::bounds::{DEPLOYMENT_EVENTS_KEPT, JOURNAL_LINES_MAX};
use tidegate_core::journal::{DeploymentStage, JournalLines, MemoryJournal, StepState};

use super::{SCOPE, check, deployment, mapped, marked, step};
use crate::harness::{Backend, ExpectValue};

/// OPS-17: at whatever moment everything stops, a step's state and its event are both there or
/// neither; lines without a step are no event, and a refused write leaves none.
pub async fn journal_events_come_with_their_lines(backend: &dyn Backend) {
    let (store, mut book) = (backend.open().await.expect_value("open the store"), MemoryJournal::default());
    let kept = deployment("a", SCOPE, 2, DeploymentStage::Running);
    assert!(store.save_deployment(kept.clone()).await.expect_value("keep"));
    book.save_deployment(kept);
    let states = [StepState::Planned, StepState::Failed, StepState::Planned, StepState::Applied];
    for (round, state) in states.into_iter().enumerate() {
        let mut lines = marked(300, &format!("round {round}"));
        lines.steps.iter_mut().for_each(|step| step.state = state);
        // The same step twice in one write: two events, in the order of the lines.
        lines.steps.insert(7, step("key-00200", 9, StepState::Failed));
        let writing = {
            let (store, lines) = (Arc::clone(&store), lines.clone());
            tokio::spawn(async move { store.write_journal("a", 2, lines).await })
        };
        loop {
            let is_over = writing.is_finished();
            let image = backend.crash_image().await.expect_value("take a crash image");
            let steps = image.deployment_steps("a").await.expect_value("look at steps");
            let events = image.deployment_events("a").await.expect_value("look at events");
            let mark = format!("round {round}");
            let is_written = steps.iter().any(|step| step.note.as_deref() == Some(&*mark));
            let count = events.events.len();
            assert!(count == 301 * round || count == 301 * (round + 1), "{count} events in round {round}");
            // An image on a server stays live: events that are read later may be newer.
            assert!(!is_written || count == 301 * (round + 1), "round {round} has no events");
            if is_over {
                assert!(is_written, "round {round} is not there");
                break;
            }
            tokio::task::yield_now().await;
        }
        assert!(writing.await.expect_value("join the writer").expect_value("write lines"));
        book.write_lines("a", 2, lines);
        check(&*store, &book, &["a"], &[SCOPE], &format!("after round {round}")).await;
    }
    let objects = JournalLines { steps: Vec::new(), mapped: vec![mapped("desk", "77")] };
    assert!(store.write_journal("a", 2, objects.clone()).await.expect_value("write an object"));
    book.write_lines("a", 2, objects);
    assert!(!store.write_journal("a", 1, marked(3, "late")).await.expect_value("write too late"));
    check(&*store, &book, &["a", "b"], &[SCOPE], "at the end").await;
}

/// OPS-17: a deployment keeps a bounded number of events; the oldest are dropped and counted, and
/// those of other deployments stay.
pub async fn journal_events_are_bounded(backend: &dyn Backend) {
    let (store, mut book) = (backend.open().await.expect_value("open the store"), MemoryJournal::default());
    for id in ["a", "b"] {
        let kept = deployment(id, SCOPE, 1, DeploymentStage::Running);
        assert!(store.save_deployment(kept.clone()).await.expect_value("keep"));
        book.save_deployment(kept);
    }
    let most = u32::try_from(JOURNAL_LINES_MAX.min(DEPLOYMENT_EVENTS_KEPT)).unwrap_or(u32::MAX);
    for (id, count, mark) in
        [("b", 3, "first"), ("a", 5, "first"), ("a", most - 2, "second"), ("a", 2, "third")]
    {
        let lines = JournalLines { mapped: Vec::new(), ..marked(count, mark) };
        assert!(store.write_journal(id, 1, lines.clone()).await.expect_value("write"));
        book.write_lines(id, 1, lines);
        let found = store.deployment_events(id).await.expect_value("look at events");
        assert!(found == book.events(id), "the events of {id:?} after the {mark} write");
    }
    assert_eq!(book.events("a").dropped, 5, "the suite is about dropped events");
    drop(store);
    let store = backend.open().await.expect_value("open the store again");
    for id in ["a", "b"] {
        let found = store.deployment_events(id).await.expect_value("look at events");
        assert!(found == book.events(id), "the events of {id:?} after a restart");
    }
}
