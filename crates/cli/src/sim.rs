//! `sim`: runs one simulator until a signal stops it.

pub(crate) mod discord;
pub(crate) mod providers;

use std::net::SocketAddr;
use std::time::Duration;

use tidegate_sim::{HttpSim, HttpSimOptions, Provider, ShopifySim, ShopifySimOptions, Stats};

use crate::args::{HttpSimArgs, ShopifySimArgs, SimCommand};
use crate::error::CliError;
use crate::output::Output;
use crate::signals::Signals;

pub(crate) async fn run(command: SimCommand, output: &Output) -> Result<(), CliError> {
    match command {
        SimCommand::Http(args) => http(&args, output).await,
        SimCommand::Shopify(args) => shopify(&args, output).await,
        SimCommand::Discord(args) => discord::run(&args, output).await,
        SimCommand::Replicate(args) => providers::run(Provider::Replicate, &args, output).await,
        SimCommand::Google(args) => providers::run(Provider::Google, &args, output).await,
        SimCommand::Fal(args) => providers::run(Provider::Fal, &args, output).await,
        SimCommand::Higgsfield(args) => providers::run(Provider::Higgsfield, &args, output).await,
    }
}

async fn http(args: &HttpSimArgs, output: &Output) -> Result<(), CliError> {
    let mut signals = Signals::new()?;
    let sim = HttpSim::start(http_options(args)).await.map_err(|error| start_error(args.listen, &error))?;
    output.print_data(&format!("http://{}", sim.addr()));
    let limit = args.refill_per_s.map_or_else(
        || "no limit".to_owned(),
        |refill| format!("a burst of {} calls, {refill} more per second", args.capacity),
    );
    output.print_status(&format!(
        "simulates an API with {limit}; counts are at http://{}/_sim/stats",
        sim.addr()
    ));
    signals.next().await;
    print_stats(&sim.stats(), output);
    signals.run_until_signal(sim.shutdown()).await
}

async fn shopify(args: &ShopifySimArgs, output: &Output) -> Result<(), CliError> {
    let mut signals = Signals::new()?;
    let sim =
        ShopifySim::start(shopify_options(args)).await.map_err(|error| start_error(args.listen, &error))?;
    output.print_data(&format!("http://{}", sim.addr()));
    let figures = args.plan.limits();
    output.print_status(&format!(
        "simulates Shopify with {} points per shop, {} more per second; counts are at http://{}/_sim/stats",
        figures.maximum,
        figures.restore_per_s,
        sim.addr()
    ));
    signals.next().await;
    print_stats(&sim.stats().all, output);
    signals.run_until_signal(sim.shutdown()).await
}

fn print_stats(stats: &Stats, output: &Output) {
    output.print_status(&format!(
        "{} calls, {} writes, {} throttled, {} duplicates",
        stats.calls, stats.writes, stats.throttled, stats.duplicates
    ));
}

fn start_error(listen: SocketAddr, error: &std::io::Error) -> CliError {
    // An invalid option has its own message and nothing to do with the address.
    if error.kind() == std::io::ErrorKind::InvalidInput {
        return CliError::usage(error.to_string());
    }
    CliError::new(format!("Cannot start the simulator on {listen}: {error}."))
}

fn http_options(args: &HttpSimArgs) -> HttpSimOptions {
    HttpSimOptions {
        listen: args.listen,
        capacity: args.capacity,
        refill_per_s: args.refill_per_s,
        latency: args.faults.latency(),
        fail_rate: args.faults.fail_rate,
        cut_rate: args.faults.cut_rate,
        seed: args.faults.seed,
    }
}

fn shopify_options(args: &ShopifySimArgs) -> ShopifySimOptions {
    ShopifySimOptions {
        listen: args.listen,
        plan: args.plan,
        oldest: args.oldest_version,
        bulk_takes: Duration::from_millis(args.bulk_ms),
        bulk_rows: args.bulk_rows,
        latency: args.faults.latency(),
        fail_rate: args.faults.fail_rate,
        cut_rate: args.faults.cut_rate,
        seed: args.faults.seed,
    }
}
