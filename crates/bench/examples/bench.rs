//! Runs a benchmark without the command line, for profiling.

use clap::Parser;

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    bench: tidegate_bench::Bench,
}

#[tokio::main]
async fn main() -> Result<(), String> {
    tidegate_bench::run(Args::parse().bench).await
}
