//! Benchmarks: each prints one JSON object on stdout, beside the ceiling or the peer it is compared with in the same
//! run. Nothing here asserts a time; the figures are for people to read, with the machine they came from.

mod ceiling;
mod instant;
mod machine;
mod operations;
mod report;

use clap::Subcommand;

/// What can be measured.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Whole lifecycles on a store: accepted durably, carried by an instant upstream, settled.
    Operations(operations::Args),
}

/// Runs a benchmark and prints its report.
///
/// # Errors
/// A sentence about what went wrong.
pub async fn run(bench: Bench) -> Result<(), String> {
    let report = match bench {
        Bench::Operations(args) => operations::run(args).await?,
    };
    let text = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
    println!("{text}");
    Ok(())
}
