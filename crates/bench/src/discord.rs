//! Deploys a guild from a template, within Discord's limits as the simulator has them: through the
//! deployer, and the same calls through other clients at the same time, each in a guild of its own
//! simulator. Compared with the shortest possible time.

mod calls;
mod deployer;
mod figures;
mod lower_bound;
mod peer;
mod schedule;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use tidegate_discord::Id;
use tidegate_discord::template::Template;
use tidegate_sim::discord::limits::DiscordLimits;
use tidegate_sim::{DiscordSim, DiscordSimOptions};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::goal::Goal;
use crate::machine::Machine;
use crate::scratch::Scratch;
use calls::Call;
use deployer::DeployerReport;
use lower_bound::LowerBound;
use peer::{Peer, PeerReport};

/// The default template.
const LARGE: &str = include_str!("../../../examples/guilds/large.yaml");
/// The guild, which is empty at first.
const GUILD: Id = Id(900_000_000_000_000_001);
/// How often progress is reported.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(15);

const RATIO_MAX: f64 = 1.10;
const READS_MAX: f64 = 3.0;

/// Arguments of `bench discord`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The template. By default the large example: 60 roles, 200 channels in 15 categories, 186
    /// messages.
    #[arg(long)]
    pub template: Option<PathBuf>,
    /// The deployer's store: `file:DIR`, where a fresh directory is created and removed, `memory:`,
    /// or a server, where a prefix or a schema of its own is used and left.
    #[arg(long, default_value = "file:tidegate-bench")]
    pub store: String,
    /// Latency of each response.
    #[arg(long, default_value_t = 50)]
    pub latency_ms: u64,
    /// Divides the window of every limit by this, for a quick look. The figures are less meaningful
    /// then: latency weighs more, and the 50 calls per second that clients enforce on their own
    /// stay as they are.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub sooner: u64,
    /// Leave out @discordjs/rest and twilight-http.
    #[arg(long)]
    pub no_peers: bool,
}

/// The report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    store: String,
    machine: Machine,
    template: String,
    /// Calls of the plan.
    calls: usize,
    latency_ms: u64,
    sooner: u64,
    shortest: LowerBound,
    ours: DeployerReport,
    peers: Vec<PeerReport>,
    goals: Vec<Goal>,
}

/// The task of every contender, and how it is judged.
#[derive(Debug)]
struct Scenario {
    file: String,
    template: String,
    calls: Vec<Call>,
    shortest: LowerBound,
    options: DiscordSimOptions,
}

pub(crate) async fn run(args: Args) -> Result<Report, String> {
    let peers = if args.no_peers { None } else { Some(peer::prepare()?) };
    let stage = Scenario::from_args(&args)?;
    let scratch = Scratch::on_any_store(&args.store)?;
    eprintln!("{} calls, of which the limits ask for {} s", stage.calls.len(), stage.shortest.seconds);
    let (ours, peers) = match &peers {
        None => {
            let sim = stage.simulator().await?;
            let run = deployer::run(&stage, scratch.url(), &sim);
            (Box::pin(with_progress(&[("tidegate", &sim)], run)).await?, Vec::new())
        }
        Some(peers) => Box::pin(run_all(&stage, scratch.url(), peers)).await?,
    };
    Ok(Report {
        bench: "discord",
        store: tidegate_server::backend::redact_url(&args.store),
        machine: Machine::detect(),
        template: stage.file,
        calls: stage.calls.len(),
        latency_ms: args.latency_ms,
        sooner: args.sooner,
        shortest: stage.shortest,
        goals: goals(&ours),
        ours,
        peers,
    })
}

/// Runs all contenders at the same time.
async fn run_all(
    stage: &Scenario,
    store: &str,
    peers: &[Peer; 2],
) -> Result<(DeployerReport, Vec<PeerReport>), String> {
    let [first, second] = peers;
    let sims = [stage.simulator().await?, stage.simulator().await?, stage.simulator().await?];
    let everybody = [("tidegate", &sims[0]), (first.name, &sims[1]), (second.name, &sims[2])];
    let run = async {
        tokio::try_join!(
            deployer::run(stage, store, &sims[0]),
            first.run(stage, &sims[1]),
            second.run(stage, &sims[2])
        )
    };
    let (ours, first, second) = Box::pin(with_progress(&everybody, run)).await?;
    Ok((ours, vec![first, second]))
}

/// Reports everyone's progress while something runs.
async fn with_progress<T>(everybody: &[(&str, &DiscordSim)], run: impl Future<Output = T>) -> T {
    let (mut run, begun) = (std::pin::pin!(run), Instant::now());
    let mut tick = interval(PROGRESS_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick.tick().await;
    loop {
        tokio::select! {
            done = &mut run => return done,
            _ = tick.tick() => {
                let far = |(name, sim): &(&str, &DiscordSim)| {
                    let stats = sim.stats().all;
                    format!("{name} {} writes and {} × 429", stats.writes, stats.throttled)
                };
                let far: Vec<_> = everybody.iter().map(far).collect();
                eprintln!("after {} s: {}", begun.elapsed().as_secs(), far.join(", "));
            }
        }
    }
}

impl Scenario {
    fn from_args(args: &Args) -> Result<Self, String> {
        let (file, text) = match &args.template {
            None => ("large.yaml".to_owned(), LARGE.to_owned()),
            Some(path) => {
                let text = std::fs::read_to_string(path);
                (path.display().to_string(), text.map_err(|error| format!("{}: {error}", path.display()))?)
            }
        };
        let template = Template::read(&file, &text).map_err(|problems| problems.to_string())?;
        let calls = calls::plan_calls(&template, GUILD)?;
        let latency = Duration::from_millis(args.latency_ms);
        let limits = DiscordLimits::default().sped_up(args.sooner);
        let shortest = lower_bound::lower_bound(&calls, &limits, latency);
        let options = DiscordSimOptions { limits, latency, ..DiscordSimOptions::default() };
        Ok(Self { file, template: text, calls, shortest, options })
    }

    async fn simulator(&self) -> Result<DiscordSim, String> {
        DiscordSim::start(self.options.clone()).await.map_err(|error| error.to_string())
    }
}

fn goals(ours: &DeployerReport) -> Vec<Goal> {
    let figures = &ours.figures;
    vec![
        Goal::at_most("time, of the shortest that the limits permit", RATIO_MAX, figures.ratio),
        Goal::at_most("answers with 429", 0.0, figures.throttled as f64),
        Goal::at_most("objects that are there twice", 0.0, figures.duplicates as f64),
        Goal::at_most("objects that are not there", 0.0, figures.missing as f64),
        Goal::at_most("writes of a second run", 0.0, ours.again.writes as f64),
        Goal::at_most("reads of a second run", READS_MAX, ours.again.reads as f64),
    ]
}

#[cfg(test)]
mod tests;
