//! What can be seen: lists, counts, events.

use std::time::Duration;

use tidegate::{Change, Filter, GroupFilter};
use tidegate_core::{State, Verdict};

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

/// OPS-23: what waits for a person is on the first page, however long the backlog on top of it is.
#[tokio::test(start_paused = true)]
async fn ops_23_unknown_outcomes_are_listed_below_a_long_backlog() {
    let upstream = Scripted::new(|_, _| (Duration::ZERO, Verdict::Unknown(fault("reset"))));
    let store = memory();
    let engine = open(&store, &upstream).await;
    for n in 0..5 {
        engine.submit(operation(&format!("lost{n}"), "|pay")).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    engine.pause("deep", "anna", "").await.unwrap();
    for _ in 0..205 {
        let some = (0..100).map(|n| operation("deep", &format!("|{n}"))).collect();
        assert!(engine.submit_all(some).await.iter().all(Result::is_ok));
    }
    let unknown = Filter { state: Some(State::Unknown), limit: 3, ..Filter::default() };
    let first = engine.list(unknown.clone()).await.unwrap();
    let second = engine.list(Filter { before: first.next, ..unknown.clone() }).await.unwrap();
    let groups: Vec<_> = first.operations.iter().chain(&second.operations).map(|view| &*view.group).collect();
    assert_eq!(groups, ["lost4", "lost3", "lost2", "lost1", "lost0"]);
    assert_eq!(second.next, None);
    let of_one = Filter { group: Some("lost1".into()), ..unknown };
    assert_eq!(engine.list(of_one).await.unwrap().operations.len(), 1);
    let held = engine.groups(GroupFilter::Held, None, 3).await.unwrap();
    assert_eq!((held.groups.len(), held.next.as_deref()), (3, Some("lost2")));
    assert_eq!(engine.groups(GroupFilter::Held, held.next, 3).await.unwrap().groups.len(), 2);
    assert_eq!(engine.groups(GroupFilter::Paused, None, 3).await.unwrap().groups.len(), 1);
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
