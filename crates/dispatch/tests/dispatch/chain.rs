//! The chain of providers: who is used, who is left for the next one, and what a failure counts
//! against.

use std::time::Duration;

use serde_json::json;
use tidegate_dispatch::{AttemptOutcome, ChainLinkConfig, GenerationStatus, NewGeneration, WebhookReceipt};
use tidegate_sim::{Provider as Simulated, ProviderSimOptions};

use crate::world::{World, fast, key, slow};

fn failing(provider: Simulated) -> ProviderSimOptions {
    ProviderSimOptions { fail_rate: 1.0, ..fast(provider) }
}

/// The provider and the outcome of each attempt of a generation.
async fn attempts(world: &World, id: tidegate::OperationId) -> Vec<(String, AttemptOutcome)> {
    let ledger = world.generations.ledger_of(id).await.unwrap();
    assert!(ledger.iter().all(|entry| !entry.may_be_billed_twice), "{ledger:?}");
    ledger.into_iter().map(|entry| (entry.provider, entry.outcome)).collect()
}

/// DSP-4, DSP-18: a provider that is not there, and one that fails at submit, are left for the next
/// one at once; the generation is completed and billed once, and the ledger shows every attempt.
#[tokio::test]
async fn dsp_4_dsp_18_failing_providers_are_left_for_the_next() {
    let sims = vec![fast(Simulated::Replicate), failing(Simulated::Google), fast(Simulated::Fal)];
    let world = World::start(sims, |config| {
        // No one listens there.
        config.providers[0].adapter =
            tidegate_dispatch::AdapterConfig::Replicate { base_url: Some("http://127.0.0.1:9/v1".into()) };
    })
    .await;
    let done = world.complete("a cat").await;
    assert_eq!(done.provider.as_deref(), Some("fal"));
    let expected = [
        ("replicate".to_owned(), AttemptOutcome::NextProvider),
        ("google".to_owned(), AttemptOutcome::NextProvider),
        ("fal".to_owned(), AttemptOutcome::Succeeded),
    ];
    assert_eq!(attempts(&world, done.id).await, expected);
    assert_eq!(world.billed(), 1);
    assert!(world.is_hot("provider:google/health").await);
    assert!(!world.is_hot("provider:google/key:main").await && !world.is_hot("provider:fal/health").await);
}

/// DSP-5: the first provider of the chain that has a slot and a rate is picked; the next one is
/// used when it has none.
#[tokio::test]
async fn dsp_5_the_first_free_provider_is_picked() {
    let sims = vec![slow(Simulated::Replicate), slow(Simulated::Fal), slow(Simulated::Higgsfield)];
    let world = World::start(sims, |config| {
        config.providers[0].max_concurrent = Some(1);
        config.providers[1].rpm = Some(2);
    })
    .await;
    let mut picked = Vec::new();
    for prompt in ["a", "b", "c", "d"] {
        let id = world.create(prompt).await;
        picked.push(world.until(id, |one| one.provider.is_some()).await.provider.unwrap());
    }
    assert_eq!(picked, ["replicate", "fal", "fal", "higgsfield"]);
    for (sim, billed) in world.sims.iter().zip([1, 2, 1]) {
        let stats = sim.stats().all;
        assert_eq!((stats.billed, stats.throttled), (billed, 0));
    }
}

/// DSP-7: wrong input and refused content fail the generation, heat no one, and are sent to no one
/// else.
#[tokio::test]
async fn dsp_7_wrong_input_and_content_heat_no_one() {
    let world = World::start(vec![fast(Simulated::Higgsfield), fast(Simulated::Fal)], |_| ()).await;
    let wrong = NewGeneration::new("ann", "flux", json!({ "size": 7 }));
    let wrong = world.generations.create(&wrong).await.unwrap().generation.id;
    let refused = world.create("[nsfw] a cat").await;
    for id in [wrong, refused] {
        let ended = world.end(id).await;
        assert_eq!(ended.status, GenerationStatus::Failed);
        assert!(ended.error.is_some());
        assert_eq!(attempts(&world, id).await, [("higgsfield".to_owned(), AttemptOutcome::Failed)]);
    }
    assert!(!world.is_hot("provider:higgsfield/health").await);
    assert!(!world.is_hot("provider:higgsfield/key:main").await);
    assert_eq!(world.sims[1].stats().all.calls, 0, "no other provider would do better");
}

