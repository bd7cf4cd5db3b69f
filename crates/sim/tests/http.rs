//! The HTTP simulator over loopback, with an ordinary client.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use std::time::Duration;

use reqwest::{Client, StatusCode};
use serde_json::Value;
use tidegate_sim::{HttpSim, HttpSimOptions};

fn client() -> Client {
    Client::builder().no_proxy().retry(reqwest::retry::never()).build().unwrap()
}

async fn start(options: HttpSimOptions) -> (HttpSim, String) {
    let sim = HttpSim::start(options).await.unwrap();
    let url = format!("http://{}", sim.addr());
    (sim, url)
}

async fn fetch(client: &Client, url: String) -> Value {
    let bytes = client.get(url).send().await.unwrap().bytes().await.unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// LIM-19: many concurrent calls get no more than the bucket holds, and each refusal says when to
/// retry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lim_19_the_bucket_is_enforced() {
    // Nothing is restored within the test.
    let options = HttpSimOptions { capacity: 5, refill_per_s: Some(0.001), ..HttpSimOptions::default() };
    let (sim, url) = start(options).await;
    let client = client();
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..20 {
        let call = client.post(format!("{url}/x")).body(format!(r#"{{"id":{n}}}"#)).send();
        calls.spawn(async move { call.await.unwrap() });
    }
    let answers = calls.join_all().await;
    let throttled: Vec<_> = answers.iter().filter(|a| a.status() == StatusCode::TOO_MANY_REQUESTS).collect();
    assert_eq!(throttled.len(), 15);
    for answer in throttled {
        let wait: f64 = answer.headers()["retry-after"].to_str().unwrap().parse().unwrap();
        assert!(wait > 900.0 && wait <= 1_000.0, "{wait}");
        assert_eq!(answer.headers()["x-ratelimit-remaining"], "0");
        assert_eq!(answer.headers()["x-ratelimit-limit"], "5");
    }
    let stats = fetch(&client, format!("{url}/_sim/stats")).await;
    assert_eq!(stats, serde_json::to_value(sim.stats()).unwrap());
    let counts =
        ["calls", "writes", "throttled", "overstepped", "duplicates", "billed"].map(|k| stats[k].as_u64());
    assert_eq!(counts, [20, 5, 15, 15, 0, 0].map(Some));
    assert_eq!(stats["objects"], serde_json::json!({}));
    sim.shutdown().await;
}

/// OPS-4: calls to one path at the same time are counted; those to two paths, one after the other,
/// or behind one whose caller is gone, are not.
#[tokio::test]
async fn ops_4_overlapping_calls_are_counted() {
    let options = HttpSimOptions { latency: Duration::from_millis(300), ..HttpSimOptions::default() };
    let (sim, url) = start(options).await;
    let client = client();
    let call = |path: &str| client.post(format!("{url}/{path}")).send();
    let (a, b) = tokio::join!(call("a"), call("b"));
    assert!(a.unwrap().status().is_success() && b.unwrap().status().is_success());
    assert!(call("a").await.unwrap().status().is_success());
    assert!(tokio::time::timeout(Duration::from_millis(100), call("gone")).await.is_err());
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(call("gone").await.unwrap().status().is_success());
    assert_eq!((sim.stats().calls, sim.stats().overlapping), (5, 0));
    let (first, second) = tokio::join!(call("a"), call("a"));
    assert!(first.unwrap().status().is_success() && second.unwrap().status().is_success());
    assert_eq!(sim.stats().overlapping, 1);
}

/// The reported wait is enough: the next call succeeds.
#[tokio::test]
async fn the_told_wait_is_enough() {
    let options = HttpSimOptions { capacity: 1, refill_per_s: Some(20.0), ..HttpSimOptions::default() };
    let (_sim, url) = start(options).await;
    let client = client();
    let mut granted = 0;
    while granted < 3 {
        let answer = client.get(&url).send().await.unwrap();
        if answer.status() == StatusCode::OK {
            granted += 1;
            continue;
        }
        let wait: f64 = answer.headers()["retry-after"].to_str().unwrap().parse().unwrap();
        assert!(wait > 0.0 && wait <= 0.05, "{wait}");
        tokio::time::sleep(Duration::from_secs_f64(wait)).await;
        assert_eq!(client.get(&url).send().await.unwrap().status(), StatusCode::OK);
        granted += 1;
    }
}

/// OPS-23: a cut comes after the effect: the caller gets no response, and the write is there.
#[tokio::test]
async fn ops_23_a_cut_comes_after_the_effect() {
    let (sim, url) = start(HttpSimOptions { cut_rate: 1.0, ..HttpSimOptions::default() }).await;
    let client = client();
    for _ in 0..2 {
        let call = client.post(format!("{url}/x")).header("idempotency-key", "k").body("{}").send().await;
        assert!(call.unwrap_err().status().is_none());
    }
    let stats = sim.stats();
    assert_eq!((stats.calls, stats.writes, stats.duplicates), (2, 2, 1));
    let log = fetch(&client, format!("{url}/_sim/log?after=1")).await;
    let entry = serde_json::json!({"n": 2, "method": "POST", "path": "/x", "id": "k", "duplicate": true});
    assert_eq!(log, serde_json::json!({"writes": [entry], "next": 2, "oldest": 1}));
}

/// The log has the writes in the order of arrival.
#[tokio::test]
async fn the_log_keeps_the_order() {
    let (_sim, url) = start(HttpSimOptions::default()).await;
    let client = client();
    for n in [3, 1, 2] {
        client.put(format!("{url}/x?secret={n}")).body(format!(r#"{{"id":"w{n}"}}"#)).send().await.unwrap();
        client.get(format!("{url}/x")).send().await.unwrap();
    }
    let log = fetch(&client, format!("{url}/_sim/log")).await;
    let ids: Vec<_> = log["writes"].as_array().unwrap().iter().map(|w| w["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["w3", "w1", "w2"]);
    assert_eq!(client.get(format!("{url}/_sim/log?after=x")).send().await.unwrap().status(), 400);
    assert_eq!(client.get(format!("{url}/_sim/what")).send().await.unwrap().status(), 404);
}

async fn history(seed: u64) -> Vec<Option<u16>> {
    let options = HttpSimOptions { seed, fail_rate: 0.3, cut_rate: 0.3, ..HttpSimOptions::default() };
    let (sim, url) = start(options).await;
    let client = client();
    let mut history = Vec::new();
    for _ in 0..40 {
        history.push(client.post(&url).send().await.ok().map(|answer| answer.status().as_u16()));
    }
    sim.shutdown().await;
    history
}

/// The same seed gives the same faults, seen from outside.
#[tokio::test]
async fn a_seed_gives_its_faults_again() {
    let first = history(1).await;
    assert_eq!(first, history(1).await);
    assert_ne!(first, history(2).await);
    for seen in [Some(200), Some(500), None] {
        assert!(first.contains(&seen), "{seen:?}");
    }
}

/// A response echoes the request after its latency.
#[tokio::test]
async fn it_echoes_after_its_latency() {
    let latency = Duration::from_millis(40);
    let (sim, url) = start(HttpSimOptions { latency, ..HttpSimOptions::default() }).await;
    let started = tokio::time::Instant::now();
    let answer = client().post(format!("{url}/a/b")).body(r#"{"id":"i","x":1.10}"#).send().await.unwrap();
    assert!(started.elapsed() >= latency);
    assert_eq!(answer.headers()["content-type"], "application/json");
    let body = answer.bytes().await.unwrap();
    assert_eq!(&body[..], br#"{"call":1,"method":"POST","path":"/a/b","id":"i","body":{"id":"i","x":1.10}}"#);
    sim.shutdown().await;
}

/// Invalid options are refused, and a simulator that was shut down frees its address.
#[tokio::test]
async fn options_are_checked_and_the_address_is_freed() {
    for (fail_rate, capacity) in [(1.1, 1), (f64::NAN, 1), (0.0, 0)] {
        let options =
            HttpSimOptions { fail_rate, capacity, refill_per_s: Some(1.0), ..HttpSimOptions::default() };
        assert_eq!(HttpSim::start(options).await.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    }
    let (sim, url) = start(HttpSimOptions::default()).await;
    let listen = sim.addr();
    sim.shutdown().await;
    assert!(client().get(&url).send().await.unwrap_err().is_connect());
    let again = HttpSim::start(HttpSimOptions { listen, ..HttpSimOptions::default() }).await.unwrap();
    assert_eq!(again.addr(), listen);
}
