//! What can be seen: lists, counts, events.

use std::time::Duration;

use tidegate::{Change, Filter};
use tidegate_core::State;

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn lists_page_through_everything_once() {
    let (store, upstream) = (memory(), all_done(10));
    let engine = open(&store, &upstream).await;
    engine.pause("held", "anna", "").await.unwrap();
    for n in 0..25 {
        engine.submit(operation("held", &format!("|{n}"))).await.unwrap();
        engine.submit(operation("free", &format!("|{n}"))).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    for (state, group, expected) in [
        (None, None, 50),
        (Some(State::Succeeded), None, 25),
        (Some(State::Queued), None, 24),
        (Some(State::Waiting), None, 1),
        (None, Some("free"), 25),
        (Some(State::Failed), None, 0),
    ] {
        let (mut seen, mut before) = (Vec::new(), None);
        loop {
            let filter =
                Filter { state, group: group.map(Into::into), before, limit: 7, ..Filter::default() };
            let page = engine.list(filter).await.unwrap();
            assert!(page.operations.len() <= 7);
            seen.extend(page.operations.into_iter().map(|view| view.id));
            match page.next {
                Some(next) => before = Some(next),
                None => break,
            }
        }
        assert_eq!(seen.len(), expected, "{state:?} {group:?}");
        assert!(seen.is_sorted_by(|a, b| a > b), "newest first, none twice");
    }
    let counts = engine.counts().await.unwrap();
    assert_eq!((counts.succeeded, counts.queued, counts.waiting, counts.stopped), (25, 24, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn events_can_be_taken_up_again() {
    let (store, upstream) = (memory(), all_done(10));
    let engine = open(&store, &upstream).await;
    let mut first = engine.events(None);
    let id = engine.submit(operation("g", "|x")).await.unwrap().id;
    engine.wait(id, LONG).await.unwrap();
    let seen = first.live.recv().await.unwrap();
    assert!(matches!(&seen.change, Change::Operation { state: State::Queued, .. }));
    drop(first);
    let again = engine.events(Some(seen.id));
    assert!(!again.gap);
    let states: Vec<_> = again
        .missed
        .iter()
        .filter_map(|event| match &event.change {
            Change::Operation { state, .. } => Some(*state),
            _ => None,
        })
        .collect();
    assert_eq!(states, [State::Running, State::Succeeded]);
    assert!(engine.events(Some(1)).gap, "what is too old to be kept is said to be missing");
}
