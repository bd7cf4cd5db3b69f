//! `sim replicate`, `sim google`, `sim fal`, `sim higgsfield`: simulate an image provider until a
//! signal stops it.

use std::net::SocketAddr;
use std::time::Duration;

use tidegate_sim::providers::webhook::WebhookFaults;
use tidegate_sim::{Provider, ProviderSim, ProviderSimOptions};

use super::start_error;
use crate::args::FaultArgs;
use crate::error::CliError;
use crate::output::Output;
use crate::signals::Signals;

/// The options of a simulated provider.
#[derive(clap::Args, Debug)]
pub(crate) struct ProviderSimArgs {
    /// The address to listen on; with port 0 the system chooses one. Default: 127.0.0.1, port 7413
    /// for Replicate, 7414 for Google, 7415 for fal, 7416 for Higgsfield.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// How many jobs run at once; the default is the provider's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub max_concurrent: Option<u64>,
    /// How many submits are allowed per minute; the default is the provider's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub rpm: Option<u64>,
    /// How many of them may come at once; the default is the provider's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub burst: Option<u64>,
    /// How long a job runs.
    #[arg(long, default_value_t = 2_000, value_name = "MS", value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    pub job_ms: u64,
    /// Refuse every API key, to rehearse a wrong or a revoked one.
    #[arg(long)]
    pub reject_keys: bool,
    /// The share of jobs that end with a fault of the provider, 0 to 1.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub job_fail_rate: f64,
    /// The share of ends that no webhook reports, 0 to 1.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub webhook_lose_rate: f64,
    /// The share of webhooks that come before the submit is answered, 0 to 1.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub webhook_early_rate: f64,
    /// The share of webhooks that come twice, 0 to 1.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub webhook_double_rate: f64,
    /// The share of webhooks that come late, 0 to 1.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub webhook_late_rate: f64,
    /// How late a late webhook is.
    #[arg(long, default_value_t = 5_000, value_name = "MS", value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    pub webhook_late_ms: u64,
    /// The share of webhooks that come after a forged one, 0 to 1.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub webhook_forge_rate: f64,
    #[command(flatten)]
    pub faults: FaultArgs,
}

pub(crate) async fn run(provider: Provider, args: &ProviderSimArgs, output: &Output) -> Result<(), CliError> {
    let mut signals = Signals::new()?;
    let options = options(provider, args);
    let (listen, slots, rpm) = (options.listen, options.max_concurrent, options.rpm);
    let sim = ProviderSim::start(options).await.map_err(|error| start_error(listen, &error))?;
    output.print_data(&format!("http://{}", sim.addr()));
    output.print_status(&format!(
        "simulates {} with {slots} jobs at once and {rpm} submits per minute; counts are at http://{}/_sim/stats",
        name(provider),
        sim.addr()
    ));
    signals.next().await;
    let stats = sim.stats();
    output.print_status(&format!(
        "{} calls, {} submits billed, {} throttled, {} duplicates; {} webhooks sent",
        stats.all.calls, stats.all.billed, stats.all.throttled, stats.all.duplicates, stats.webhooks.sent
    ));
    signals.run_until_signal(sim.shutdown()).await
}

const fn name(provider: Provider) -> &'static str {
    match provider {
        Provider::Replicate => "Replicate",
        Provider::Google => "Google",
        Provider::Fal => "fal",
        Provider::Higgsfield => "Higgsfield",
    }
}

fn options(provider: Provider, args: &ProviderSimArgs) -> ProviderSimOptions {
    let port = match provider {
        Provider::Replicate => 7413,
        Provider::Google => 7414,
        Provider::Fal => 7415,
        Provider::Higgsfield => 7416,
    };
    let usual = ProviderSimOptions::new(provider);
    ProviderSimOptions {
        listen: args.listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], port))),
        max_concurrent: args.max_concurrent.map_or(usual.max_concurrent, |slots| slots as usize),
        rpm: args.rpm.unwrap_or(usual.rpm),
        burst: args.burst.unwrap_or(usual.burst),
        takes: Duration::from_millis(args.job_ms),
        latency: args.faults.latency(),
        rejects_keys: args.reject_keys,
        fail_rate: args.faults.fail_rate,
        cut_rate: args.faults.cut_rate,
        job_fail_rate: args.job_fail_rate,
        webhook_faults: WebhookFaults {
            lost: args.webhook_lose_rate,
            early: args.webhook_early_rate,
            doubled: args.webhook_double_rate,
            late: args.webhook_late_rate,
            forged: args.webhook_forge_rate,
        },
        late_by: Duration::from_millis(args.webhook_late_ms),
        seed: args.faults.seed,
        ..usual
    }
}
