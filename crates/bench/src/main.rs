//! The `tidegate-bench` program: runs one benchmark, with its report on stdout and its progress on
//! stderr. It exits with 0 when everything was measured, and with 1 when something failed.

use std::process::ExitCode;

use clap::Parser;
use tidegate_bench::Bench;

/// The allocator of the `tidegate` command, so that both are measured alike.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures Tidegate, compared with a ceiling or a peer in the same run, and prints JSON.
#[derive(Debug, Parser)]
#[command(name = "tidegate-bench", version)]
struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[tokio::main]
async fn main() -> ExitCode {
    match tidegate_bench::run(Args::parse().bench).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
