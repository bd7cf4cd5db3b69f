//! Submits that fail, are cut or repeated, and cancels.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tidegate_sim::{Provider, ProviderSimOptions};

use crate::rig::{Rig, fast};

/// DSP-26: a submit that was accepted is billed even when its response never comes; one that
/// failed is not; the same input twice is a duplicate.
#[tokio::test]
async fn dsp_26_the_bill_counts_every_accepted_submit() {
    let rig = Rig::start(ProviderSimOptions { cut_rate: 1.0, ..fast(Provider::Replicate) }).await;
    for _ in 0..2 {
        let body = json!({ "input": { "prompt": "a cat" } }).to_string();
        let lost = rig.request(Method::POST, "/v1/models/acme/flux/predictions").body(body).send().await;
        assert!(lost.is_err(), "the connection is cut");
    }
    let stats = rig.sim.stats().all;
    assert_eq!((stats.calls, stats.billed, stats.duplicates), (2, 2, 1));
    let (_, list) = rig.get("/v1/predictions").await;
    assert_eq!(list["results"].as_array().unwrap().len(), 2, "a lost submit can be found");

    let rig = Rig::start(ProviderSimOptions { fail_rate: 1.0, ..fast(Provider::Fal) }).await;
    let (status, body) = rig.submit("a cat").await;
    assert_eq!((status, &body["error_type"]), (500, &json!("runner_disconnected")));
    assert_eq!(rig.sim.stats().all.billed, 0);
}

/// DSP-26: a canceled job frees its slot and reports nothing.
#[tokio::test]
async fn dsp_26_a_job_can_be_canceled() {
    let options = ProviderSimOptions {
        max_concurrent: 1,
        takes: Duration::from_secs(600),
        ..fast(Provider::Higgsfield)
    };
    let rig = Rig::start(options).await;
    let (_, running) = rig.submit("runs").await;
    let (_, queued) = rig.submit("waits").await;
    let cancel = |made: serde_json::Value| {
        let rig = &rig;
        async move { rig.call(Method::POST, made["cancel_url"].as_str().unwrap(), None).await.0 }
    };
    assert_eq!((cancel(running).await, cancel(queued).await), (400, 202), "only a queued one");

    let rig = Rig::start(ProviderSimOptions { takes: Duration::from_secs(600), ..fast(Provider::Fal) }).await;
    let (_, made) = rig.submit("runs").await;
    let url = made["cancel_url"].as_str().unwrap();
    assert_eq!(rig.call(Method::PUT, url, None).await, (202, json!({ "status": "CANCELLATION_REQUESTED" })));
    assert_eq!(rig.call(Method::PUT, url, None).await, (400, json!({ "status": "ALREADY_COMPLETED" })));
    assert_eq!(rig.sim.stats().all.objects, [("canceled".into(), 1)].into());
}
