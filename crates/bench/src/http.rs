//! Acceptance over HTTP: a real server with a store, and keep-alive connections on loopback that
//! wait for each response. Every operation is delayed by an hour, so nothing but acceptance is
//! measured.

mod requests;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tidegate_server::config::Overrides;
use tidegate_server::{Config, Server};
use tidegate_upstream::http::UpstreamConfig;
use tokio::time::Instant;

use crate::call;
use crate::client::Client;
use crate::machine::{Machine, peak_kib};
use crate::report::{Latency, Recorder};
use crate::scratch::Scratch;
use requests::Requests;

/// Arguments of `bench http`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The server's store: `file:DIR`, where fresh directories are created and removed, or
    /// `memory:`.
    #[arg(long, default_value = "file:tidegate-bench")]
    pub store: String,
    /// Seconds to measure, for each of the two loads.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Keep-alive connections, each waiting for its response.
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// Groups.
    #[arg(long, default_value_t = 1_000)]
    pub groups: usize,
    /// Bytes of the body that each operation would send.
    #[arg(long, default_value_t = 512)]
    pub payload: usize,
    /// Operations per batch, up to 1,000.
    #[arg(long, default_value_t = 100)]
    pub batch: usize,
}

/// The report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    store: String,
    machine: Machine,
    connections: usize,
    singly: LoadReport,
    in_batches: LoadReport,
    peak_memory_mib: Option<u64>,
}

/// The figures of one way to submit operations.
#[derive(Debug, Serialize)]
struct LoadReport {
    operations_in_a_request: usize,
    request_bytes: usize,
    operations: u64,
    operations_per_s: f64,
    request: Latency,
}

pub(crate) async fn run(args: Args) -> Result<Report, String> {
    if args.connections == 0 || args.groups == 0 || args.batch == 0 || args.batch > 1_000 {
        return Err("--connections and --groups must be at least 1, --batch 1 to 1,000".into());
    }
    let singly = load(&args, 1).await?;
    let in_batches = load(&args, args.batch).await?;
    Ok(Report {
        bench: "http",
        store: args.store,
        machine: Machine::detect(),
        connections: args.connections,
        singly,
        in_batches,
        peak_memory_mib: peak_kib().map(|kib| kib / 1_024),
    })
}

/// Starts a server on a fresh store and submits operations, `batch` per request.
async fn load(args: &Args, batch: usize) -> Result<LoadReport, String> {
    let scratch = Scratch::new(&args.store)?;
    let server = Server::start(config(&scratch)?).await.map_err(|error| error.to_string())?;
    let requests = Arc::new(Requests::render(server.addr, batch, args.groups, args.payload));
    eprintln!("{} connections, {batch} in a request of {} bytes", args.connections, requests.longest());
    let measured = drive(server.addr, &requests, args).await;
    let counts = server.counts().await.map_err(|error| error.to_string());
    server.shutdown().await;
    let (recorder, sent, took) = measured?;
    let (operations, counts) = (sent * batch as u64, counts?);
    let kept = counts.queued + counts.waiting;
    if kept != operations {
        return Err(format!("{operations} operations were accepted and the server has {kept}"));
    }
    Ok(LoadReport {
        operations_in_a_request: batch,
        request_bytes: requests.longest(),
        operations,
        operations_per_s: (operations as f64 / took.as_secs_f64()).round(),
        request: recorder.latency(),
    })
}

fn config(scratch: &Scratch) -> Result<Config, String> {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let over = Overrides { listen: Some(listen), store_url: Some(scratch.url().to_owned()), workers: None };
    // The environment configures the user's own server, not this one.
    let mut config = Config::defaults(&|_| None, &over).map_err(|problems| problems.to_string())?;
    config.upstreams = vec![UpstreamConfig::new(call::UPSTREAM, call::NOWHERE)];
    Ok(config)
}

type DriveResult = (Recorder, u64, Duration);

async fn drive(addr: SocketAddr, requests: &Arc<Requests>, args: &Args) -> Result<DriveResult, String> {
    let time = Duration::from_secs(args.seconds);
    let mut clients = Vec::new();
    for _ in 0..args.connections {
        clients.push(Client::connect(addr).await?);
    }
    let start = Instant::now();
    let mut tasks = Vec::new();
    for (number, mut client) in clients.into_iter().enumerate() {
        let requests = Arc::clone(requests);
        tasks.push(tokio::spawn(async move {
            let (mut recorder, mut sent) = (Recorder::new()?, 0_u64);
            let mut step = number;
            while start.elapsed() < time {
                let started = Instant::now();
                client.post(requests.at(step)).await?;
                recorder.record(started.elapsed());
                // A stride that is coprime with the number of requests visits all of them.
                step = step.wrapping_add(7_919);
                sent += 1;
            }
            Ok::<_, String>((recorder, sent))
        }));
    }
    let (mut recorder, mut sent) = (Recorder::new()?, 0);
    for task in tasks {
        let (one, count) = task.await.map_err(|error| error.to_string())??;
        recorder.merge(&one);
        sent += count;
    }
    Ok((recorder, sent, start.elapsed()))
}
