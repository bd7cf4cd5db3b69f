//! `sim discord`: simulates Discord's REST API for a bot that builds guilds, until a signal stops
//! it.

use std::net::SocketAddr;

use tidegate_sim::discord::limits::DiscordLimits;
use tidegate_sim::discord::quirks::DiscordQuirks;
use tidegate_sim::{DiscordSim, DiscordSimOptions};

use crate::args::FaultArgs;
use crate::error::CliError;
use crate::output::Output;
use crate::signals::Signals;

/// The options of `sim discord`.
#[derive(clap::Args, Debug)]
pub(crate) struct DiscordSimArgs {
    /// The address to listen on; with port 0 the system chooses one.
    #[arg(long, default_value = "127.0.0.1:7412", value_name = "ADDRESS:PORT")]
    pub listen: SocketAddr,
    /// Override a limit, such as role-create=5/2000: 5 calls in 2,000 ms. The name routes means
    /// every limit reported in headers. May be repeated; GET /_sim/limits lists all names.
    #[arg(long = "limit", value_name = "NAME=CALLS/MS", value_parser = limit)]
    pub limits: Vec<(String, u64, u64)>,
    /// Differ from Discord, such as no_orders or longer_wait_ms=2000. May be repeated; GET
    /// /_sim/quirks lists all names.
    #[arg(long = "quirk", value_name = "NAME[=VALUE]", value_parser = quirk)]
    pub quirks: Vec<String>,
    #[command(flatten)]
    pub faults: FaultArgs,
}

fn limit(text: &str) -> Result<(String, u64, u64), String> {
    let parts = text.split_once('=').and_then(|(name, figure)| {
        let (calls, window_ms) = figure.split_once('/')?;
        Some((name.to_owned(), calls.parse().ok()?, window_ms.parse().ok()?))
    });
    let (name, calls, window_ms): (String, u64, u64) =
        parts.ok_or("a limit is NAME=CALLS/MS, such as role-create=5/2000")?;
    DiscordLimits::default().set(&name, calls, window_ms)?;
    Ok((name, calls, window_ms))
}

fn quirk(text: &str) -> Result<String, String> {
    DiscordQuirks::default().set(text).map(|()| text.to_owned())
}

pub(crate) async fn run(args: &DiscordSimArgs, output: &Output) -> Result<(), CliError> {
    let mut signals = Signals::new()?;
    let sim = DiscordSim::start(options(args)?)
        .await
        .map_err(|error| CliError::new(format!("Cannot start the simulator on {}: {error}.", args.listen)))?;
    output.print_data(&format!("http://{}", sim.addr()));
    output.print_status(&format!(
        "simulates Discord at http://{0}/api/v10; counts are at http://{0}/_sim/stats",
        sim.addr()
    ));
    signals.next().await;
    let stats = sim.stats();
    output.print_status(&format!(
        "{} calls, {} writes, {} throttled, {} duplicates, {} bans",
        stats.all.calls, stats.all.writes, stats.all.throttled, stats.all.duplicates, stats.bans
    ));
    signals.run_until_signal(sim.shutdown()).await
}

fn options(args: &DiscordSimArgs) -> Result<DiscordSimOptions, CliError> {
    let mut limits = DiscordLimits::default();
    for (name, calls, window_ms) in &args.limits {
        limits.set(name, *calls, *window_ms).map_err(CliError::new)?;
    }
    let mut quirks = DiscordQuirks::default();
    for text in &args.quirks {
        quirks.set(text).map_err(CliError::new)?;
    }
    Ok(DiscordSimOptions {
        listen: args.listen,
        limits,
        latency: args.faults.latency(),
        fail_rate: args.faults.fail_rate,
        cut_rate: args.faults.cut_rate,
        seed: args.faults.seed,
        quirks,
    })
}
