//! Submits that were accepted and got no response: resolved by a look-up, by a webhook or by
//! policy, and never repeated at the same provider.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tidegate_dispatch::{AdapterConfig, AttemptOutcome, GenerationStatus, UnknownPolicy};
use tidegate_sim::providers::webhook::WebhookFaults;
use tidegate_sim::server::{SimReply, SimServer, Simulator};
use tidegate_sim::{Provider as Simulated, ProviderSimOptions};

use crate::world::{World, fast, slow};

fn cut(provider: Simulated) -> ProviderSimOptions {
    ProviderSimOptions { cut_rate: 1.0, ..fast(provider) }
}

fn cut_without_webhooks(provider: Simulated) -> ProviderSimOptions {
    let webhook_faults = WebhookFaults { lost: 1.0, ..WebhookFaults::default() };
    ProviderSimOptions { webhook_faults, ..cut(provider) }
}

/// DSP-18: the job of an unknown submit is found in Replicate's list; there was one POST, and one
/// bill.
#[tokio::test]
async fn dsp_18_a_lost_submit_is_looked_up() {
    let sims = vec![cut_without_webhooks(Simulated::Replicate), fast(Simulated::Fal)];
    let world = World::start(sims, |_| ()).await;
    let done = world.complete("a cat").await;
    assert_eq!((done.provider.as_deref(), world.billed()), (Some("replicate"), 1));
    let ledger = world.generations.ledger_of(done.id).await.unwrap();
    let [entry] = &ledger[..] else { panic!("{ledger:?}") };
    assert_eq!(entry.outcome, AttemptOutcome::Succeeded);
    assert!(entry.external_id.is_some() && !entry.may_be_billed_twice);
}

/// DSP-18, DSP-19: where there is no list, the webhook resolves it: the token names the attempt,
/// the message its job, and a poll confirms it.
#[tokio::test]
async fn dsp_18_dsp_19_a_webhook_resolves_an_unknown_submit() {
    for simulated in [Simulated::Higgsfield, Simulated::Fal, Simulated::Google] {
        let world = World::start(vec![cut(simulated), fast(Simulated::Replicate)], |_| ()).await;
        let done = world.complete("a cat").await;
        let ledger = world.generations.ledger_of(done.id).await.unwrap();
        assert_eq!((ledger.len(), world.billed()), (1, 1), "{simulated:?}: {ledger:?}");
        assert!(ledger[0].external_id.is_some());
    }
}

/// DSP-18: with `wait` an unknown submit keeps its slot until its deadline, and fails then.
#[tokio::test]
async fn dsp_18_an_unknown_submit_keeps_its_slot() {
    let world = World::start(vec![cut_without_webhooks(Simulated::Higgsfield)], |config| {
        config.providers[0].max_concurrent = Some(1);
        config.providers[0].deadline = Duration::from_secs(2);
        config.providers[0].cooldown = [Duration::from_millis(100); 4];
    })
    .await;
    let first = world.create("a cat").await;
    let second = world.create("a dog").await;
    world.until(first, |one| one.processing_since.is_some()).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(world.get(second).await.status, GenerationStatus::Queued, "the slot is taken");
    assert_eq!(world.end(first).await.status, GenerationStatus::Failed);
    world.until(second, |one| one.status != GenerationStatus::Queued).await;
    let ledger = world.generations.ledger_of(first).await.unwrap();
    assert_eq!((ledger.len(), ledger[0].outcome), (1, AttemptOutcome::Unknown));
}