/// DSP-7: a key that is not accepted cools alone, and the next provider gets the generation.
#[tokio::test]
async fn dsp_7_a_wrong_key_cools_and_another_provider_is_asked() {
    for refusing in [Simulated::Replicate, Simulated::Google] {
        let wrong = ProviderSimOptions { rejects_keys: true, ..fast(refusing) };
        let world = World::start(vec![wrong, fast(Simulated::Fal)], |_| ()).await;
        let done = world.end(world.create("a cat").await).await;
        assert_eq!((done.status, done.provider.as_deref()), (GenerationStatus::Completed, Some("fal")));
        let name = if refusing == Simulated::Google { "google" } else { "replicate" };
        assert!(world.is_hot(&format!("provider:{name}/key:main")).await, "{name}");
        assert!(!world.is_hot(&format!("provider:{name}/health")).await, "{name}");
    }
}

/// DSP-18: a job whose provider leaves the chain is paid for: its webhook is taken, and its
/// picture stored. What is created later goes to the new chain.
#[tokio::test]
async fn dsp_18_a_job_outlives_its_place_in_the_chain() {
    let sims = vec![fast(Simulated::Replicate), fast(Simulated::Fal)];
    let mut world = World::start(sims, |config| config.models[0].chain.truncate(1)).await;
    *world.receiver.holds.lock().unwrap() = true;
    let id = world.create("a cat").await;
    let message = world.messages(1).await.remove(0);
    let other = ChainLinkConfig::new("fal", "acme/flux/dev");
    world.restart_with(|config| config.models[0].chain = vec![other]).await;
    *world.receiver.holds.lock().unwrap() = false;
    assert_eq!(message.deliver(&world.generations).await, Ok(WebhookReceipt::Polling));
    let done = world.end(id).await;
    assert_eq!((done.status, done.provider.as_deref()), (GenerationStatus::Completed, Some("replicate")));
    assert_eq!(world.complete("a dog").await.provider.as_deref(), Some("fal"));
}

/// DSP-7: a job that failed by the provider's fault fails the generation and heats the provider;
/// after the cooldown it is used again.
#[tokio::test]
async fn dsp_7_a_fault_of_the_provider_heats_it() {
    let cooldown = [Duration::from_millis(1_500); 4];
    let world =
        World::start(vec![fast(Simulated::Higgsfield)], |config| config.providers[0].cooldown = cooldown)
            .await;
    let failed = world.end(world.create("[fail] a cat").await).await;
    assert_eq!((failed.status, failed.provider.as_deref()), (GenerationStatus::Failed, Some("higgsfield")));
    assert!(world.is_hot("provider:higgsfield/health").await);
    world.complete("a dog").await;
    assert!(!world.is_hot("provider:higgsfield/health").await);
}

/// DSP-8: with every provider busy a generation waits, and starts as soon as a slot is free;
/// nothing is asked meanwhile.
#[tokio::test]
async fn dsp_8_busy_providers_are_waited_for_without_asking() {
    let takes = Duration::from_millis(1_500);
    let sims = [Simulated::Replicate, Simulated::Fal];
    let sims = sims.map(|simulated| ProviderSimOptions { takes, ..fast(simulated) }).into();
    let world = World::start(sims, |config| {
        config.providers.iter_mut().for_each(|provider| provider.max_concurrent = Some(1));
    })
    .await;
    let mut ids = Vec::new();
    for prompt in ["a", "b", "c"] {
        ids.push(world.create(prompt).await);
    }
    world.until(ids[2], |one| one.queue_position == Some(1)).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let calls: Vec<u64> = world.sims.iter().map(|sim| sim.stats().all.calls).collect();
    assert_eq!(calls, [1, 1], "one submit each, and nothing else");
    for id in ids {
        assert_eq!(world.end(id).await.status, GenerationStatus::Completed);
    }
}

/// DSP-8: with every provider hot a generation waits for the first that has cooled.
#[tokio::test]
async fn dsp_8_hot_providers_are_waited_for() {
    let throttling = ProviderSimOptions { rpm: 120, burst: 1, ..fast(Simulated::Higgsfield) };
    let cooldown = [300, 600, 900, 1_200].map(Duration::from_millis);
    let world = World::start(vec![throttling], |config| config.providers[0].cooldown = cooldown).await;
    let ids = [world.create("a").await, world.create("b").await, world.create("c").await];
    for id in ids {
        assert_eq!(world.end(id).await.status, GenerationStatus::Completed);
    }
    assert_eq!(world.billed(), 3);
    assert!(world.sims[0].stats().all.throttled > 0, "the provider had to say so");
}

