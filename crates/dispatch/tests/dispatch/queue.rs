//! One queue: the order of acceptance, turns of users, the end of a wait, and why it waits.

use std::time::Duration;

use tidegate_dispatch::{ChainLinkConfig, GenerationStatus, ModelConfig, NewGeneration, ProviderState};
use tidegate_sim::{Provider as Simulated, ProviderSimOptions};

use crate::world::{World, fast, input, slow};

/// The prompts of completed generations, in the order of their submits.
async fn submitted(world: &World) -> Vec<String> {
    let page = world.generations.ledger(None, 100).await.unwrap();
    let mut entries = page.entries;
    entries.sort_by_key(|entry| entry.submitted_at);
    let mut prompts = Vec::new();
    for entry in entries {
        let generation = world.get(entry.generation).await;
        prompts.push(generation.input["prompt"].as_str().unwrap().to_owned());
    }
    prompts
}

/// DSP-3: with one slot, generations are submitted in the order of their acceptance, each once.
#[tokio::test]
async fn dsp_3_first_in_first_out_each_once() {
    let world =
        World::start(vec![fast(Simulated::Replicate)], |config| config.providers[0].max_concurrent = Some(1))
            .await;
    let prompts: Vec<String> = (0..6).map(|number| format!("cat {number}")).collect();
    let mut ids = Vec::new();
    for prompt in &prompts {
        ids.push(world.create(prompt).await);
    }
    for id in ids {
        assert_eq!(world.end(id).await.status, GenerationStatus::Completed);
    }
    assert_eq!(submitted(&world).await, prompts);
    let stats = world.sims[0].stats().all;
    assert_eq!((stats.billed, stats.duplicates), (6, 0));
}

/// DSP-3: a submit whose worker died comes back: the next worker finds its job, and submits nothing
/// again.
#[tokio::test]
async fn dsp_3_a_dead_worker_gives_its_generation_back() {
    let slow_answers =
        ProviderSimOptions { latency: Duration::from_millis(1_500), ..fast(Simulated::Replicate) };
    let mut world = World::start(vec![slow_answers], |config| config.public_url = None).await;
    let id = world.create("a cat").await;
    world.until(id, |one| one.status == GenerationStatus::Processing).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    world.restart().await;
    assert_eq!(world.end(id).await.status, GenerationStatus::Completed);
    assert_eq!(world.billed(), 1);
}

/// DSP-23: users take turns where that is wanted: one with a backlog does not hold up another.
#[tokio::test]
async fn dsp_23_users_take_turns() {
    let world = World::start(vec![fast(Simulated::Replicate)], |config| {
        config.providers[0].max_concurrent = Some(1);
        config.models[0].fair = true;
    })
    .await;
    let mut ids = Vec::new();
    for (user, prompt) in [("ann", "a1"), ("ann", "a2"), ("ann", "a3"), ("ben", "b1"), ("cat", "c1")] {
        ids.push(world.create_for(user, prompt).await);
    }
    for id in ids {
        world.end(id).await;
    }
    assert_eq!(submitted(&world).await, ["a1", "b1", "c1", "a2", "a3"]);
}

/// DSP-23: a generation that only a busy provider can serve does not block those behind it, and a
/// wait has an end.
#[tokio::test]
async fn dsp_23_a_busy_chain_blocks_no_other_and_a_wait_has_an_end() {
    let sims = vec![slow(Simulated::Replicate), fast(Simulated::Fal)];
    let world = World::start(sims, |config| {
        config.providers[0].max_concurrent = Some(1);
        let link = |provider: &str, model: &str| vec![ChainLinkConfig::new(provider, model)];
        let mut only = ModelConfig::new("only", link("replicate", "acme/flux"));
        only.max_wait = Some(Duration::from_secs(2));
        config.models = vec![only, ModelConfig::new("flux", link("fal", "acme/flux/dev"))];
    })
    .await;
    let create = async |prompt: &str| {
        let new = NewGeneration::new("ann", "only", input(prompt));
        world.generations.create(&new).await.unwrap().generation.id
    };
    let first = create("a cat").await;
    world.until(first, |one| one.processing_since.is_some()).await;
    let waiting = create("a dog").await;
    world.complete("a cow").await;
    assert_eq!(world.get(waiting).await.status, GenerationStatus::Queued);
    let ended = world.end(waiting).await;
    assert_eq!(ended.status, GenerationStatus::Failed);
    assert!(ended.error.as_deref().is_some_and(|error| error.contains("deadline")), "{ended:?}");
    assert_eq!(world.get(first).await.status, GenerationStatus::Processing, "it has started in time");
}

/// DSP-24: why a generation is still queued: its position, and each provider with its reason and
/// time.
#[tokio::test]
async fn dsp_24_why_it_is_still_queued() {
    let failing = ProviderSimOptions { fail_rate: 1.0, ..fast(Simulated::Google) };
    let sims = vec![slow(Simulated::Replicate), failing, slow(Simulated::Fal)];
    let world = World::start(sims, |config| {
        (config.providers[0].max_concurrent, config.providers[2].rpm) = (Some(1), Some(1));
        config.providers[1].cooldown = [Duration::from_secs(60); 4];
    })
    .await;
    let first = world.create("a cat").await;
    let second = world.create("a dog").await;
    world.until(second, |one| one.provider.as_deref() == Some("fal")).await;
    let (third, fourth) = (world.create("a cow").await, world.create("a pig").await);
    world.until(fourth, |one| one.queue_position == Some(2)).await;
    let why = world.generations.why(third).await.unwrap();
    assert_eq!((why.status, why.queue_position), (GenerationStatus::Queued, Some(1)));
    let found: Vec<_> = why
        .providers
        .iter()
        .map(|one| (one.provider.as_str(), one.key.as_str(), one.state, one.until.is_some()))
        .collect();
    let expected = [
        ("replicate", "main", ProviderState::Busy, false),
        ("google", "main", ProviderState::CoolingDown, true),
        ("fal", "main", ProviderState::RateLimited, true),
    ];
    assert_eq!(found, expected, "{why:?}");
    let why = world.generations.why(first).await.unwrap();
    assert_eq!(why.providers[0].state, ProviderState::InUse);
    let why = world.generations.why(second).await.unwrap();
    let google = why.providers.iter().find(|one| one.provider == "google").unwrap();
    assert_eq!(google.state, ProviderState::Failed, "{why:?}");
}