/// DSP-10, DSP-18: where neither a webhook nor a look-up can resolve an unknown submit, it is not
/// waited for: the generation fails, its slot is free, and the ledger says that it may be billed.
#[tokio::test]
async fn dsp_10_dsp_18_what_nothing_can_resolve_is_not_waited_for() {
    for (simulated, model, has_url) in
        [(Simulated::Google, "gemini-3-image", true), (Simulated::Higgsfield, "acme/soul", false)]
    {
        let world = World::start(vec![cut(simulated)], |config| {
            config.providers[0].max_concurrent = Some(1);
            config.models[0].chain[0].model = model.into();
            config.models[0].chain[0].cost = 39_000;
            config.public_url = config.public_url.take().filter(|_| has_url);
        })
        .await;
        let id = world.create("a cat").await;
        let failed = world.end(id).await;
        let error = failed.error.unwrap();
        assert_eq!(failed.status, GenerationStatus::Failed);
        assert!(error.contains("neither a webhook nor a look-up can tell; before that: "), "{error}");
        let ledger = world.generations.ledger_of(id).await.unwrap();
        let [entry] = &ledger[..] else { panic!("{ledger:?}") };
        assert_eq!((entry.outcome, entry.cost), (AttemptOutcome::Unknown, Some(39_000)));
        let slots = format!("provider:{}/slots", entry.provider);
        assert_eq!(world.engine.limit(&slots).await.unwrap().in_flight, 0);
    }
}

/// DSP-18: so it is after a restart that lost the submit, and with `failover` the next provider
/// gets it. The ledger has the attempt while it is in flight, and keeps its time and cost.
#[tokio::test]
async fn dsp_18_a_submit_that_a_restart_lost_is_not_waited_for() {
    for (policy, status) in [
        (UnknownPolicy::Wait, GenerationStatus::Failed),
        (UnknownPolicy::Failover, GenerationStatus::Completed),
    ] {
        let mut world = World::start(vec![slow(Simulated::Google), fast(Simulated::Fal)], |config| {
            config.models[0].chain[0].model = "imagen-4".into();
            config.models[0].chain[0].cost = 39_000;
            config.models[0].on_unknown = policy;
        })
        .await;
        let id = world.create("a cat").await;
        world
            .until(id, |one| {
                one.status == GenerationStatus::Processing && world.sims[0].stats().all.calls == 1
            })
            .await;
        let in_flight = world.generations.ledger_of(id).await.unwrap();
        let [claimed] = &in_flight[..] else { panic!("{in_flight:?}") };
        assert_eq!((claimed.outcome, claimed.cost), (AttemptOutcome::Awaiting, Some(39_000)));
        world.restart().await;
        assert_eq!(world.end(id).await.status, status);
        let ledger = world.generations.ledger_of(id).await.unwrap();
        assert_eq!((ledger[0].provider.as_str(), ledger[0].outcome), ("google", AttemptOutcome::Unknown));
        assert_eq!((ledger[0].submitted_at, ledger[0].cost), (claimed.submitted_at, Some(39_000)));
    }
}

/// A Replicate whose connections are cut before it has read a submit, and that lists one job of
/// another submit.
struct DeafReplicate;

impl Simulator for DeafReplicate {
    async fn reply(&self, request: hyper::Request<Bytes>) -> SimReply {
        if request.method() == http::Method::POST {
            return SimReply::Cut;
        }
        let other = json!({ "id": "p-1", "model": "acme/flux", "status": "starting",
            "input": { "prompt": "a dog" } });
        let list = json!({ "results": [other], "next": null });
        SimReply::Answer(hyper::Response::new(list.to_string().into()))
    }
}

/// Lets time pass in steps, so that what is due meanwhile runs.
async fn pass(time: Duration) {
    const STEP: Duration = Duration::from_secs(1);
    for _ in 0..time.as_secs() {
        tokio::time::pause();
        tokio::time::advance(STEP).await;
        tokio::time::resume();
        tokio::time::sleep(Duration::from_millis(4)).await;
    }
}

