//! `sim http` and its kin: one simulator, until it is told to stop.

pub(crate) mod discord;

use std::time::Duration;

use tidegate_sim::{HttpSim, HttpSimOptions};

use crate::args::{HttpSimArgs, SimCommand};
use crate::output::Output;
use crate::signals::Signals;
use crate::trouble::Trouble;

pub(crate) async fn run(command: SimCommand, output: &Output) -> Result<(), Trouble> {
    match command {
        SimCommand::Http(args) => http(&args, output).await,
        SimCommand::Discord(args) => discord::run(&args, output).await,
    }
}

async fn http(args: &HttpSimArgs, output: &Output) -> Result<(), Trouble> {
    let mut signals = Signals::new()?;
    let sim = HttpSim::start(options(args)).await.map_err(|error| {
        Trouble::new(format!("The simulator cannot be started on {}: {error}.", args.listen))
    })?;
    output.data(&format!("http://{}", sim.addr()));
    let limit = args.refill_per_s.map_or_else(
        || "no limit".to_owned(),
        |refill| format!("{} calls at once, {refill} more each second", args.capacity),
    );
    output.say(&format!("simulates an API with {limit}; counts are at http://{}/_sim/stats", sim.addr()));
    signals.next().await;
    let stats = sim.stats();
    output.say(&format!(
        "{} calls, {} writes, {} throttled, {} duplicates",
        stats.calls, stats.writes, stats.throttled, stats.duplicates
    ));
    signals.unless_again(sim.shutdown()).await
}

fn options(args: &HttpSimArgs) -> HttpSimOptions {
    HttpSimOptions {
        listen: args.listen,
        capacity: args.capacity,
        refill_per_s: args.refill_per_s,
        latency: Duration::from_millis(args.latency_ms),
        fail_rate: args.fail_rate,
        cut_rate: args.cut_rate,
        seed: args.seed,
    }
}
