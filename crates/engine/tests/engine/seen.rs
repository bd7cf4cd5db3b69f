//! Queries: lists, counts, events.

use std::sync::Arc;
use std::time::Duration;

use tidegate::{Change, Event, EventSink, Filter, GroupFilter, OperationId, Options};
use tidegate_core::{State, Verdict};
use tokio::sync::broadcast::Receiver;

use crate::scripted_upstream::*;

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
    let unended = [State::Queued, State::Waiting, State::Running];
    for (states, group, expected) in [
        (&[] as &[State], None, 50),
        (&[State::Succeeded], None, 25),
        (&[State::Queued], None, 24),
        (&[State::Waiting], None, 1),
        (&[], Some("free"), 25),
        (&[State::Failed], None, 0),
        (&unended, None, 25),
        (&[State::Waiting, State::Succeeded], None, 26),
        (&[State::Queued, State::Failed, State::Succeeded], Some("held"), 24),
    ] {
        let (mut seen, mut before) = (Vec::new(), None);
        loop {
            let mut filter = Filter::default().with_states(states.to_vec()).with_before(before).with_limit(7);
            filter.group = group.map(Into::into);
            let page = engine.list(filter).await.unwrap();
            assert!(page.operations.len() <= 7);
            seen.extend(page.operations.into_iter().map(|view| view.id));
            match page.next {
                Some(next) => before = Some(next),
                None => break,
            }
        }
        assert_eq!(seen.len(), expected, "{states:?} {group:?}");
        assert!(seen.is_sorted_by(|a, b| a > b), "newest first, none twice");
    }
    let counts = engine.counts().await.unwrap();
    assert_eq!((counts.succeeded, counts.queued, counts.waiting, counts.stopped), (25, 24, 1, 1));
}

/// OPS-23: operations that wait for an operator are on the first page, however long the newer
/// backlog is.
#[tokio::test(start_paused = true)]
async fn ops_23_unknown_outcomes_are_listed_below_a_long_backlog() {
    let upstream = ScriptedUpstream::new(|_, _| (Duration::ZERO, Verdict::Unknown(fault("reset"))));
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
    let unknown = Filter::default().with_states(vec![State::Unknown]).with_limit(3);
    let first = engine.list(unknown.clone()).await.unwrap();
    let second = engine.list(unknown.clone().with_before(first.next)).await.unwrap();
    let groups: Vec<_> = first.operations.iter().chain(&second.operations).map(|view| &*view.group).collect();
    assert_eq!(groups, ["lost4", "lost3", "lost2", "lost1", "lost0"]);
    assert_eq!(second.next, None);
    let of_one = unknown.with_group("lost1");
    assert_eq!(engine.list(of_one).await.unwrap().operations.len(), 1);
    let held = engine.groups(GroupFilter::Held, None, 3).await.unwrap();
    assert_eq!((held.groups.len(), held.next.as_deref()), (3, Some("lost2")));
    assert_eq!(engine.groups(GroupFilter::Held, held.next, 3).await.unwrap().groups.len(), 2);
    assert_eq!(engine.groups(GroupFilter::Paused, None, 3).await.unwrap().groups.len(), 1);
}

