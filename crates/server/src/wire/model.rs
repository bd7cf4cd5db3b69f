//! Models as JSON: who serves each of them, and by which rules.

use serde::Serialize;
use tidegate_dispatch::{ChainLinkConfig, ModelConfig, strategy_name};

/// A model.
#[derive(Serialize)]
pub(crate) struct ModelOut<'a> {
    name: &'a str,
    chain: Vec<ChainLinkOut<'a>>,
    strategy: &'static str,
    fair: bool,
    on_unknown: &'static str,
    /// `None` when it may wait for as long as it takes.
    max_wait_s: Option<u64>,
}

#[derive(Serialize)]
struct ChainLinkOut<'a> {
    provider: &'a str,
    model: &'a str,
    weight: u32,
    cost: u64,
}

/// All models.
#[derive(Serialize)]
pub(crate) struct ModelsOut<'a> {
    pub models: Vec<ModelOut<'a>>,
}

impl<'a> ModelOut<'a> {
    pub(crate) fn new(model: &'a ModelConfig) -> Self {
        let link = |link: &'a ChainLinkConfig| ChainLinkOut {
            provider: &link.provider,
            model: &link.model,
            weight: link.weight,
            cost: link.cost,
        };
        Self {
            name: &model.name,
            chain: model.chain.iter().map(link).collect(),
            strategy: strategy_name(model.strategy),
            fair: model.fair,
            on_unknown: model.on_unknown.as_str(),
            max_wait_s: model.max_wait.map(|wait| wait.as_secs()),
        }
    }
}
