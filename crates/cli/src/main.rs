//! The `tidegate` command. Data goes to stdout, status messages to stderr. Exits with 0 on success,
//! 1 on failure and 2 on wrong usage.

mod args;
mod banner;
mod check;
mod client;
#[cfg(feature = "sim")]
mod demo;
mod deploy;
mod error;
#[cfg(feature = "sim")]
mod load;
mod logs;
mod output;
mod proxy;
mod remote;
mod reply;
mod serve;
mod signals;
#[cfg(feature = "sim")]
mod sim;
mod token;
mod worker;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};
use error::CliError;
use output::Output;

/// Many threads allocate and free many small pieces; this allocator returns memory that the
/// system's allocator would lose to fragmentation.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    let output = Output::new(args.color, args.json);
    let ended = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::new(format!("Cannot start the runtime: {error}.")))
        .and_then(|runtime| {
            let ended = runtime.block_on(run(args, &output));
            // A thread that waits for DNS or a disk must not delay the exit.
            runtime.shutdown_background();
            ended
        });
    match ended.and_then(|()| output.check_delivered()) {
        Ok(()) => ExitCode::from(output.exit_code()),
        Err(trouble) => {
            trouble.print(&output);
            ExitCode::from(trouble.exit)
        }
    }
}

async fn run(args: Args, output: &Output) -> Result<(), CliError> {
    match args.command {
        Command::Serve(serve) => {
            let format = logs::start(&args.log, "info")?;
            serve::run(serve, format, output).await
        }
        #[cfg(feature = "sim")]
        Command::Demo(demo) => {
            logs::start(&args.log, "warn")?;
            demo::run(demo, output).await
        }
        Command::Proxy(proxy) => {
            let format = logs::start(&args.log, "info")?;
            proxy::run(proxy, format, output).await
        }
        Command::Worker(worker) => {
            logs::start(&args.log, "info")?;
            worker::run(worker, output).await
        }
        #[cfg(feature = "sim")]
        Command::Sim(sim) => sim::run(sim, output).await,
        Command::Deploy(deploy) => {
            // The command says itself what Discord refused.
            logs::start(&args.log, "warn,tidegate_discord::dialect=off")?;
            // A deployment holds an engine of its own, too much for the stack of every command.
            Box::pin(deploy::run(deploy, output)).await
        }
        Command::Op(op) => remote::op::run(op, output).await,
        Command::Group(group) => remote::group::run(group, output).await,
        Command::Limit(limit) => remote::limit::run(limit, output).await,
        Command::Key(key) => remote::key::run(key, output).await,
        Command::Flight(flight) => remote::flight::run(flight, output).await,
        Command::Generation(generation) => remote::generation::run(generation, output).await,
        Command::Provider(provider) => remote::provider::run(provider, output).await,
        Command::Ledger(ledger) => remote::ledger::run(ledger, output).await,
        Command::Cluster(cluster) => remote::cluster::run(cluster, output).await,
        Command::Token(token) => token::run(token, output),
        Command::CheckConfig { file } => check::run(&file, output),
    }
}
