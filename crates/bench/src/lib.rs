//! Benchmarks: each prints one JSON object on stdout, together with the ceiling or the peer it is
//! compared with in the same run. Nothing here asserts a time; the figures are for people to read,
//! with the machine they came from.

mod backlog;
mod call;
mod carry;
mod ceiling;
mod client;
mod cluster;
mod delayed_backlog;
mod discord;
mod dispatch;
mod flags;
mod goal;
mod groups;
mod handover;
mod http;
mod hydration;
mod idempotency;
mod instant_upstream;
mod limits;
mod machine;
mod nodes;
mod operate;
mod operations;
mod peer;
mod report;
mod rolling;
mod scratch;
mod server_process;
mod shopify;
mod takeover;
mod work;

use clap::Subcommand;
use serde::Serialize;

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Whole lifecycles on a store: accepted durably, sent to an instant upstream, settled.
    ///
    /// Compared with the ceiling: the same bytes appended to a plain file with the same group
    /// commit. With --peer, compared with another queue under the same load.
    Operations(operations::Args),
    /// The cost of a growing number of groups: a take on the model, and an engine in which all
    /// groups wait.
    ///
    /// With few groups and with many, one of them stuck and others waiting for a bucket, the time
    /// of a take and its settlement; then the CPU time of an engine whose groups all wait for one
    /// empty bucket.
    Groups(groups::Args),
    /// Acceptance over HTTP, singly and in batches, on a real server with keep-alive connections on
    /// loopback.
    ///
    /// Operations are delayed by an hour, so that nothing is sent. Clients and server share the
    /// machine.
    Http(http::Args),
    /// A long queue: memory per waiting operation, and the recovery time after a crash.
    ///
    /// A child process fills the store and is killed while it is still writing; then the store is
    /// opened again.
    Backlog(backlog::Args),
    /// How fast calls are sent to a real HTTP upstream on loopback, with a short queue and with a
    /// long one.
    ///
    /// While operations are submitted; then with 150,000 queued first, their payloads in memory,
    /// and again read back from the store. Compared with a bare hyper client that has as many calls
    /// in flight.
    Carry(carry::Args),
    /// Nodes on one store: every request sent to a random node, compared with a single node under
    /// the same load.
    ///
    /// Each node is a separate process, and so is the store they share. The upstream responds at
    /// once, and operations are spread over the partitions by group.
    Cluster(cluster::Args),
    /// How much of a limit nodes use together, while its partition is handed over and while its
    /// owner is killed.
    ///
    /// One upstream that counts what it permits, refuses the rest, and has more work waiting than
    /// it can take.
    Handover(handover::Args),
    /// The time until a partition with a long queue is served again after its owner was killed.
    Takeover(takeover::Args),
    /// Request latency and failures while nodes are restarted one after the other.
    Rolling(rolling::Args),
    /// Stand-alone limits: reservations from one bucket and from two in one step.
    ///
    /// Compared with the server's own benchmark in the same run: redis-benchmark with the smallest
    /// script, or pgbench with an update of one row. Over as many connections on both sides; on
    /// Redis also with one that our callers share, against one per caller, and with one on both
    /// sides. With --in-process, decisions in this process instead, compared with governor and a
    /// bucket in a mutex.
    Limits(limits::Args),
    /// Hydration: many callers of one entity, many entities at once, reads of the local copy, and a
    /// scan of unknown ids.
    ///
    /// In one process, with a source that answers, one that is slow and one that is silent: how
    /// often it is asked, how soon callers wake up, and how memory grows. Compared with moka's
    /// get_with and with a map of mutexes under the same loads.
    Hydration(hydration::Args),
    /// The cost of an idempotency key: the example service bare, with the layer and behind the
    /// proxy, under `wrk`.
    ///
    /// Without a key, with new keys and with replays; each case in a process of its own, several
    /// times in turns. Compared with axum-idempotent on its store in memory, and on Redis with a
    /// middleware that uses SET NX. Then the latency that the proxy adds at half of its load, and
    /// memory over a long run. Needs wrk.
    Idempotency(idempotency::Args),
    /// Remote workers over HTTP: empty jobs from acceptance to their end, in worker processes of
    /// their own.
    ///
    /// Lifecycles per second, and the time from acceptance until a worker has the claim. With
    /// --peer bullmq, compared with its workers on the same Redis. Then the memory and the CPU time
    /// of operations that await their completion.
    Work(work::Args),
    /// How much of the shops' limits nodes on one Redis use, and how many responses are throttled.
    ///
    /// Shops of four plans, queries that cost 1 to 500 points, and work waiting for every shop all
    /// the time, ten times as much for one of them; before it the same without that one. Then the
    /// same load through shopify-api-node, in as many processes as there are nodes.
    Shopify(shopify::Args),
    /// How long a guild takes to deploy, and how many responses are throttled.
    ///
    /// A template into an empty guild of a simulator with Discord's limits: through the deployer,
    /// and at the same time, each with a simulator of its own, the same calls through
    /// @discordjs/rest and twilight-http. Compared with the shortest time that the limits permit.
    /// Then the deployer again, which should find nothing to do.
    Discord(discord::Args),
    /// Generations over four endpoints, of which the first fails for a while.
    ///
    /// As many as can be accepted; then at a steady rate, with the outage: the time from acceptance
    /// to the submit, that of a failover, duplicate submits and leaked slots. Then what waits while
    /// every endpoint cools. Compared with LiteLLM's router under the same load.
    Dispatch(dispatch::Args),
    /// What an operator's views cost: the page and the metrics of a server with millions of
    /// operations.
    ///
    /// Then lifecycles over HTTP, of a plain server and of one with a token, with traces and with
    /// open pages, in turns.
    Operate(operate::Args),
}

/// Runs a benchmark and prints its report.
///
/// # Errors
/// A sentence about what went wrong.
pub async fn run(bench: Bench) -> Result<(), String> {
    match bench {
        Bench::Operations(args) => print(&operations::run(args).await?),
        Bench::Groups(args) => print(&groups::run(args).await?),
        Bench::Http(args) => print(&http::run(args).await?),
        Bench::Backlog(args) => print(&backlog::run(args).await?),
        Bench::Carry(args) => print(&carry::run(args).await?),
        Bench::Cluster(args) => print(&cluster::run(args).await?),
        Bench::Handover(args) => print(&handover::run(args).await?),
        Bench::Takeover(args) => print(&takeover::run(args).await?),
        Bench::Rolling(args) => print(&rolling::run(args).await?),
        Bench::Limits(args) => print(&limits::run(args).await?),
        Bench::Hydration(args) => print(&hydration::run(args).await?),
        Bench::Idempotency(args) => print(&idempotency::run(args).await?),
        Bench::Shopify(args) => print(&shopify::run(args).await?),
        // A child process prints its own report.
        Bench::Work(args) => Box::pin(work::run(args)).await?.map_or(Ok(()), |report| print(&report)),
        Bench::Dispatch(args) => print(&Box::pin(dispatch::run(args)).await?),
        Bench::Discord(args) => print(&Box::pin(discord::run(args)).await?),
        Bench::Operate(args) => print(&Box::pin(operate::run(args)).await?),
    }
}

fn print(report: &impl Serialize) -> Result<(), String> {
    let text = serde_json::to_string_pretty(report).map_err(|error| error.to_string())?;
    println!("{text}");
    Ok(())
}
