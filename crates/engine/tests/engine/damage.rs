//! A store whose rows were changed or lost behind the engine's back: what was not accepted is never
//! sent, and what is missing is named.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate::{Filter, Options};
use tidegate_contract::{FaultPlan, FaultyStore};
use tidegate_core::{Seq, State};
use tidegate_store::Store;

use crate::scripted_upstream::*;

fn store() -> (Arc<FaultyStore>, Arc<dyn Store>) {
    let faulty = Arc::new(FaultyStore::new(memory(), FaultPlan::none()));
    (Arc::clone(&faulty), faulty)
}

/// OPS-8: a payload that was patched in any store is not sent, whether it is read ahead or when it
/// is taken: its operation fails and says why, and the others are sent.
#[tokio::test(start_paused = true)]
async fn ops_8_a_patched_payload_is_not_sent_from_any_store() {
    for payload_cache_bytes in [0, Options::default().payload_cache_bytes] {
        let (faulty, store) = store();
        let first = open(&store, &all_done(1)).await;
        let later = |n| operation(&format!("g{n}"), &format!("|{n}")).with_delay(Duration::from_secs(60));
        let ids: Vec<_> = first
            .submit_all((0..3).map(later).collect())
            .await
            .into_iter()
            .map(|one| one.unwrap().id)
            .collect();
        first.drain().await;
        faulty.set_damage(|stored| {
            if stored.operation.seq == Seq(2) {
                stored.operation.payload = Bytes::from_static(b"|7");
            }
        });
        let upstream = all_done(1);
        let options = Options::default().with_payload_cache_bytes(payload_cache_bytes);
        let engine = open_with(&store, &upstream, options, &[]).await;
        for states in [vec![], vec![State::Queued, State::Waiting]] {
            let listed = engine.list(Filter::default().with_limit(10).with_states(states)).await.unwrap();
            assert_eq!(listed.operations.len(), 3, "one that is damaged hides no other");
        }
        let view = engine.get(ids[1]).await.unwrap();
        assert_eq!(engine.details(&view).await.unwrap().request, None, "what is damaged is not shown");
        assert!(view.fault.unwrap().message.contains("is damaged"), "it is named before it is due");
        let mut states = Vec::new();
        for id in &ids {
            states.push(engine.wait(*id, LONG).await.unwrap().state);
        }
        assert_eq!(states, [State::Succeeded, State::Failed, State::Succeeded]);
        let view = engine.get(ids[1]).await.unwrap();
        assert!(view.fault.unwrap().message.contains("was not sent"));
        let mut sent = upstream.payloads();
        sent.sort_unstable();
        assert_eq!(sent, ["|0", "|2"], "what was patched is not sent");
        assert!(engine.rerun(ids[1]).await.unwrap_err().unreadable, "nor when it is rerun");
    }
}

/// OPS-8: an operation that has ended and whose result the store has lost is not shown as queued.
#[tokio::test(start_paused = true)]
async fn ops_8_a_lost_result_is_named() {
    let (faulty, store) = store();
    let engine = open(&store, &all_done(1)).await;
    let ids = [engine.submit(operation("g", "|1")).await.unwrap().id, {
        let later = operation("h", "|2").with_delay(Duration::from_secs(60));
        engine.submit(later).await.unwrap().id
    }];
    assert_eq!(engine.wait(ids[0], LONG).await.unwrap().state, State::Succeeded);
    faulty.set_damage(|stored| stored.result = None);
    let view = engine.get(ids[0]).await.unwrap();
    assert_eq!(view.state, State::Unknown);
    assert!(view.fault.unwrap().message.contains("is missing from the store"));
    let listed = engine.list(Filter::default().with_limit(10)).await.unwrap().operations;
    let states: Vec<_> = listed.iter().map(|view| (view.id, view.state)).collect();
    assert_eq!(states, [(ids[1], State::Waiting), (ids[0], State::Unknown)]);
}
