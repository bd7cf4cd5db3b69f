//! The cost of an idempotency key: the example service bare, with the layer and behind the proxy,
//! each in a process of its own under `wrk`, compared with other implementations. Every case checks
//! that the service did what it reports.

mod cases;
mod goals;
mod half_load;
mod items;
mod load;
mod memory;
mod peers;
mod serve;
mod wrk;

use serde::Serialize;

use crate::machine::Machine;
use cases::{Case, CaseReport};
use goals::Goal;
use half_load::HalfLoadReport;
use memory::MemoryReport;
use peers::Peers;
use wrk::Wrk;

/// Arguments of `bench idempotency`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The store of the keys: `file:DIR`, where fresh directories are created and removed,
    /// `memory:`, `redis://…` or `postgres://…`.
    ///
    /// On a server each case uses a prefix or a schema of its own and leaves it there.
    #[arg(long, default_value = "file:tidegate-bench")]
    pub store: String,
    /// Seconds to measure each case, each time.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Keep-alive connections, each waiting for its response.
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// How often everything is measured, in turns; the medians count.
    #[arg(long, default_value_t = 3)]
    pub turns: usize,
    /// Requests while memory is watched, for new keys and for replays each. 0 skips it.
    ///
    /// The goal "flat over ten million" needs 10000000 here, which takes a quarter of an hour or
    /// more.
    #[arg(long, default_value_t = 200_000)]
    pub requests_for_memory: u64,
    /// Leave out the peers, which are built with cargo from a checkout of the repository.
    #[arg(long)]
    pub no_peers: bool,
    /// Serve this until the parent exits. The benchmark starts itself with it.
    #[arg(long, hide = true, value_name = "JSON")]
    pub serve: Option<String>,
}

/// The report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    store: String,
    machine: Machine,
    /// The load generator.
    wrk: String,
    seconds: u64,
    connections: usize,
    turns: usize,
    /// Keys that replays use.
    replayed_keys: u64,
    peers: Vec<String>,
    cases: Vec<CaseReport>,
    half_load: Vec<HalfLoadReport>,
    memory: Vec<MemoryReport>,
    goals: Vec<Goal>,
}

pub(crate) async fn run(args: Args) -> Result<Report, String> {
    if let Some(asked) = &args.serve {
        return Err(serve::serve_until_parent_exits(asked).await?);
    }
    if args.seconds == 0 || args.turns == 0 || args.connections < wrk::THREADS {
        let least = wrk::THREADS;
        return Err(format!("--seconds and --turns must be at least 1, --connections at least {least}"));
    }
    let wrk = Wrk::new(args.connections)?;
    let peers = if args.no_peers { Peers::none() } else { Peers::build(&args.store)? };
    let cases = measure_in_turns(&args, &wrk, &peers).await?;
    let half_load = half_load::measure(&args, &peers, &cases).await?;
    let memory = memory::measure(&args, &wrk).await?;
    Ok(Report {
        bench: "idempotency",
        store: tidegate_server::backend::redact_url(&args.store),
        machine: Machine::detect(),
        wrk: wrk.version().to_owned(),
        seconds: args.seconds,
        connections: args.connections,
        turns: args.turns,
        replayed_keys: load::KEYS,
        peers: peers.versions().to_vec(),
        goals: goals::evaluate(&cases, &half_load, &memory),
        cases,
        half_load,
        memory,
    })
}

/// Measures all cases one after the other, several times: the speed of a machine drifts.
async fn measure_in_turns(args: &Args, wrk: &Wrk, peers: &Peers) -> Result<Vec<CaseReport>, String> {
    let cases = Case::all(peers);
    let mut turns: Vec<Vec<cases::Turn>> = vec![Vec::new(); cases.len()];
    for turn in 1..=args.turns {
        for (case, turns) in cases.iter().zip(&mut turns) {
            eprintln!("turn {turn} of {}: {}", args.turns, case.name());
            turns.push(case.measure(args, wrk, peers).await?);
        }
    }
    Ok(cases.into_iter().zip(turns).map(|(case, turns)| CaseReport::of(case, turns)).collect())
}

#[cfg(test)]
mod tests;
