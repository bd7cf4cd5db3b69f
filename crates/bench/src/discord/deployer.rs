//! The deployer, on a store of its own: deploys a template into an empty guild, then again.

use std::sync::Arc;

use serde::Serialize;
use tidegate::{Engine, Executors};
use tidegate_discord::deploy::{DeployRequest, Deployer, NoopListener, StepExecutor};
use tidegate_discord::{DiscordDialect, DiscordSettings};
use tidegate_sim::DiscordSim;
use tidegate_upstream::http::{Dialect, TokenHeader, UpstreamConfig};
use tidegate_upstream::{HttpUpstreams, Secret};
use tokio::time::Instant;

use super::figures::Figures;
use super::{GUILD, Scenario};
use crate::goal::to_thousandths;
use crate::nodes::TOKEN;
use crate::scratch;

const UPSTREAM: &str = "discord";

/// The deployer's figures.
#[derive(Debug, Serialize)]
pub(super) struct DeployerReport {
    #[serde(flatten)]
    pub figures: Figures,
    /// How often the guild was listed and a plan made.
    rounds: u32,
    /// A second run, with nothing left to do.
    pub again: SecondRun,
}

/// A second run.
#[derive(Debug, Serialize)]
pub(super) struct SecondRun {
    seconds: f64,
    pub writes: u64,
    pub reads: u64,
}

pub(super) async fn run(stage: &Scenario, store: &str, sim: &DiscordSim) -> Result<DeployerReport, String> {
    let store = scratch::open(store).await?;
    let (executors, limits) = upstream(sim)?;
    let engine = Engine::builder(Arc::clone(&store)).executors(executors).limits(limits).open().await;
    let engine = engine.map_err(|error| error.to_string())?;
    let deployer = Deployer::new(engine.clone(), store);
    let wanted = DeployRequest::new(GUILD, stage.template.as_str())
        .with_upstream(UPSTREAM)
        // The goal is about what a deployment needs; messages that were edited by hand are extra.
        .with_trust_journal(true)
        .with_file(stage.file.as_str());
    let begun = Instant::now();
    let report = deployer.apply(&wanted, &NoopListener).await.map_err(|error| error.to_string())?;
    let (took, first) = (begun.elapsed().as_secs_f64(), sim.stats());
    let (calls, writes) = (first.all.calls, first.all.writes);
    let begun = Instant::now();
    deployer.apply(&wanted, &NoopListener).await.map_err(|error| error.to_string())?;
    let (seconds, second) = (to_thousandths(begun.elapsed().as_secs_f64()), sim.stats().all);
    let written = second.writes - writes;
    let again = SecondRun { seconds, writes: written, reads: second.calls - calls - written };
    engine.drain().await;
    let ours = DeployerReport { figures: Figures::of(stage, took, first), rounds: report.rounds, again };
    eprintln!("tidegate: {ours:?}");
    Ok(ours)
}

/// Returns Discord as a node configures it.
fn upstream(sim: &DiscordSim) -> Result<(Executors, Vec<tidegate_upstream::http::LimitDefinition>), String> {
    let mut config = UpstreamConfig::new(UPSTREAM, format!("http://{}/api/v10", sim.addr()));
    config.token = Some(Secret::new(TOKEN));
    config.token_header = TokenHeader::parse("authorization: Bot");
    let dialect = DiscordDialect::new(UPSTREAM, &config.base_url, DiscordSettings::default());
    let http = HttpUpstreams::with_dialects(vec![(config, Arc::new(dialect) as Arc<dyn Dialect>)]);
    let http = http.map_err(|error| error.to_string())?;
    let limits = http.limits();
    Ok((StepExecutor::executors(Arc::new(http)).collect(), limits))
}
