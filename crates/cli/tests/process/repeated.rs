//! A submission under an `Idempotency-Key` that waits, in a server that is killed meanwhile.

use hyper::Method;
use serde_json::{Value, json};
use tidegate_sim::{HttpSim, HttpSimOptions};

use crate::ALONE;
use crate::caller::Caller;
use crate::child::{RunningServer, configure, upstream};

/// IDM-12, OPS-3: a submission that was waiting when its server was killed is found again under its
/// key, at once, and sent once.
#[tokio::test(flavor = "multi_thread")]
async fn idm_12_a_submission_that_waited_outlives_a_kill() {
    let _alone = ALONE.lock().await;
    let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    configure(dir.path(), 8, &upstream("echo", &sim, None));
    let operation = json!({
        "upstream": "echo", "group": "g", "delay_ms": 1_000,
        "request": { "method": "POST", "path": "/charges", "body": { "amount": 100 } },
    });
    let key = [("idempotency-key", "charge-1")];
    let server = RunningServer::start(dir.path(), "warn", None);
    let (path, caller) = ("/v1/operations?wait_ms=5000", Caller::of(&server.address));
    let first = tokio::spawn({
        let (caller, operation) = (caller.clone(), operation.clone());
        async move { caller.call(Method::POST, path, &key, Some(&operation)).await }
    });
    let stored = || async { serde_json::from_str::<Value>(&caller.get("/v1/keys").await).unwrap() };
    while stored().await["keys"][0]["state"] != "completed" {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    tokio::task::block_in_place(|| server.kill());
    assert_eq!(first.await.unwrap(), None, "the kill came too late");
    let server = tokio::task::block_in_place(|| RunningServer::start(dir.path(), "warn", None));
    let caller = Caller::of(&server.address);
    let again = caller.post(path, &key, &operation).await;
    assert_eq!(again["state"], "succeeded", "{again}");
    let all: Value = serde_json::from_str(&caller.get("/v1/operations?group=g").await).unwrap();
    assert_eq!(all["operations"].as_array().unwrap().len(), 1, "{all}");
    assert_eq!(sim.stats().writes, 1);
}