/// DSP-10, DSP-18: a submit whose job is not in the provider's list after two minutes created none:
/// the next provider gets the generation, the slot is free, and nothing is billed for it.
#[tokio::test]
async fn dsp_10_dsp_18_a_submit_that_is_not_listed_created_no_job() {
    let deaf = SimServer::start("127.0.0.1:0".parse().unwrap(), Arc::new(DeafReplicate)).await.unwrap();
    let world = World::start(vec![fast(Simulated::Replicate), fast(Simulated::Fal)], |config| {
        let base_url = Some(format!("http://{}/v1", deaf.addr()));
        config.providers[0].adapter = AdapterConfig::Replicate { base_url };
        config.models[0].chain[0].cost = 3_000;
        // Time passes faster here than calls return.
        config.providers.iter_mut().for_each(|provider| provider.timeout = Duration::from_secs(600));
    })
    .await;
    let id = world.create("a cat").await;
    let is_looked_up = |error: &String| error.contains("the provider lists no such job");
    world.until(id, |one| one.error.as_ref().is_some_and(is_looked_up)).await;
    pass(Duration::from_secs(100)).await;
    assert_eq!(world.get(id).await.provider.as_deref(), Some("replicate"), "it may be listed late");
    pass(Duration::from_secs(50)).await;
    let done = world.end(id).await;
    assert_eq!((done.status, done.provider.as_deref()), (GenerationStatus::Completed, Some("fal")));
    let ledger = world.generations.ledger_of(id).await.unwrap();
    let found: Vec<_> =
        ledger.iter().map(|entry| (entry.outcome, entry.cost, entry.may_be_billed_twice)).collect();
    let expected = [(AttemptOutcome::NextProvider, None, false), (AttemptOutcome::Succeeded, None, false)];
    assert_eq!(found, expected);
    assert_eq!(world.engine.limit("provider:replicate/slots").await.unwrap().in_flight, 0);
}

/// DSP-18: with `failover` the next provider is used, and the ledger says that both may have billed
/// it; with `fail` the generation fails, and is sent to no one else.
#[tokio::test]
async fn dsp_18_policies_for_unknown_submits() {
    let sims = || vec![cut_without_webhooks(Simulated::Replicate), fast(Simulated::Fal)];
    let world = World::start(sims(), |config| config.models[0].on_unknown = UnknownPolicy::Failover).await;
    let done = world.complete("a cat").await;
    assert_eq!((done.provider.as_deref(), world.billed()), (Some("fal"), 2));
    let ledger = world.generations.ledger_of(done.id).await.unwrap();
    let found: Vec<_> = ledger.iter().map(|entry| (entry.outcome, entry.may_be_billed_twice)).collect();
    assert_eq!(found, [(AttemptOutcome::Unknown, true), (AttemptOutcome::Succeeded, true)]);
    let world = World::start(sims(), |config| config.models[0].on_unknown = UnknownPolicy::Fail).await;
    let failed = world.end(world.create("a cat").await).await;
    assert_eq!((failed.status, world.billed()), (GenerationStatus::Failed, 1));
    assert_eq!(failed.provider.as_deref(), Some("replicate"), "it may have made and billed it");
    assert_eq!(world.sims[1].stats().all.calls, 0);
}

/// DSP-10: a job that never ends, and whose webhook never comes, gives its slot back at its
/// deadline.
#[tokio::test]
async fn dsp_10_a_job_that_never_ends_gives_its_slot_back() {
    let world = World::start(vec![slow(Simulated::Fal)], |config| {
        config.providers[0].max_concurrent = Some(1);
        config.providers[0].deadline = Duration::from_millis(500);
        config.providers[0].cooldown = [Duration::from_millis(100); 4];
    })
    .await;
    let (first, second) = (world.create("a cat").await, world.create("a dog").await);
    let failed = world.end(first).await;
    assert_eq!(failed.status, GenerationStatus::Failed);
    world.until(second, |one| one.processing_since.is_some()).await;
    let slots = world.engine.limit("provider:fal/slots").await.unwrap();
    assert_eq!(slots.in_flight, 1, "the slot of the first one is the second one's");
}
