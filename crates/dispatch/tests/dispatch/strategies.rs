//! Strategies other than the order of the chain.

use tidegate_dispatch::PickStrategy;
use tidegate_sim::Provider as Simulated;

use crate::world::{World, slow};

/// Creates generations that keep their slots, and returns who got them.
async fn picks(strategy: PickStrategy, weights: [u32; 2], costs: [u64; 2]) -> Vec<String> {
    let sims = vec![slow(Simulated::Replicate), slow(Simulated::Fal)];
    let world = World::start(sims, |config| {
        let model = &mut config.models[0];
        model.strategy = strategy;
        for (link, (weight, cost)) in model.chain.iter_mut().zip(weights.into_iter().zip(costs)) {
            (link.weight, link.cost) = (weight, cost);
        }
        config.providers.iter_mut().for_each(|provider| provider.max_concurrent = Some(2));
    })
    .await;
    let mut picked = Vec::new();
    for prompt in ["a", "b", "c", "d"] {
        let id = world.create(prompt).await;
        picked.push(world.until(id, |one| one.provider.is_some()).await.provider.unwrap());
    }
    picked
}

/// DSP-25: a model is served by its strategy: the cheapest provider first, the one with the most
/// free slots, or by weight; the order of the chain is the default.
#[tokio::test]
async fn dsp_25_a_model_follows_its_strategy() {
    let (even, free) = ([1, 1], [0, 0]);
    assert_eq!(picks(PickStrategy::Chain, even, [9, 1]).await, ["replicate", "replicate", "fal", "fal"]);
    assert_eq!(picks(PickStrategy::Cheapest, even, [9, 1]).await, ["fal", "fal", "replicate", "replicate"]);
    let alternating = picks(PickStrategy::LeastBusy, even, free).await;
    assert_eq!(alternating, ["replicate", "fal", "replicate", "fal"]);
    let heavy = picks(PickStrategy::Weighted, [1, 1_000_000], free).await;
    assert_eq!(heavy, ["fal", "fal", "replicate", "replicate"]);
}