/// Rare operations are found among many, by upstream, by time and by key, each once and newest
/// first.
#[tokio::test(start_paused = true)]
async fn filters_find_what_is_rare() {
    let (store, upstream) = (memory(), all_done(10));
    let engine = open(&store, &upstream).await;
    let (mut rare, mut times) = (Vec::new(), Vec::new());
    for n in 0..300 {
        let of: &str = if n % 100 == 7 { "rare" } else { "often" };
        let mut one = operation("g", &format!("|{n}")).with_upstream(of);
        one.dedupe_key = (n % 50 == 0).then(|| format!("key-{n}").into());
        let id = engine.submit(one).await.unwrap().id;
        if of == "rare" {
            rare.insert(0, id);
        }
        times.push(engine.get(id).await.unwrap().created_at);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let list = |filter: Filter| {
        let engine = engine.clone();
        async move {
            let (mut seen, mut before) = (Vec::new(), None);
            for _ in 0..200 {
                let page = engine.list(filter.clone().with_before(before).with_limit(2)).await.unwrap();
                assert!(page.operations.len() <= 2);
                seen.extend(page.operations);
                before = page.next;
                if before.is_none() {
                    break;
                }
            }
            assert!(before.is_none(), "it does not end");
            seen
        }
    };
    let found = list(Filter::default().with_upstream("rare")).await;
    assert_eq!(found.iter().map(|view| view.id).collect::<Vec<_>>(), rare);
    let (after, before) = (Some(times[100]), Some(times[110]));
    let between = Filter::default().with_created_after(after).with_created_before(before);
    let found = list(between.clone()).await;
    let found: Vec<_> = found.into_iter().map(|view| view.created_at).collect();
    assert_eq!(found, times[100..110].iter().rev().copied().collect::<Vec<_>>());
    let both = between.with_upstream("rare");
    assert_eq!(list(both).await.iter().map(|view| view.id).collect::<Vec<_>>(), [rare[1]]);
    let ended =
        Filter::default().with_states(vec![State::Failed, State::Succeeded]).with_created_after(after);
    assert_eq!(list(ended).await.len(), 200);
    let keyed = |key: &str| Filter::default().with_dedupe_key(key);
    let found = list(keyed("key-150")).await;
    assert_eq!(found.iter().map(|view| view.created_at).collect::<Vec<_>>(), [times[150]]);
    assert_eq!(found[0].result, None);
    assert!(list(keyed("key-150").with_states(vec![State::Failed])).await.is_empty());
    assert!(list(keyed("key-151")).await.is_empty());
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

/// A listener that left before the first change, or after a long silence, resumes without a loss.
#[tokio::test(start_paused = true)]
async fn a_listener_without_events_can_resume() {
    let (store, upstream) = (memory(), all_done(10));
    let engine = open(&store, &upstream).await;
    for silence in [Duration::ZERO, Duration::from_secs(3_600)] {
        let listener = engine.events(None);
        tokio::time::sleep(silence).await;
        drop(listener.live);
        let id = engine.submit(operation("g", "|x")).await.unwrap().id;
        engine.wait(id, LONG).await.unwrap();
        let mut again = engine.events(Some(listener.position));
        assert!(!again.gap, "after {silence:?}");
        assert_eq!((again.missed.len(), again.position), (3, listener.position));
        assert_eq!(again.missed[0].id, listener.position + 1);
        assert!(again.live.try_recv().is_err());
        // Long enough to be forgotten.
        drop(again);
        tokio::time::sleep(Duration::from_secs(7_200)).await;
        let id = engine.submit(operation("g", "|x")).await.unwrap().id;
        engine.wait(id, LONG).await.unwrap();
    }
}

/// The event of an operation's end counts its attempts as the operation itself does: a listener may
/// order events by them.
#[tokio::test(start_paused = true)]
async fn the_event_of_an_end_has_the_number_of_attempts() {
    let upstream = ScriptedUpstream::new(|payload, attempt| match (payload, attempt) {
        ("|third", 3) => (Duration::ZERO, Verdict::Done),
        _ => (Duration::ZERO, Verdict::Retry { fault: fault("503"), after: None }),
    });
    let store = memory();
    let engine = open(&store, &upstream).await;
    let mut events = engine.events(None);
    for (payload, ends_as) in [("|third", State::Succeeded), ("|never", State::Failed)] {
        let one = operation("g", payload).with_max_attempts(3);
        let id = engine.submit(one).await.unwrap().id;
        engine.wait(id, LONG).await.unwrap();
        let mut seen = Vec::new();
        while seen.last() != Some(&(ends_as, 3)) {
            let event = events.live.try_recv().unwrap_or_else(|_| panic!("only {seen:?}"));
            if let Change::Operation { state, attempt, .. } = event.change {
                seen.push((state, attempt));
            }
        }
        assert_eq!(engine.get(id).await.unwrap().attempt, 3);
        assert!(seen.is_sorted_by_key(|(_, attempt)| *attempt), "{seen:?}");
    }
}

/// Every end is an event: also that of an operation which was rerun, or accepted before a restart,
/// and is no longer in memory.
#[tokio::test(start_paused = true)]
async fn every_end_is_an_event() {
    let upstream = ScriptedUpstream::new(|_, _| (Duration::ZERO, Verdict::Rejected(fault("404"))));
    let store = memory();
    let engine = open(&store, &upstream).await;
    engine.pause("later", "test", "").await.unwrap();
    let id = engine.submit(operation("g", "|x")).await.unwrap().id;
    let later = engine.submit(operation("later", "|y")).await.unwrap().id;
    engine.wait(id, LONG).await.unwrap();
    let mut events = engine.events(None);
    engine.rerun(id).await.unwrap();
    engine.wait(id, LONG).await.unwrap();
    assert_eq!(states_of(&mut events.live, id), [State::Queued, State::Running, State::Failed]);
    engine.drain().await;
    let engine = open(&store, &upstream).await;
    let mut events = engine.events(None);
    engine.resume("later").await.unwrap();
    engine.wait(later, LONG).await.unwrap();
    assert_eq!(states_of(&mut events.live, later), [State::Running, State::Failed]);
}

/// A sink gets every event, also of what an engine starts while it opens.
#[tokio::test(start_paused = true)]
async fn a_sink_gets_the_events_from_the_start() {
    let upstream = ScriptedUpstream::new(|payload, _| {
        let seconds = if payload == "|slow" { 3_600 } else { 0 };
        (Duration::from_secs(seconds), Verdict::Done)
    });
    let store = memory();
    let engine = open_with(&store, &upstream, Options::default().with_workers(1), &[]).await;
    engine.submit(operation("g", "|slow")).await.unwrap();
    let id = engine.submit(operation("h", "|x")).await.unwrap().id;
    engine.drain().await;
    let (sender, mut events) = tokio::sync::broadcast::channel(64);
    let sink = EventSink::new(move |event| drop(sender.send(event)));
    let engine = open_with(&store, &upstream, Options::default().with_event_sink(sink), &[]).await;
    engine.wait(id, LONG).await.unwrap();
    assert_eq!(states_of(&mut events, id), [State::Running, State::Succeeded]);
}

/// The states that an operation entered, as its events say.
fn states_of(events: &mut Receiver<Arc<Event>>, wanted: OperationId) -> Vec<State> {
    let mut states = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let Change::Operation { id, state, .. } = event.change
            && id == wanted
        {
            states.push(state);
        }
    }
    states
}
