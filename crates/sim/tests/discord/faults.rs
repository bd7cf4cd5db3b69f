//! Faults: failures, cuts and stops, and the state after them.

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tidegate_sim::DiscordSimOptions;

use crate::rig::{GUILD, Rig, open};

fn roles() -> String {
    format!("/guilds/{GUILD}/roles")
}

async fn count(rig: &Rig) -> usize {
    let dump = rig.get(&format!("/_sim/guilds/{GUILD}")).await.body();
    let roles = dump["roles"].as_array().map_or(0, Vec::len);
    roles.saturating_sub(2)
}

async fn reached(rig: &Rig) {
    while rig.get("/_sim/stop").await.body()["reached"] != true {
        tokio::task::yield_now().await;
    }
}

/// OPS-23: a cut comes after the effect, and a failure without one; a seed reproduces them.
#[tokio::test]
async fn ops_23_faults_are_seeded() {
    let mut histories = Vec::new();
    for seed in [1, 1, 2] {
        let options = DiscordSimOptions { fail_rate: 0.3, cut_rate: 0.3, seed, ..open() };
        let rig = Rig::start(options).await;
        let (mut history, mut made) = (Vec::new(), 0);
        for _ in 0..40 {
            let told = rig.try_call(Method::POST, &roles(), Some(&json!({"name": "r"}))).await;
            made += usize::from(told.as_ref().is_none_or(|told| told.status == 200));
            history.push(told.map(|told| told.status));
        }
        assert_eq!(count(&rig).await, made);
        let stats = rig.sim.stats();
        assert_eq!((stats.all.writes, stats.all.duplicates), (made as u64, made as u64 - 1));
        histories.push(history);
    }
    assert_eq!(histories[0], histories[1]);
    assert_ne!(histories[0], histories[2]);
    let kinds: BTreeSet<_> = histories.concat().into_iter().collect();
    assert_eq!(kinds, BTreeSet::from([None, Some(200), Some(500), Some(502), Some(503)]));
}

/// OPS-15: a stop before a write leaves no effect, one after it leaves the effect; nothing proceeds
/// meanwhile, and hanging calls are cut when the stop is lifted.
#[tokio::test]
async fn ops_15_a_stop_holds_at_its_write() {
    for (when, left) in [("before", 1), ("after", 2)] {
        let rig = Rig::start(open()).await;
        rig.post("/_sim/stop", json!({"write": 2, "when": when})).await;
        rig.role(json!({"name": "one"})).await;
        assert_eq!(rig.get(&roles()).await.status, 200, "a read is no write");
        assert_eq!(rig.post(&roles(), json!({"name": ""})).await.status, 400, "nor is what is refused");
        let body = json!({"name": "two"});
        let path = roles();
        let held = rig.try_call(Method::POST, &path, Some(&body));
        let lifted = async {
            reached(&rig).await;
            assert_eq!(count(&rig).await, left, "{when}");
            let late = rig.try_call(Method::GET, "/users/@me", None);
            assert!(tokio::time::timeout(Duration::from_millis(50), late).await.is_err(), "nothing proceeds");
            assert_eq!(rig.delete("/_sim/stop").await.body()["reached"], true);
        };
        assert!(tokio::join!(held, lifted).0.is_none(), "it is cut");
        assert_eq!(count(&rig).await, left);
        rig.role(json!({"name": "three"})).await;
        assert_eq!((count(&rig).await, rig.sim.stats().all.writes), (left + 1, left as u64 + 1));
    }
}

/// OPS-23: a stop can cut at once, and then everything proceeds.
#[tokio::test]
async fn ops_23_a_stop_can_cut() {
    for (when, left) in [("before", 0), ("after", 1)] {
        let rig = Rig::start(open()).await;
        rig.post("/_sim/stop", json!({"write": 1, "when": when, "how": "cut"})).await;
        assert!(rig.try_call(Method::POST, &roles(), Some(&json!({}))).await.is_none());
        assert_eq!(count(&rig).await, left);
        rig.role(json!({})).await;
        assert_eq!(count(&rig).await, left + 1);
    }
}

/// A nonce and a hidden limit do not count a write that was stopped before its effect.
#[tokio::test]
async fn what_was_stopped_before_did_not_happen() {
    let mut options = open();
    options.limits.set("renames", 1, 600_000).unwrap();
    let rig = Rig::start(options).await;
    let channel = rig.channel(json!({"name": "a"})).await;
    let message = json!({"content": "x", "nonce": 5, "enforce_nonce": true});
    let calls: [(Method, String, Value); 2] = [
        (Method::POST, format!("/channels/{channel}/messages"), message),
        (Method::PATCH, format!("/channels/{channel}"), json!({"name": "b"})),
    ];
    for (method, path, body) in calls {
        rig.post("/_sim/stop", json!({"write": 1, "when": "before", "how": "cut"})).await;
        assert!(rig.try_call(method.clone(), &path, Some(&body)).await.is_none());
        assert_eq!(rig.call(method, &path, body).await.status, 200);
    }
    assert_eq!(rig.sim.stats().guilds["4242"].messages, 1);
}

/// A response takes the configured latency.
#[tokio::test]
async fn latency_is_kept() {
    let latency = Duration::from_millis(40);
    let rig = Rig::start(DiscordSimOptions { latency, ..open() }).await;
    let started = tokio::time::Instant::now();
    assert_eq!(rig.get("/users/@me").await.status, 200);
    assert!(started.elapsed() >= latency);
    let refused = DiscordSimOptions { fail_rate: 1.1, ..open() };
    assert!(tidegate_sim::DiscordSim::start(refused).await.is_err());
}