/// DSP-9: when every provider failed at submit, the generation fails with every reason.
#[tokio::test]
async fn dsp_9_every_reason_is_reported() {
    let world = World::start(vec![failing(Simulated::Google), failing(Simulated::Fal)], |_| ()).await;
    let failed = world.end(world.create("a cat").await).await;
    let error = failed.error.unwrap();
    assert_eq!(failed.status, GenerationStatus::Failed);
    for provider in ["google/main: ", "fal/main: "] {
        assert!(error.contains(provider), "{error}");
    }
    assert_eq!(world.billed(), 0);
}

/// DSP-22: a 429 heats the key that got it, where the limit is the key's: the next key is used, and
/// the provider stays cool.
#[tokio::test]
async fn dsp_22_a_429_heats_the_key() {
    let throttling = ProviderSimOptions { rpm: 1, burst: 1, ..fast(Simulated::Replicate) };
    let world = World::start(vec![throttling, fast(Simulated::Fal)], |config| {
        config.providers[0].keys = vec![key("main", None), key("spare", None)];
    })
    .await;
    world.complete("a cat").await;
    let second = world.complete("a dog").await;
    assert_eq!(second.provider.as_deref(), Some("fal"));
    let expected = [
        ("replicate".to_owned(), AttemptOutcome::Throttled),
        ("replicate".to_owned(), AttemptOutcome::Throttled),
        ("fal".to_owned(), AttemptOutcome::Succeeded),
    ];
    assert_eq!(attempts(&world, second.id).await, expected);
    let ledger = world.generations.ledger_of(second.id).await.unwrap();
    assert_eq!(ledger.iter().map(|entry| entry.attempt).collect::<Vec<_>>(), [1, 2, 3]);
    for (limit, is_hot) in [("key:main", true), ("key:spare", true), ("health", false)] {
        assert_eq!(world.is_hot(&format!("provider:replicate/{limit}")).await, is_hot, "{limit}");
    }
}

/// DSP-22: where the limit is the account's, a 429 heats the account: its other keys are not tried.
#[tokio::test]
async fn dsp_22_a_429_heats_the_account() {
    let throttling = ProviderSimOptions { rpm: 1, burst: 1, ..fast(Simulated::Fal) };
    let world = World::start(vec![throttling, fast(Simulated::Replicate)], |config| {
        config.providers[0].keys = vec![key("main", Some("acme")), key("spare", Some("acme"))];
    })
    .await;
    world.complete("a cat").await;
    assert_eq!(world.complete("a dog").await.provider.as_deref(), Some("replicate"));
    assert_eq!(world.sims[0].stats().all.throttled, 1, "one key of the account was tried");
    for (limit, is_hot) in
        [("account:acme", true), ("key:main", false), ("key:spare", false), ("health", false)]
    {
        assert_eq!(world.is_hot(&format!("provider:fal/{limit}")).await, is_hot, "{limit}");
    }
}

/// DSP-22: a credential that is not accepted heats its key; the next key is used.
#[tokio::test]
async fn dsp_22_a_wrong_key_heats_itself() {
    let world = World::start(vec![fast(Simulated::Replicate)], |config| {
        let mut wrong = key("main", None);
        wrong.key = tidegate_upstream::Secret::new(" ");
        config.providers[0].keys = vec![wrong, key("spare", None)];
    })
    .await;
    let done = world.complete("a cat").await;
    let keys: Vec<_> = world.generations.ledger_of(done.id).await.unwrap();
    let keys: Vec<_> = keys.iter().map(|entry| (entry.key.as_str(), entry.outcome)).collect();
    assert_eq!(keys, [("main", AttemptOutcome::NextProvider), ("spare", AttemptOutcome::Succeeded)]);
    assert!(world.is_hot("provider:replicate/key:main").await);
    assert!(!world.is_hot("provider:replicate/health").await);
}

/// DSP-14: a limit of a provider is changed while it is used.
#[tokio::test]
async fn dsp_14_limits_change_at_run_time() {
    let world =
        World::start(vec![slow(Simulated::Replicate)], |config| config.providers[0].max_concurrent = None)
            .await;
    let limits = world.dispatch.provider_limits("replicate").unwrap();
    let one = tidegate::LimitShape::Cap { at_once: 1 };
    world.engine.set_limit(&limits.slots, one).await.unwrap();
    let (first, second) = (world.create("a").await, world.create("b").await);
    world.until(second, |generation| generation.queue_position == Some(1)).await;
    world.engine.set_limit(&limits.slots, tidegate::LimitShape::Cap { at_once: 2 }).await.unwrap();
    for id in [first, second] {
        world.until(id, |generation| generation.status == GenerationStatus::Processing).await;
    }
}
