//! Models that change while generations wait: the queued follow the new chain, and what is at a
//! provider stays there.

use std::time::Duration;

use tidegate_core::Verdict;
use tidegate_dispatch::{ChainLinkConfig, GenerationStatus, ModelConfig};
use tidegate_sim::providers::webhook::WebhookFaults;
use tidegate_sim::{Provider as Simulated, ProviderSimOptions};
use tidegate_upstream::Call;

use crate::world::{LONG, World, fast, names};

/// The model of all tests, served by these providers.
fn flux(chain: &[Simulated]) -> Vec<ModelConfig> {
    let link = |simulated: &Simulated| ChainLinkConfig::new(names(*simulated).0, names(*simulated).1);
    vec![ModelConfig::new("flux", chain.iter().map(link).collect())]
}

/// A provider with one slot that a slow job has, one that is free and not in the chain, and a
/// generation that waits for the first.
async fn waiting(takes: Duration) -> (World, [tidegate::OperationId; 2]) {
    let slow = ProviderSimOptions { takes, ..fast(Simulated::Replicate) };
    let sims = vec![slow, fast(Simulated::Fal)];
    let world = World::start(sims, |config| {
        config.providers[0].max_concurrent = Some(1);
        config.models = flux(&[Simulated::Replicate]);
    })
    .await;
    let ids = [world.create("a cat").await, world.create("a dog").await];
    world.until(ids[0], |one| one.status == GenerationStatus::Processing).await;
    world.until(ids[1], |one| one.queue_position == Some(1)).await;
    (world, ids)
}

fn billed(world: &World) -> Vec<u64> {
    world.sims.iter().map(|sim| sim.stats().all.billed).collect()
}

/// DSP-4, DSP-14: a chain is changed while the server runs. What is queued goes to the new
/// provider, what the old one has stays there, and each is submitted once.
#[tokio::test]
async fn dsp_4_dsp_14_what_is_queued_follows_a_changed_chain() {
    let (world, [first, second]) = waiting(LONG).await;
    assert_eq!(world.dispatch.set_models(flux(&[Simulated::Fal])).unwrap().changed, ["flux"]);
    assert_eq!(world.generations.follow_chains().await.unwrap().changed, 2);
    let done = world.end(second).await;
    assert_eq!((done.status, done.provider.as_deref()), (GenerationStatus::Completed, Some("fal")));
    let first = world.get(first).await;
    assert_eq!((first.status, first.provider.as_deref()), (GenerationStatus::Processing, Some("replicate")));
    assert_eq!(billed(&world), [1, 1]);
    assert_eq!(
        world.generations.follow_chains().await.unwrap().changed,
        0,
        "the first has its chain already"
    );
}

/// DSP-4: after a restart without its provider, what is queued goes to the one that its model has
/// now, and does not fail.
#[tokio::test]
async fn dsp_4_what_is_queued_outlives_its_provider() {
    let (mut world, [_, second]) = waiting(LONG).await;
    world
        .restart_with(|config| {
            config.providers.remove(0);
            config.models = flux(&[Simulated::Fal]);
        })
        .await;
    world.generations.follow_chains().await.unwrap();
    let done = world.end(second).await;
    assert_eq!((done.status, done.provider.as_deref()), (GenerationStatus::Completed, Some("fal")));
    assert_eq!(billed(&world), [1, 1]);
}

/// DSP-18: what is granted a provider that has left the chain is not submitted there, and follows
/// the new chain as soon as someone is told.
#[tokio::test]
async fn dsp_18_a_provider_that_left_the_chain_gets_nothing() {
    let (world, [first, second]) = waiting(LONG).await;
    assert_eq!(world.dispatch.set_models(flux(&[Simulated::Fal])).unwrap().changed, ["flux"]);
    let mut changes = world.dispatch.model_changes();
    world.generations.cancel(first).await.unwrap();
    // It is granted the old provider, which is free now, and waits.
    let is_refused = |error: &String| error.contains("replicate/main is not in the chain of flux");
    world.until(second, |one| one.error.as_ref().is_some_and(is_refused)).await;
    changes.changed().await.unwrap();
    assert_eq!(billed(&world), [1, 0]);
    assert_eq!(world.generations.ledger_of(second).await.unwrap(), []);
    world.generations.follow_chains().await.unwrap();
    let done = world.end(second).await;
    assert_eq!((done.status, done.provider.as_deref()), (GenerationStatus::Completed, Some("fal")));
    assert_eq!(billed(&world), [1, 1]);
}

/// DSP-18: a submit whose answer was lost is looked up by the model that was submitted, whatever
/// the chain says now.
#[tokio::test]
async fn dsp_18_a_lost_submit_is_looked_up_by_its_own_model() {
    let webhook_faults = WebhookFaults { lost: 1.0, ..WebhookFaults::default() };
    let cut = ProviderSimOptions { cut_rate: 1.0, webhook_faults, ..fast(Simulated::Replicate) };
    let world = World::start(vec![cut], |_| ()).await;
    let id = world.create("a cat").await;
    world.until(id, |one| one.error.is_some()).await;
    let link = ChainLinkConfig::new("replicate", "acme/other");
    let models = vec![ModelConfig::new("flux", vec![link])];
    assert_eq!(world.dispatch.set_models(models).unwrap().changed, ["flux"]);
    assert_eq!(world.end(id).await.status, GenerationStatus::Completed);
    assert_eq!(billed(&world), [1]);
}

/// DSP-14: models that cannot work change nothing, and the same ones are no change.
#[tokio::test]
async fn dsp_14_models_are_checked_before_they_are_used() {
    let (world, _) = waiting(LONG).await;
    assert!(world.dispatch.set_models(flux(&[Simulated::Replicate])).unwrap().is_empty());
    let refused = world.dispatch.set_models(flux(&[Simulated::Google])).unwrap_err();
    assert!(refused.to_string().contains("models.flux.chain[0].provider"), "{refused}");
    assert_eq!(world.dispatch.models(), flux(&[Simulated::Replicate]));
}

/// DSP-9: what waits for a model that is gone fails, and says so. What a provider has is finished.
#[tokio::test]
async fn dsp_9_what_waits_for_a_model_that_is_gone_fails() {
    let (world, [first, second]) = waiting(Duration::from_secs(2)).await;
    let other = ModelConfig { name: "other".into(), ..flux(&[Simulated::Fal]).remove(0) };
    let diff = world.dispatch.set_models(vec![other]).unwrap();
    let (added, removed) = (["other".to_owned()], ["flux".to_owned()]);
    assert_eq!((&diff.added[..], &diff.changed[..], &diff.removed[..]), (&added[..], &[][..], &removed[..]));
    let payload = world.engine.payload(second).await.unwrap().unwrap();
    let id = second.to_string();
    let call = Call::new(&id, &payload, world.engine.now()).with_alternative("replicate/main");
    let verdict = world.dispatch.executor().carry(call).await.verdict;
    assert!(matches!(verdict, Verdict::Unavailable(_)), "a worker may know less: {verdict:?}");
    let followed = world.generations.follow_chains().await.unwrap();
    assert_eq!((followed.changed, followed.failed), (0, 1));
    assert!(followed.gone.contains("flux"), "{followed:?}");
    let ended = world.end(second).await;
    assert_eq!(ended.status, GenerationStatus::Failed);
    assert_eq!(ended.error.as_deref(), Some("There is no model \"flux\"; known: other."));
    assert_eq!(world.end(first).await.status, GenerationStatus::Completed);
    assert_eq!(billed(&world), [1, 0]);
}
